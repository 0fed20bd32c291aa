"""The names that the JavaScript of one document can use, and the data fields of its variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from machines.formats.names import Names, field_name
from machines.formats.report import Report

from .code import Code
from .kinds import ANY, NONE, Kinds, kinds_of
from .parsing import Node, Script, list_parts, part

if TYPE_CHECKING:
    from .translator import Translator

Action = dict[str, Any]
UNSET: Final = object()


class Fields:
    """The data fields of a document's variables, with their kinds.

    Kinds grow while a document is read. It is read again until they no longer change, so that they are right
    everywhere.
    """

    def __init__(self, start: dict[str, Kinds] | None = None) -> None:
        self.names: dict[str, str] = {}  # name in the document -> data field
        self.initial: dict[str, Any] = {}  # data field -> JSON value
        self.schemas: dict[str, dict[str, Any]] = {}  # data field -> the rest of its declaration
        self._fields = Names()
        self._start = start or {}
        self._found: dict[str, Kinds] = {}

    def declare(self, name: str, value: Any = UNSET, wanted: str = "") -> bool:
        """Declare a variable.

        Return whether its field has another name than ``wanted``, or without ``wanted`` than the variable.
        """
        if name not in self.names:
            self.names[name] = self._fields.take(_field(wanted or name))
        field = self.names[name]
        if value is not UNSET:
            self.initial[field] = value
        self.receive(name, NONE if value is UNSET else kinds_of(value))
        return field != (wanted or name)

    def receive(self, name: str, kinds: Kinds) -> None:
        """Record that the variable is given a value of these kinds."""
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
        """Return the fields as a definition declares them: of any type, with their initial values."""
        properties = {
            field: self.schemas.get(field, {}) | ({"default": self.initial[field]} if field in self.initial else {})
            for field in self.names.values()
        }
        return {"type": "object", "properties": properties}


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the document. It is never called: each call is replaced by what it returns."""

    script: Script
    parameters: tuple[str, ...]
    body: Node  # a block, or the expression of an arrow function


@dataclass
class Scope:
    """``states``: the ids that In() can test, with their names. Formats with other names or rules override methods."""

    report: Report
    fields: Fields
    functions: dict[str, Function]
    states: dict[str, str]
    name: str  # the value of _name

    idle: frozenset[str] = frozenset()
    """Functions, and owners of methods, whose calls as a statement mean nothing."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Names of plain values."""
    loops: list[list[Action]] | None = None
    """Where the actions go that have to run before the expression; None where none can stand."""
    may_fail: bool = True
    """Whether what can only fail is translated as a failure; else it is refused."""

    @property
    def is_stopped(self) -> bool:
        """Return whether nothing more is to be translated."""
        return False

    def variable(self, name: str) -> Code | None:
        """Return a data field as an expression; None for a name that is not declared."""
        return self.fields.code(name)

    def translate_undeclared(self, translator: Translator, node: Node, name: str) -> Code:
        return translator.fails(node, f"{name} is not declared")

    def property(self, translator: Translator, node: Node, owner: Code, name: str) -> Code | None:
        """Return a property that has a special meaning here; None for any other."""
        return None

    def inside(self, *, loops: bool = True) -> Scope:
        """Return the scope of an inlined function. Without ``loops``, no action of it can run before the expression."""
        return self

    def declare_helper(self, name: str) -> None:
        """Declare a data field that a loop uses."""


def function_of(script: Script, node: Node) -> Function | None:
    """Return a function value or declaration; None if its parameters are more than names."""
    single = node.child_by_field_name("parameter")
    listed = node.child_by_field_name("parameters")
    parameters = [single] if single is not None else [pattern_of(one) for one in list_parts(listed)] if listed else []
    if any(parameter.type != "identifier" for parameter in parameters):
        return None
    return Function(script, tuple(script.of(parameter) for parameter in parameters), part(node, "body"))


def pattern_of(parameter: Node) -> Node:
    """Return the parameter without its TypeScript type."""
    return part(parameter, "pattern") if parameter.type in ("required_parameter", "optional_parameter") else parameter


def _field(name: str) -> str:
    """Return the name of a data field for a variable."""
    return f"{name}_" if name == "trigger" else field_name(name, "x")
