"""A plain copy of a definition, and places in it.

The copy holds only exact ``dict list str int float bool None`` and ``BROKEN`` in place of parts that were reported and
left out. Objects are read through the methods of the built-in types, so that a subclass cannot run its own code here. A
``Place`` is a value of the copy with its path: what every reader takes and reports on.
"""

from __future__ import annotations

import json
import math
import pathlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from machines.engine import limits

from .findings import Path, Report, quote

SCHEMA = pathlib.Path(__file__).with_name("schema.json")


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of definitions. The object is shared: do not change it."""
    result: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return result


def list_keys(part: str) -> Collection[str]:
    """List the keys that a part of a definition may have: the schema names them for editors and readers."""
    found: dict[str, Any] = schema()["$defs"][part]["properties"]
    return found.keys()


AddFinding = Callable[[str, Path, str, str], None]  # code, path, message, hint


class _BrokenValue:
    """Stands for a value that was reported already; readers skip it silently."""

    def __repr__(self) -> str:
        return "BROKEN"


BROKEN: Final = _BrokenValue()


class TooLarge(Exception):
    """The document exceeds its size limit and is not read any further."""


class PlainCopier:
    """Copies one document."""

    def __init__(self, complain: AddFinding) -> None:
        self._complain = complain
        self._room = limits.MAX_DEFINITION
        self._open: set[int] = set()  # ids of the containers around the value at hand

    def copy(self, value: object, path: Path = ()) -> Any:
        """Copy a value. Raises TooLarge; every other problem is reported and left out."""
        kind = type(value)
        if value is None or kind is bool:
            return self._spend(5, value)
        if issubclass(kind, str):
            return self._text(str.__str__(value), path)
        if issubclass(kind, int):
            return self._integer(int.__int__(value), path)  # type: ignore[arg-type]
        if issubclass(kind, float):
            return self._float(float.__float__(value), path)  # type: ignore[arg-type]
        if issubclass(kind, dict | list | tuple):
            return self._container(value, path)
        return self._leave_out("SB110", path, f"a value of type {_type_name(kind)} is not JSON")

    def _leave_out(self, code: str, path: Path, message: str, hint: str = "") -> Any:
        self._spend(2, None)
        self._complain(code, path, message, hint)
        return BROKEN

    def _spend(self, size: int, value: Any) -> Any:
        self._room -= size
        if self._room < 0:
            raise TooLarge
        return value

    def _text(self, text: str, path: Path) -> Any:
        try:
            self._spend(len(text.encode()) + 2, None)
        except UnicodeEncodeError:
            return self._leave_out("SB110", path, "the text holds half of a surrogate pair")
        if "\0" in text:
            return self._leave_out("SB110", path, "the text holds NUL (U+0000)")
        return text

    def _integer(self, number: int, path: Path) -> Any:
        if abs(number) > limits.MAX_INTEGER:
            return self._leave_out(
                "SB110", path, "an integer of 2**53 or more cannot be held exactly", "write it as text"
            )
        return self._spend(len(str(number)), number)

    def _float(self, number: float, path: Path) -> Any:
        if not math.isfinite(number):
            return self._leave_out("SB110", path, f"the number is not finite: {number}")
        return self._spend(8, number)

    def _container(self, value: Any, path: Path) -> Any:
        if id(value) in self._open:
            return self._leave_out("SB110", path, "the value contains itself")
        if len(self._open) >= limits.MAX_DEFINITION_DEPTH:
            return self._leave_out("SB111", path, f"nested more than {limits.MAX_DEFINITION_DEPTH} levels deep")
        self._spend(2, None)
        self._open.add(id(value))
        try:
            return self._object(value, path) if issubclass(type(value), dict) else self._array(value, path)
        finally:
            self._open.discard(id(value))

    def _array(self, value: Any, path: Path) -> list[Any]:
        kind = list if issubclass(type(value), list) else tuple
        return [self.copy(item, (*path, index)) for index, item in enumerate(kind.__iter__(value))]

    def _object(self, value: dict[Any, Any], path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in dict.items(value):
            if not issubclass(type(key), str):
                self._leave_out("SB110", path, f"a key is not text but {_show(key)}", "write it in quotes")
                continue
            text = self._text(str.__str__(key), path)
            if text is not BROKEN:
                result[text] = self.copy(item, (*path, text))
        return result


def _type_name(kind: type) -> str:
    return type.__dict__["__name__"].__get__(kind)[:60]  # type: ignore[no-any-return]


def _show(key: object) -> str:
    """Format a key for a message; only built-in scalars are formatted by their own methods."""
    if key is None or type(key) in (bool, float):
        return repr(key)
    if type(key) is int and abs(key) < 10**12:
        return repr(key)
    return f"of type {_type_name(type(key))}"


@dataclass(frozen=True, slots=True)
class Place:
    """A value and its path. The accessors return None for a value of the wrong type and report it."""

    value: Any
    path: Path
    report: Report

    @property
    def broken(self) -> bool:
        return self.value is BROKEN

    def error(self, code: str, message: str, hint: str = "") -> None:
        self.report.add(code, self.path, message, hint)

    warn = error  # a code knows its severity; two names keep the callers readable

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def get(self, key: str) -> Place | None:
        """Return the value under a key of an object, if there is one."""
        return self.at(key) if key in self else None

    def part(self, key: str) -> Place:
        """Return the value under a key of an object, BROKEN where there is none: the accessors pass over that."""
        return self.at(key) if key in self else Place(BROKEN, (*self.path, key), self.report)

    def at(self, key: str | int) -> Place:
        return Place(self.value[key], (*self.path, key), self.report)

    def below(self, key: str) -> Path:
        """Return the path a key has or would have."""
        return (*self.path, key)

    def items(self) -> Iterator[tuple[str, Place]]:
        for key in self.value:
            yield key, self.at(key)

    def one_or_many(self) -> list[Place]:
        """Return the elements of a list; any other value as a list of one."""
        if isinstance(self.value, list):
            return [self.at(index) for index in range(len(self.value))]
        return [self]

    def is_object(self, what: str = "an object", hint: str = "") -> bool:
        return self._is(dict, what, hint)

    def is_array(self, what: str = "an array") -> bool:
        return self._is(list, what)

    def text(self, what: str = "text", hint: str = "") -> str | None:
        return self.value if self._is(str, what, hint) else None

    def flag(self) -> bool | None:
        return self.value if self._is(bool, "true or false") else None

    def whole(self, least: int, most: int) -> int | None:
        """Return an integer within a range."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self._is((), "an integer")
            return None
        if not least <= self.value <= most:
            self.error("SB114", f"{self.value} is not between {least} and {most}")
            return None
        return self.value

    def _is(self, kind: type | tuple[type, ...], what: str, hint: str = "") -> bool:
        if isinstance(self.value, kind):
            return True
        if not self.broken:
            self.error("SB104", f"expected {what}, found {describe(self.value)}", hint)
        return False

    def refuse_unknown(self, known: Collection[str], hints: dict[str, str] | None = None) -> None:
        """Report every key of the object that is not among the known ones."""
        for key in self.value:
            if key not in known:
                hint = (hints or {}).get(key, "")
                if hint:
                    self.report.add("SB105", self.below(key), f"no key {quote(key)}", hint)
                else:
                    self.report.add_unknown("SB105", self.below(key), "key", key, known)


def describe(value: Any) -> str:
    """Return the kind of a JSON value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    names = {str: "text", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), "something else")


Check = Callable[[object], str | None]


def require_key(place: Place, key: str, hint: str = "") -> Place:
    if key not in place:
        place.report.add("SB106", place.below(key), f'"{key}" is missing', hint)
    return place.part(key)


def read_checked(place: Place, kind: str, what: str, check: Check) -> str:
    """Read a text, and report it where it does not fit."""
    text = place.text(what)
    if text is not None and (why := check(text)) is not None:
        place.error("SB107", f"the {kind} {quote(text)} {why}")
    return text or ""


def read_name(place: Place, what: str, check: Check) -> str:
    """Read a name and check it; empty for an invalid one."""
    text = read_checked(place, f"{what} name", f"the {what}'s name", check)
    return text if text and check(text) is None else ""
