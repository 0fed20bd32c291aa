"""Filters lists of instances: the terms of an address, as typed and as ``Engine.find`` takes them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from time import time
from typing import Any

from django.utils import timezone

from machines.audit.redaction import Concealed
from machines.engine import BadInput
from machines.engine.definitions import Outline, durations
from machines.engine.definitions.reading.machine_settings import FACTS, IDS
from machines.engine.search.filters import ANY
from machines.insight.statistics.ages import format_age
from machines.instances import query_line
from machines.instances.query_line import EQUAL, LineTerm, split_line

NAMES = (
    "text", "state", "older", "created", "version", "suspended", "tag", "actor", "error", "id", "edge", "data", "by",
    "is",
)  # fmt: skip
"""The terms of an address, in the order they are shown."""
MAX_TERM = 200  # characters of a term
MAX_DATA = query_line.MAX_LINE  # characters of the term that joins conditions


@dataclass(frozen=True, slots=True)
class InstanceFilter:
    """Holds the terms of a filter.

    ``texts``: as typed, by name; ``terms``: as ``Engine.find`` takes them; ``mistakes``: errors by name; ``fields``:
    the data fields that can be searched; ``tags``: those of the machine; ``line``: the same filter as a query line, or
    the line as typed where it is not valid.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    terms: Mapping[str, Any] = field(default_factory=dict)
    mistakes: Mapping[str, BadInput] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    line: str = ""

    def __bool__(self) -> bool:
        """Return whether the list is filtered by more than its state."""
        return any(name != "state" for name in self.texts)

    @property
    def state(self) -> str | None:
        return self.texts.get("state")


def parse_filter(params: Mapping[str, str], outline: Outline, hidden: Collection[str] = ()) -> InstanceFilter:
    """Parse ``{"state": "Waiting", "older": "15m", "by": "serial", "is": "ATV-*", ...}``.

    ``hidden``: the sensitive fields whose values the person may not see, and so not search by.
    """
    texts = {name: params.get(name, "").strip() for name in NAMES}
    texts = {name: text for name, text in texts.items() if text}
    line, mistakes = params.get("query", "").strip(), dict[str, BadInput]()
    try:
        texts |= query_line.read_line(line)
    except BadInput as mistake:
        mistakes["query"] = mistake
    if "by" not in texts or "is" not in texts:
        texts = {name: text for name, text in texts.items() if name not in ("by", "is")}
    tags = tuple(dict.fromkeys(tag for state in outline.states for tag in state.tags))
    searchable = tuple(name for name in outline.index if name not in FACTS and name not in hidden)
    found: dict[str, Any] = {}
    for name, text in texts.items():
        try:
            most = MAX_DATA if name in ("data", "text") else MAX_TERM
            if len(text) > most:
                raise BadInput(f"a filter has at most {most:,} characters")
            value = _parse_term(name, text, texts, outline, hidden)
            if "where" in value and "where" in found:
                value = {"where": _join_fields(found["where"], value["where"])}
            found |= value
        except BadInput as mistake:
            mistakes[name] = mistake
    typed = line if "query" in mistakes else query_line.write_line(texts)
    return InstanceFilter(texts, found, mistakes, searchable, tags, typed)


def parse_terms(params: Mapping[str, str], outline: Outline, hidden: Collection[str] = ()) -> dict[str, Any]:
    """Return the terms for ``Engine.find`` and ``Engine.tally``. Raise BadInput for the first invalid one."""
    found = parse_filter(params, outline, hidden)
    for mistake in found.mistakes.values():
        raise mistake
    return dict(found.terms)


def _parse_term(
    name: str, text: str, texts: Mapping[str, str], outline: Outline, hidden: Collection[str]
) -> Mapping[str, Any]:
    if name == "error":
        return {"error": _parse_error(text, outline, hidden)}
    if name == "data":
        return read_data(text, outline, hidden)
    if name == "is":
        return _parse_datum(texts["by"], text, outline, hidden)
    return PLAIN[name](text) if name in PLAIN else {}


