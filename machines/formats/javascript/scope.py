"""The names that the JavaScript of one document can use, and the data fields of its variables.

Functions of the document are never called: each call is replaced by what the function returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from machines.formats.text import Names, Report, field_name

from . import code, parsing
from .code import ABSENT, NONE, Code, Kinds, kinds_of
from .parsing import Node, Script, bare, list_parts, part

if TYPE_CHECKING:
    from .translator import Translator

Action = dict[str, Any]
UNSET: Final = object()
MAX_NESTED = 8  # nested functions; a recursive one reaches this limit
MAX_STATEMENTS = 100  # of one function
_DECLARATIONS = ("variable_declaration", "lexical_declaration")


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
        self.kinds: dict[str, Kinds] = {}  # data field -> the kinds that were found

    def declare(self, name: str, value: Any = UNSET, wanted: str = "") -> bool:
        """Declare a variable.

        Return whether its field has another name than ``wanted``, or without ``wanted`` than the variable.
        """
        wanted = wanted or name
        if name not in self.names:
            self.names[name] = self._fields.take("trigger_" if wanted == "trigger" else field_name(wanted, "x"))
        field = self.names[name]
        if value is not UNSET:
            self.initial[field] = value
        self.receive(name, NONE if value is UNSET else kinds_of(value))
        return field != wanted

    def receive(self, name: str, kinds: Kinds) -> None:
        """Record that the variable is given a value of these kinds."""
        field = self.names[name]
        self.kinds[field] = self.kinds.get(field, frozenset()) | kinds

    def code(self, name: str) -> Code | None:
        field = self.names.get(name)
        if field is None:
            return None
        return Code(field, kinds=self._start.get(field, frozenset()) | self.kinds.get(field, frozenset()))

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


def call(translator: Translator, node: Node, function: Function, arguments: list[Node]) -> Code:
    inside = open_function(translator, node, function, arguments)
    if inside is None:
        return Code("None")
    body = function.body
    found = find_value(inside, list_parts(body)) if body.type == "statement_block" else inside.value(body)
    translator.effects += inside.effects
    return found


def open_function(translator: Translator, node: Node, function: Function, arguments: list[Node]) -> Translator | None:
    """Return a translator for the function's body, in which its parameters stand for the arguments."""
    if translator.nested >= MAX_NESTED:
        translator.refuse(node, f"functions nested more than {MAX_NESTED} deep")
        return None
    values = translator.values(arguments)
    locals = {name: values[index] if index < len(values) else ABSENT for index, name in enumerate(function.parameters)}
    inside = translator.inner(function.script, locals)
    inside.nested = translator.nested + 1
    return inside


def find_value(inside: Translator, statements: list[Node]) -> Code:
    """Return the value that a body of ``var``, ``if`` and ``return`` returns."""
    if not statements:
        return ABSENT
    if len(statements) > MAX_STATEMENTS:
        return inside.refuse(statements[0], f"a function of more than {MAX_STATEMENTS} statements")
    first, rest = statements[0], statements[1:]
    if first.type == "return_statement":
        return inside.value(list_parts(first)[0]) if list_parts(first) else ABSENT
    if first.type == "statement_block":
        return find_value(inside, [*list_parts(first), *rest])
    if first.type == "if_statement":
        condition = inside.condition(part(first, "condition"))
        otherwise = first.child_by_field_name("alternative")
        no = [*list_parts(otherwise), *rest] if otherwise is not None else rest
        return code.choose(condition, _branch(inside, [part(first, "consequence"), *rest]), _branch(inside, no))
    if first.type in _DECLARATIONS:
        wrong = declare(inside, first)
        return inside.refuse(wrong, "taking apart in a declaration") if wrong is not None else find_value(inside, rest)
    if first.type in ("empty_statement", "expression_statement") and _is_idle(inside, first):
        return find_value(inside, rest)
    return inside.refuse(first, "anything but var, if and return in a function")


def _branch(inside: Translator, statements: list[Node]) -> Code:
    """Translate a branch. Names declared in it hold only there."""
    before = dict(inside.locals)
    found = find_value(inside, statements)
    inside.locals = before
    return found


def declare(inside: Translator, declaration: Node) -> Node | None:
    """Bind names to their declared values. Return the first part that cannot be bound so."""
    for declarator in list_parts(declaration):
        if declarator.type != "variable_declarator":
            return declarator
        name, value = part(declarator, "name"), declarator.child_by_field_name("value")
        if name.type == "identifier":
            inside.locals[inside.of(name)] = inside.value(value) if value is not None else ABSENT
        elif name.type != "object_pattern" or value is None or not take_apart(inside, name, inside.value(value)):
            return declarator
    return None


def take_apart(inside: Translator, pattern: Node, owner: Code) -> bool:
    """Bind the names of ``{a, b: c, d: {e}}`` to parts of the owner. Return whether all of them could be bound."""
    for one in list_parts(pattern):
        if one.type == "shorthand_property_identifier_pattern":
            inside.locals[inside.of(one)] = inside.property(one, owner, inside.of(one))
            continue
        if one.type != "pair_pattern":
            return False
        found = inside.property(one, owner, inside.of(part(one, "key")))
        name = part(one, "value")
        if name.type == "identifier":
            inside.locals[inside.of(name)] = found
        elif name.type != "object_pattern" or not take_apart(inside, name, found):
            return False
    return True


def _is_idle(inside: Translator, statement: Node) -> bool:
    """Return whether a statement has no effect: it is empty, a text such as 'use strict', or only checks or logs."""
    if not list_parts(statement):
        return True
    found = bare(list_parts(statement)[0])
    if found.type == "call_expression":
        return inside.of(part(found, "function")).split(".")[0] in inside.scope.idle
    return parsing.scalar(inside.script, found) is not parsing.NOT_PLAIN


def settle(inside: Translator, body: Node) -> Node | None:
    """Return the value that a block returns after declarations only; None if it does more."""
    *before, last = list_parts(body) or [body]
    for statement in before:
        is_declared = statement.type in _DECLARATIONS and declare(inside, statement) is None
        if not is_declared and (statement.type != "expression_statement" or not _is_idle(inside, statement)):
            return None
    return list_parts(last)[0] if last.type == "return_statement" and list_parts(last) else None
