"""Expressions of ECMAScript as expressions of ours: the same worth, and as plain as that allows."""

from __future__ import annotations

from . import calls, changes, checking, operators
from .code import Code
from .kinds import NOTHING
from .parsing import Node, Script, SyntaxProblem, bare, part
from .scope import Action, Scope
from .translator import Translator


class ExpressionTranslator(Translator):
    """Translates every kind of node: those of ``Translator``, calls, and what changes a variable."""


def _unary(translator: Translator, node: Node) -> Code:
    if translator.operator(node) == "delete":
        return changes.delete(translator, node, bare(part(node, "argument")))
    return operators.unary(translator, node)


ExpressionTranslator.handlers = {
    **Translator.handlers,
    "call_expression": calls.call,
    "new_expression": calls.new,
    "unary_expression": _unary,
    "update_expression": changes.update,
    "assignment_expression": changes.assignment,
    "augmented_assignment_expression": changes.assignment,
}


def read(
    scope: Scope, script: Script, node: Node, *, condition: bool = False, locals: dict[str, Code] | None = None
) -> tuple[Code, list[Action]]:
    """An expression with what it changes."""
    translator = ExpressionTranslator(scope, script, locals)
    found = translator.condition(node) if condition else translator.value(node)
    if checking.wrong(found):
        translator = ExpressionTranslator(scope, script, locals)
        translator.careful = True
        found = translator.condition(node) if condition else translator.value(node)
    return checking.settled(translator, node, found), translator.effects


def broken(problem: SyntaxProblem, text: str) -> Code:
    shown = " ".join(text.split())[:60]
    return Code(f"fail({f'{problem.message}: {shown}'!r})", kinds=NOTHING)
