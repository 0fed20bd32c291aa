"""Names and hints for constructs of Python's grammar that expressions do not have."""

from __future__ import annotations

import ast

from .functions import FUNCTIONS

CONSTRUCTS: dict[type[ast.AST], str] = {
    ast.Lambda: "a lambda",
    ast.ListComp: "a list comprehension",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dict comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.JoinedStr: "an f-string",
    ast.FormattedValue: "an f-string",
    ast.NamedExpr: "an assignment (:=)",
    ast.Starred: "a starred expression",
    ast.Set: "a set",
    ast.Slice: "a slice",
    ast.BitAnd: "the operator &",
    ast.BitOr: "the operator |",
    ast.BitXor: "the operator ^",
    ast.LShift: "the operator <<",
    ast.RShift: "the operator >>",
    ast.MatMult: "the operator @",
    ast.Invert: "the operator ~",
}
HINTS: dict[type[ast.AST], str] = {
    ast.JoinedStr: "join texts with +, as in 'n = ' + str(n)",
    ast.Set: "write a list: [a, b]",
    ast.BitAnd: 'write "and"',
    ast.BitOr: 'write "or"',
    ast.Invert: 'write "not"',
}
JSON_WORDS = {"true": "True", "false": "False", "null": "None", "undefined": "None", "none": "None"}


def name_construct(node: ast.AST) -> str:
    """Return the name of a construct that is not allowed."""
    return CONSTRUCTS.get(type(node), f"a {type(node).__name__}")


def find_hint(node: ast.AST) -> str:
    return HINTS.get(type(node), "")


def find_method_hint(function: ast.Attribute) -> str:
    """Return the hint for a method call: write ``lower(token)`` for Python's ``token.lower()``."""
    if function.attr not in FUNCTIONS:
        return ""
    return f"write {FUNCTIONS[function.attr].usage}"
