"""TypeScript, and so JavaScript, to a syntax tree."""

from __future__ import annotations

from functools import cache

import tree_sitter
import tree_sitter_typescript

from machines.formats.scxml.ecmascript import parsing
from machines.formats.scxml.ecmascript.parsing import Node, SyntaxProblem, bare, named
from machines.formats.text import place

TYPED = ("as_expression", "satisfies_expression", "non_null_expression")  # a value, and what type it is said to have


class Script(parsing.Script):
    """As for ECMAScript, with the other grammar. Raises SyntaxProblem."""

    def __init__(self, text: str, *, expression: bool = False) -> None:
        self.text = text
        self._where = lambda offset: place(text, offset)
        self._before = "(" if expression else ""
        self._raw = f"({text}\n)".encode() if expression else text.encode()
        self.root: Node = _parser().parse(self._raw).root_node
        if self.root.has_error:
            raise self._problem()


def parse(text: str) -> tuple[Script, Node]:
    """One expression, brackets around it taken off."""
    script = Script(text, expression=True)
    statements = named(script.root)
    if len(statements) != 1 or statements[0].type != "expression_statement":
        raise SyntaxProblem("not one expression", 0)
    return script, bare(named(statements[0])[0])


def program(text: str) -> tuple[Script, list[Node]]:
    """The statements of a script."""
    script = Script(text)
    return script, named(script.root)


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_typescript.language_typescript()))
