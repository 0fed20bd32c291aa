"""Conditions of a search: a value, a prefix or a range for each data field, and for the id, actor, version and
error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypedDict

from machines.engine import arguments
from machines.engine.definitions.reading.machine_settings import ACTOR, FACTS, IDS, TRANSITION, VERSION
from machines.engine.errors import BadInput

ERROR = "instance.error"
CREATED = "instance.created"
SUSPENDED = "instance.suspended"
TEXT = "instance.text"
ANY = "any"  # the value of ``error`` that finds every problem
MAX_MARK = 64  # bytes of a text that an index keeps (machines/engine/lua/search/data_indexes.lua)
MAX_ERROR = 200  # bytes: as much as the index keeps of an error
MAX_WORD, MAX_WORDS = 200, 8  # characters of a word that is searched for, and words of one search
#: fields compared with all instances where no index is narrower
COMPARED_FIELDS = frozenset((ACTOR, VERSION, CREATED, SUSPENDED, TEXT))
#: fields of conditions that are not data fields
FACT_FIELDS = frozenset((*FACTS, ERROR, CREATED, SUSPENDED, TEXT))
BOUNDS = ("ge", "gt", "le", "lt")
HINT = 'a value, {"prefix": "text"}, or {"ge": 1, "lt": 5} of ge, gt, le, lt'


class SearchTerms(TypedDict, total=False):
    """The terms of a search, which an instance meets all; one that is None or left out lets any instance through.

    ``state`` may be compound: then everything below it; ``tag`` stands for all states that carry it. ``older_than`` is
    in seconds, ``version`` what they run. ``where``: data field -> value, ``{"prefix": text}``, or a range like
    ``{"ge": 1, "lt": 5}``. ``actor``: the actor of the last step that had one, a name, prefix or range.
    ``error``: the beginning of the kind or the text of a current problem (of a dead job, or of a timer whose step
    failed, which has the kind "timer"), or "any". ``transition``: ``<version>:<transition>``, as the flow counters name
    it: instances that came by it to a state they are in, of machines that index ``instance.transition``. ``created``: a
    range of ms since the epoch; ``suspended``: only those that are, or are not. Both are compared. ``text``: a word, or
    several, each of which stands in the id, a tag, an error, the data, or the input of an open job. Case is ignored.
    ``{"words": [...], "without": [fields]}`` leaves out data fields and copies of their values, errors and jobs;
    with ``"fields"``, instances where one of these holds such a copy are left out.
    """

    state: str | None
    older_than: float | None
    where: Mapping[str, Any] | None
    tag: str | None
    version: int | None
    id_prefix: str | None
    actor: str | Mapping[str, str] | None
    error: str | None
    transition: str | None
    created: Mapping[str, int] | None
    suspended: bool | None
    text: str | Sequence[str] | Mapping[str, Sequence[str]] | None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one field. ``rule`` is ``{"eq": value}``, ``{"prefix": text}``, or any of ge, gt, le, lt with
    texts or numbers."""

    field: str
    rule: Mapping[str, Any]

    @property
    def wire(self) -> dict[str, Any]:
        """Return the condition as the functions library takes it."""
        return {"field": self.field, **self.rule}

    @property
    def ordered(self) -> bool:
        """Tell whether an index could serve it: indexes hold texts, numbers, true and false, and nothing for null."""
        return self.field != TEXT and isinstance(self.rule.get("eq", ""), str | int | float)

    @property
    def is_proved_by_index(self) -> bool:
        """Tell whether every entry that its index yields meets it, so that no instance has to be compared.

        An index keeps the first 64 bytes of a text, up to a NUL, and numbers whole. So a prefix within that, a number
        and a range of numbers need no second look.
        """
        if self.field in FACT_FIELDS - {IDS}:
            return False
        if "prefix" in self.rule:
            prefix = str(self.rule["prefix"]).encode(errors="replace")
            return len(prefix) <= MAX_MARK and b"\0" not in prefix
        return all(_kind(value) == "number" for value in self.rule.values())


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "text" if isinstance(value, str) else "other"


def read_terms(terms: SearchTerms) -> tuple[Condition, ...]:
    """Read the conditions of a search. Raises BadInput for one that is not valid, TypeError for an unknown term."""
    if unknown := sorted(terms.keys() - SearchTerms.__annotations__):
        names = ", ".join(SearchTerms.__annotations__)
        raise TypeError(f"a search has no term {', '.join(unknown)}; its terms: {names}")
    found = [_read_condition(field, value) for field, value in (terms.get("where") or {}).items()]
    facts = ((read, terms.get(name)) for name, read in _FACT_READERS.items())
    return (*found, *(read(value) for read, value in facts if value is not None))


def _read_version(version: int) -> Condition:
    arguments.encode_whole("version", version, least=1)
    return Condition(VERSION, {"eq": version})