def _join_fields(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Join conditions on different data fields."""
    for name in first.keys() & second.keys():
        raise BadInput(f"there are two conditions on {name!r}; write them together, as in data.{name}>1 data.{name}<5")
    return {**first, **second}


def _parse_older(text: str) -> Mapping[str, Any]:
    ms = durations.parse_duration(text)
    if ms is None:
        raise BadInput(f"{text[:100]!r} is not a duration; {durations.HINT}")
    return {"older_than": ms / 1000}


def _parse_version(text: str) -> Mapping[str, Any]:
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text)):
        raise BadInput(f"{text[:100]!r} is not a version: use a whole number from 1")
    return {"version": int(text)}


def _parse_actor(text: str) -> Mapping[str, Any]:
    return {"actor": {"prefix": text[:-1]} if len(text) > 1 and text.endswith("*") else text}


def _parse_id(text: str) -> Mapping[str, Any]:
    return {"id_prefix": text.removesuffix("*") or text}


def read_created(text: str) -> Mapping[str, Any]:
    """Read bounds of the time of creation, all of which have to hold. A time without a zone is in the person's."""
    found: dict[str, int] = {}
    for part in text.split():
        bounds = _read_bounds(part)
        if set(bounds) & set(found):
            raise BadInput(f"{text[:100]!r} bounds the time of creation twice; use {CREATED_HINT}")
        found |= bounds
    return {"created": found}


def read_suspended(text: str) -> Mapping[str, Any]:
    """Read yes or no."""
    if text.lower() not in ("yes", "no", "true", "false"):
        raise BadInput(f"{text[:100]!r} is neither yes nor no")
    return {"suspended": text.lower() in ("yes", "true")}


PLAIN: Mapping[str, Callable[[str], Mapping[str, Any]]] = {
    "text": lambda text: {"text": query_line.read_words(text)},
    "state": lambda text: {"state": text},
    "tag": lambda text: {"tag": text},
    "older": _parse_older,
    "version": _parse_version,
    "actor": _parse_actor,
    "id": _parse_id,
    "edge": lambda text: {"transition": text},
    "created": read_created,
    "suspended": read_suspended,
}


def _parse_error(text: str, outline: Outline, hidden: Collection[str]) -> str:
    """Parse the term for errors. A text of a handler may hold hidden values, and could be guessed letter by letter."""
    if hidden and text != ANY:
        raise Concealed(outline.id, "error")
    return text


def _parse_datum(by: str, text: str, outline: Outline, hidden: Collection[str]) -> Mapping[str, Any]:
    if by in hidden:
        raise Concealed(outline.id, by)
    if by not in outline.index or (by in FACTS and by != IDS):
        listed = ", ".join(name for name in outline.index if name not in hidden) or "none"
        raise BadInput(f"instances are not found by {by[:100]!r}; the machine's indexed fields: {listed}")
    if by == IDS:
        return _parse_id(text)
    types = next(field.types for field in outline.data if field.name == by)
    return {"where": {by: condition(text, types)}}


WORDS = {
    "text": "words",
    "older_than": "min time in state",
    "actor": "last actor",
    "id_prefix": "id prefix",
    "transition": "came by",
    "ids": "instances",
}
SIGNS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def describe_filter(terms: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Describe terms of ``Engine.find`` for people: ``[("min time in state", "15 min"), ("state", "New")]``."""
    plain = [(WORDS.get(name, name), _describe_term(name, term)) for name, term in terms.items() if name != "where"]
    data = [(name, _describe_term(name, term)) for name, term in (terms.get("where") or {}).items()]
    return [pair for pair in plain if pair[1]] + data


def _describe_term(name: str, term: Any) -> str:
    if term is None:
        return ""
    if name == "older_than":
        return format_age(term)
    if name == "suspended":
        return "yes" if term else "no"
    if name == "ids":
        return f"{len(term):,} chosen"
    if name == "created":
        zone = timezone.get_current_timezone()
        dates = {sign: datetime.fromtimestamp(end / 1000, zone) for sign, end in term.items()}
        return " ".join(f"{SIGNS[sign]} {at:%Y-%m-%d %H:%M}" for sign, at in dates.items())
    if name == "text":
        return " ".join(map(query_line.quote, [term] if isinstance(term, str) else term))
    if not isinstance(term, Mapping):
        return str(term)
    if "prefix" in term:
        return f"{term['prefix']}*"
    return " ".join(f"{SIGNS.get(sign, sign)} {end}" for sign, end in term.items())


HINT = "a value, a prefix like ATV-*, or a range like 5..10"
BOUNDS = {">": "gt", ">=": "ge", "<": "lt", "<=": "le"}
CREATED_HINT = "a duration (24h: within the last 24 hours), >2026-01-31, <2026-01-31T08:00, or 2026-01-01..2026-01-31"
DAY = timedelta(days=1)


def read_data(text: str, outline: Outline, hidden: Collection[str]) -> Mapping[str, Any]:
    """Read ``amount>100 to:Rome`` into ``{"where": {"amount": {"gt": 100}, "to": "Rome"}}``."""
    where: dict[str, Any] = {}
    for term in split_line(text):
        if not term.key:
            raise BadInput(f"a field and a sign are missing before {term.value[:60]!r}; write field:{term.value[:60]}")
        rule = _read_rule(term, _find_types(term.key, outline, hidden))
        if term.key in where:
            rule = _join(term.key, where[term.key], rule)
        where[term.key] = rule
    return {"where": where} if where else {}


def _find_types(name: str, outline: Outline, hidden: Collection[str]) -> tuple[str, ...]:
    if name in hidden:
        raise Concealed(outline.id, name)
    types = {each.name: each.types for each in outline.data}
    if name in types:
        return types[name]
    listed = ", ".join(each for each in types if each not in hidden) or "none"
    raise BadInput(f"the machine has no data field {name[:100]!r}; its fields: {listed}")


def _read_rule(term: LineTerm, types: tuple[str, ...]) -> Any:
    if term.sign in EQUAL:
        return condition(term.value, types)
    if term.sign not in BOUNDS:
        raise BadInput(f"a data field takes : = > >= < <=, not {term.sign}; write {term.key}:value")
    number = _number(term.value) if "integer" in types or "number" in types else None
    if number is None and "string" not in types:
        raise BadInput(f"{term.value[:100]!r} is no number; write {term.key}{term.sign}100")
    return {BOUNDS[term.sign]: term.value if number is None else number}


def _join(name: str, first: Any, second: Any) -> Any:
    """Join two bounds of one field; anything else cannot hold twice."""
    ranges = all(isinstance(rule, Mapping) and set(rule) <= set(BOUNDS.values()) for rule in (first, second))
    if not ranges or set(first) & set(second):
        raise BadInput(f"the conditions on {name[:100]!r} exclude each other or stand twice; write one, or two bounds")
    return {**first, **second}


def condition(text: str, types: tuple[str, ...]) -> Any:
    """Return a condition for ``Engine.find``: a number if the field holds numbers and the text is one."""
    if "boolean" in types and text in ("true", "false"):
        return text == "true"
    numbers = "integer" in types or "number" in types
    if numbers and ".." in text:
        low, high = (_number(end) for end in text.split("..", 1))
        ends = {"ge": low, "le": high}
        if low is not None or high is not None:
            return {name: end for name, end in ends.items() if end is not None}
    elif numbers and (number := _number(text)) is not None:
        return number
    if "string" in types:
        return {"prefix": text[:-1]} if len(text) > 1 and text.endswith("*") else text
    raise BadInput(f"{text[:100]!r} does not fit that field; use {HINT}")


def _number(text: str) -> int | float | None:
    """Return None for an open end, or for a text that is no number."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _read_bounds(part: str) -> dict[str, int]:
    sign = next((sign for sign in (">=", "<=", ">", "<") if part.startswith(sign)), "")
    value = part.removeprefix(sign)
    length = durations.parse_duration(value)
    if not sign and length is not None:
        return {"ge": round(time() * 1000) - length}
    low, dots, high = value.partition("..")
    if not sign and dots:
        return {"ge": _read_moment(low)[0], "lt": _read_moment(high)[1]}
    start, end = _read_moment(value)
    if not sign:
        return {"ge": start, "lt": end}
    # A day is all its hours: after the day, up to the end of the day.
    return {{">": "ge", ">=": "ge", "<": "lt", "<=": "lt"}[sign]: end if sign in (">", "<=") else start}


def _read_moment(text: str) -> tuple[int, int]:
    """Return the ms at which a day or a moment begins, and at which it is over."""
    try:
        day = len(text) == len("2026-01-31")
        start = datetime.combine(date.fromisoformat(text), datetime.min.time()) if day else datetime.fromisoformat(text)
        zone = start.tzinfo or timezone.get_current_timezone()
        end = start + DAY if day else start + timedelta(milliseconds=1)
        return tuple(round(one.replace(tzinfo=zone).timestamp() * 1000) for one in (start, end))  # type: ignore[return-value]
    except (ValueError, OverflowError):
        raise BadInput(f"{text[:100]!r} is not a date; use {CREATED_HINT}") from None
