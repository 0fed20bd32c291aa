"""Functions of the document. They are never called: each call is replaced by what the function returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import code, literals
from .code import ABSENT, Code
from .kinds import OBJECT
from .parsing import Node, bare, list_parts, part
from .scope import Function, function_of

if TYPE_CHECKING:
    from .translator import Translator

MAX_NESTED = 8  # nested functions; a recursive one reaches this limit
MAX_STATEMENTS = 100  # of one function


def call(translator: Translator, node: Node, function: Function, arguments: list[Node]) -> Code:
    inside = open_function(translator, node, function, arguments)
    if inside is None:
        return Code("None")
    body = function.body
    found = _find_value(inside, list_parts(body)) if body.type == "statement_block" else inside.value(body)
    translator.effects += inside.effects
    return found


def call_value(translator: Translator, node: Node, written: Node, arguments: list[Node]) -> Code:
    """Translate a function that is called where it is written."""
    function = function_of(translator.script, written)
    if function is None:
        return translator.refuse(node, "a function with anything but names as its parameters")
    return call(translator, node, function, arguments)


def construct(translator: Translator, node: Node, function: Function, arguments: list[Node]) -> Code:
    """Translate ``new f()``, where f contains only ``this.name = value``."""
    inside = open_function(translator, node, function, arguments)
    if inside is None or function.body.type != "statement_block":
        return Code("None")
    parts = []
    for statement in list_parts(function.body):
        assignment = bare(list_parts(statement)[0]) if statement.type == "expression_statement" else statement
        target = part(assignment, "left") if assignment.type == "assignment_expression" else assignment
        if target.type != "member_expression" or part(target, "object").type != "this":
            return inside.refuse(statement, "anything but this.name = value in what makes an object")
        value = inside.value(part(assignment, "right"))
        parts.append(f"{inside.of(part(target, 'property'))!r}: {value.text}")
    return Code("{" + ", ".join(parts) + "}", kinds=OBJECT)


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


def _find_value(inside: Translator, statements: list[Node]) -> Code:
    """Return the value that a body of ``var``, ``if`` and ``return`` returns."""
    if not statements:
        return ABSENT
    if len(statements) > MAX_STATEMENTS:
        return inside.refuse(statements[0], f"a function of more than {MAX_STATEMENTS} statements")
    first, rest = statements[0], statements[1:]
    if first.type == "return_statement":
        return inside.value(list_parts(first)[0]) if list_parts(first) else ABSENT
    if first.type == "statement_block":
        return _find_value(inside, [*list_parts(first), *rest])
    if first.type == "if_statement":
        condition = inside.condition(part(first, "condition"))
        otherwise = first.child_by_field_name("alternative")
        no = [*list_parts(otherwise), *rest] if otherwise is not None else rest
        return code.choose(condition, _branch(inside, [part(first, "consequence"), *rest]), _branch(inside, no))
    if first.type in ("variable_declaration", "lexical_declaration"):
        return _declare(inside, first, rest)
    if first.type in ("empty_statement", "expression_statement") and _is_idle(inside, first):
        return _find_value(inside, rest)
    return inside.refuse(first, "anything but var, if and return in a function")


def _branch(inside: Translator, statements: list[Node]) -> Code:
    """Translate a branch. Names declared in it hold only there."""
    before = dict(inside.locals)
    found = _find_value(inside, statements)
    inside.locals = before
    return found


def _declare(inside: Translator, declaration: Node, rest: list[Node]) -> Code:
    wrong = declare(inside, declaration)
    return inside.refuse(wrong, "taking apart in a declaration") if wrong is not None else _find_value(inside, rest)


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
    return literals.scalar(inside.script, found) is not literals.NOT_PLAIN


def find_value(inside: Translator, body: Node) -> Code:
    """Return the value that a function's block returns."""
    return _find_value(inside, list_parts(body))


def settle(inside: Translator, body: Node) -> Node | None:
    """Return the value that a block returns after declarations only; None if it does more."""
    *before, last = list_parts(body) or [body]
    for statement in before:
        if statement.type in ("variable_declaration", "lexical_declaration"):
            if declare(inside, statement) is not None:
                return None
        elif statement.type != "expression_statement" or not _is_idle(inside, statement):
            return None
    return list_parts(last)[0] if last.type == "return_statement" and list_parts(last) else None
