"""A value of the definition together with where it stands: what every reader takes and reports on."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from .path import Path, quote
from .plain import BROKEN
from .report import Report


@dataclass(frozen=True, slots=True)
class Place:
    """The accessors answer None for a value of the wrong shape and report it."""

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
        """The value under a key of an object, if there is one."""
        return self.at(key) if key in self else None

    def at(self, key: str | int) -> Place:
        return Place(self.value[key], (*self.path, key), self.report)

    def below(self, key: str) -> Path:
        """The path a key has or would have."""
        return (*self.path, key)

    def items(self) -> Iterator[tuple[str, Place]]:
        for key in self.value:
            yield key, self.at(key)

    def one_or_many(self) -> list[Place]:
        """The elements of a list; anything else is a list of one."""
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
        """An integer within a range."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self._is(_Never, "an integer")
            return None
        if not least <= self.value <= most:
            self.error("SB114", f"{self.value} is not between {least} and {most}")
            return None
        return self.value

    def _is(self, kind: type, what: str, hint: str = "") -> bool:
        if isinstance(self.value, kind):
            return True
        if not self.broken:
            self.error("SB104", f"expected {what}, found {describe(self.value)}", hint)
        return False

    def refuse_unknown(self, known: Collection[str], hints: dict[str, str] | None = None) -> None:
        """Reports every key of the object that is not among the known ones."""
        for key in self.value:
            if key not in known:
                hint = (hints or {}).get(key, "")
                if hint:
                    self.report.add("SB105", self.below(key), f"no key {quote(key)}", hint)
                else:
                    self.report.unknown("SB105", self.below(key), "key", key, known)


class _Never:
    """No value is of this type."""


def describe(value: Any) -> str:
    """The kind of a JSON value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    names = {str: "text", int: "a number", float: "a number", list: "an array", dict: "an object"}
    return names.get(type(value), "something else")


def text_of(place: Place | None) -> str:
    """A text that may be left out."""
    return (place.text() or "") if place else ""
