"""The variables of a document as data fields: their names here, and the kinds of value they are given."""

from __future__ import annotations

import re
from typing import Any, Final

from machines.engine import limits
from machines.formats.scxml.names import Names

from .code import Code
from .kinds import ANY, NONE, Kinds, kinds_of

UNSET: Final = object()
_RESERVED = frozenset(["trigger"])


class Fields:
    """Kinds grow while a document is read; reading it again until they rest makes them right everywhere."""

    def __init__(self, start: dict[str, Kinds] | None = None) -> None:
        self.names: dict[str, str] = {}  # name in the document -> data field
        self.initial: dict[str, Any] = {}  # data field -> JSON value
        self.schemas: dict[str, dict[str, Any]] = {}  # data field -> what else its declaration says
        self._fields = Names()
        self._start = start or {}
        self._found: dict[str, Kinds] = {}

    def declare(self, name: str, value: Any = UNSET, wanted: str = "") -> bool:
        """Whether the field has another name than the variable, or than is ``wanted`` for it."""
        if name not in self.names:
            self.names[name] = self._fields.take(_field(wanted or name))
        field = self.names[name]
        if value is not UNSET:
            self.initial[field] = value
        self.receive(name, NONE if value is UNSET else kinds_of(value))
        return field != (wanted or name)

    def receive(self, name: str, kinds: Kinds) -> None:
        """The variable is given a value of these kinds."""
        field = self.names[name]
        self._found[field] = self._found.get(field, frozenset()) | kinds

    def receive_anything(self, name: str) -> None:
        self.receive(name, ANY)

    def code(self, name: str) -> Code | None:
        field = self.names.get(name)
        if field is None:
            return None
        return Code(field, kinds=self._start.get(field, frozenset()) | self._found.get(field, frozenset()))

    @property
    def kinds(self) -> dict[str, Kinds]:
        return self._found

    def context(self) -> dict[str, Any]:
        """The fields as a definition declares them: of any type, with the values they begin with."""
        properties = {
            field: self.schemas.get(field, {}) | ({"default": self.initial[field]} if field in self.initial else {})
            for field in self.names.values()
        }
        return {"type": "object", "properties": properties}


def _field(name: str) -> str:
    """The name itself if a data field may be called so, else one much like it."""
    if _may_be(name):
        return name
    field = re.sub(r"[^A-Za-z0-9_]+", "_", name).lstrip("_0123456789")[: limits.MAX_FIELD_NAME - 8] or "x"
    return field if _may_be(field) else f"{field}_"


def _may_be(field: str) -> bool:
    return limits.check_field_name(field) is None and field not in _RESERVED