def _read_suspended(suspended: object) -> Condition:
    if not isinstance(suspended, bool):
        raise BadInput(f"suspended is True, False or None, not {suspended!r:.60}", code="SB418")
    return Condition(SUSPENDED, {"eq": suspended})


def _read_transition(transition: object) -> Condition:
    number, colon, name = transition.partition(":") if isinstance(transition, str) else ("", "", "")
    if not (colon and name and number.isascii() and number.isdigit() and len(transition) <= MAX_ERROR):  # type: ignore[arg-type]
        raise BadInput(f"transition is '<version>:<transition>' as in '3:t4', not {transition!r:.60}", code="SB418")
    _check(TRANSITION, transition)
    return Condition(TRANSITION, {"eq": transition})


def _read_created(created: object) -> Condition:
    fits = isinstance(created, Mapping) and created and set(created) <= set(BOUNDS)
    if not fits or not all(type(limit) is int for limit in created.values()):  # type: ignore[attr-defined]
        raise BadInput('created is a range of ms since the epoch, as in {"ge": 1, "lt": 5}', code="SB418")
    return _read_condition(CREATED, created)


def _read_actor(actor: object) -> Condition:
    found = _read_condition(ACTOR, actor)
    if not all(isinstance(part, str) for part in found.rule.values()) or found.rule.get("eq") == "":
        raise BadInput('actor is a name, {"prefix": "text"}, or a range of names', code="SB418")
    return found


def _read_text(text: Any) -> Condition:
    rule = text if isinstance(text, Mapping) else {"words": text}
    words, without, fields = rule.get("words", ()), list(rule.get("without", ())), list(rule.get("fields", ()))
    words = [words] if isinstance(words, str) else list(words) if isinstance(words, Sequence) else []
    if not (fields or words) or len(words) > MAX_WORDS or not all(isinstance(word, str) for word in words):
        raise BadInput(f"text is 1 to {MAX_WORDS} words, not {text!r:.60}", code="SB418")
    for word in words:
        if not 0 < len(word) <= MAX_WORD:
            raise BadInput(f"a word has 1 to {MAX_WORD} characters, not {len(word)}", code="SB418")
        _check(TEXT, word)
    spellings = [sorted({_lower(one) for one in (word, word.lower(), word.upper(), word.title())}) for word in words]
    return Condition(TEXT, {"words": spellings, "without": without, "fields": fields})


def _lower(text: str) -> str:
    """Write A to Z in small letters, as the server does with what it compares."""
    return text.encode().lower().decode()


def _read_error(error: object) -> Condition:
    if not isinstance(error, str) or not error or len(error.encode(errors="replace")) > MAX_ERROR:
        raise BadInput(
            f"error is {ANY!r}, or how its kind or text begins: 1 to {MAX_ERROR} bytes, not {error!r:.60}", code="SB418"
        )
    _check(ERROR, error)
    return Condition(ERROR, {"prefix": "" if error == ANY else error})


_FACT_READERS: Mapping[str, Callable[[Any], Condition]] = {
    "id_prefix": lambda prefix: _read_condition(IDS, {"prefix": prefix}),
    "actor": _read_actor,
    "version": _read_version,
    "error": _read_error,
    "transition": _read_transition,
    "created": _read_created,
    "suspended": _read_suspended,
    "text": _read_text,
}


def _read_condition(field: str, value: Any) -> Condition:
    if not isinstance(value, Mapping) or not value or not set(value) & {"prefix", *BOUNDS}:
        _check(field, value)
        return Condition(field, {"eq": value})
    if set(value) == {"prefix"}:
        if not isinstance(value["prefix"], str) or not value["prefix"]:
            raise build_refusal(field, "a prefix is a text of at least one character")
        _check(field, value["prefix"])
    elif set(value) <= set(BOUNDS):
        _check_bounds(field, value)
    else:
        raise build_refusal(field, "it has other keys")
    return Condition(field, dict(value))


def _check_bounds(field: str, rule: Mapping[str, Any]) -> None:
    kinds = {_kind(limit) for limit in rule.values()}
    if len(kinds) > 1 or not kinds <= {"number", "text"}:
        raise build_refusal(field, "the ends of a range are numbers, or texts")
    for limit in rule.values():
        _check(field, limit)


def _check(field: str, value: Any) -> None:
    """Raise BadInput for a value that data can never hold."""
    try:
        sound = b"\0" not in value.encode() if isinstance(value, str) else _kind(value) != "number" or isfinite(value)
    except (OverflowError, UnicodeEncodeError):  # an integer that no double holds, half a character
        sound = False
    if not sound:
        raise build_refusal(field, f"data never holds {value!r:.60}")


def build_refusal(field: str, why: str) -> BadInput:
    """Build the error for a condition that is not valid."""
    return BadInput(f"the condition on {field!r} is not valid: {why}; write {HINT}", code="SB418")
