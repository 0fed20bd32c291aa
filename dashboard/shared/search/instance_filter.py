"""Filters lists of instances: the terms of an address, as typed and as ``Engine.find`` takes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils import timezone

from machines.catalog.redaction import Concealed
from machines.engine import BadInput
from machines.engine.definitions import Outline, durations
from machines.engine.definitions.reading.indexes import FACTS, IDS
from machines.engine.search.filters import ANY

from ..times import times
from . import query_line
from .conditions import condition, read_created, read_data, read_suspended

NAMES = (
    "state", "older", "created", "version", "suspended", "tag", "actor", "error", "id", "edge", "data", "by", "is",
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
            most = MAX_DATA if name == "data" else MAX_TERM
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


PLAIN: Mapping[str, Callable[[str], Mapping[str, Any]]] = {
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
        return times.format_age(term)
    if name == "suspended":
        return "yes" if term else "no"
    if name == "ids":
        return f"{len(term):,} chosen"
    if name == "created":
        zone = timezone.get_current_timezone()
        dates = {sign: datetime.fromtimestamp(end / 1000, zone) for sign, end in term.items()}
        return " ".join(f"{SIGNS[sign]} {at:%Y-%m-%d %H:%M}" for sign, at in dates.items())
    if not isinstance(term, Mapping):
        return str(term)
    if "prefix" in term:
        return f"{term['prefix']}*"
    return " ".join(f"{SIGNS.get(sign, sign)} {end}" for sign, end in term.items())
