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
        self.root: Node = _parser(tags=False).parse(self._raw).root_node
        if self.root.has_error:
            plain, self.root = self.root, _parser(tags=True).parse(self._raw).root_node
            if self.root.has_error:
                self.root = plain
                raise self._problem()


def untyped(node: Node) -> Node:
    """A value without brackets around it and without the type it is said to have."""
    node = bare(node)
    while node.type in TYPED:
        node = bare(named(node)[0])
    return node


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


def _parser(*, tags: bool) -> tree_sitter.Parser:
    """``tags``: with elements such as ``<div>``, where ``<Type>value`` has no meaning. Threads must not share one."""
    return tree_sitter.Parser(_language(tags=tags))


@cache
def _language(*, tags: bool) -> tree_sitter.Language:
    found = tree_sitter_typescript.language_tsx if tags else tree_sitter_typescript.language_typescript
    return tree_sitter.Language(found())
