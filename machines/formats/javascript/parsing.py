"""Parses JavaScript to a syntax tree with tree-sitter, which reads any text and never runs it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import tree_sitter
import tree_sitter_javascript
import tree_sitter_typescript

from machines.engine import limits
from machines.formats.text import place

Node = tree_sitter.Node
Where = Callable[[int], str]
FUNCTIONS = ("arrow_function", "function_expression")
_TYPED = ("as_expression", "satisfies_expression", "non_null_expression")  # a value with a type annotation


class SyntaxProblem(Exception):
    """The text is not ECMAScript. ``offset`` counts characters of the text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class Script:
    """One text with its tree. Gives the text and the place of each node.

    ``where`` gives the line and column of a character of the text, by default those in the text. ``typed``: with the
    types of TypeScript.
    """

    def __init__(self, text: str, where: Where | None = None, *, expression: bool = False, typed: bool = False) -> None:
        self.text = text
        self._where = where or partial(place, text)
        self._before = "(" if expression else ""
        self._raw = f"({text}\n)".encode() if expression else text.encode()
        if not typed and len(text) > limits.MAX_DEFINITION // 4:
            raise SyntaxProblem("longer than a script may be", 0)
        # With elements such as <div>, <Type>value has no meaning: what one grammar of TypeScript refuses, the other may
        # read.
        roots = (_parse(self._raw, grammar) for grammar in (("typescript", "tsx") if typed else ("javascript",)))
        self.root = next(roots)
        if self.root.has_error:
            whole = next((root for root in roots if not root.has_error), None)
            if whole is None:
                raise self._problem()
            self.root = whole

    def of(self, node: Node) -> str:
        return self._raw[node.start_byte : node.end_byte].decode(errors="replace")

    def offset(self, node: Node) -> int:
        before = len(self._raw[: node.start_byte].decode(errors="ignore")) - len(self._before)
        return max(0, min(before, len(self.text)))

    def where(self, node: Node) -> str:
        return self._where(self.offset(node))

    def _problem(self) -> SyntaxProblem:
        """Return the first syntax error that the parser found."""
        waiting, wrong = [self.root], self.root
        while waiting:
            node = waiting.pop()
            if node.is_error or node.is_missing:
                wrong = node
                break
            waiting.extend(reversed([child for child in node.children if child.has_error or child.is_missing]))
        return SyntaxProblem("not ECMAScript", self.offset(wrong))


def parse_expression(text: str, where: Where | None = None, *, typed: bool = False) -> tuple[Script, Node]:
    """Parse one expression, without the brackets around it. A semicolon at its end is ignored, as engines do."""
    script = Script(text.rstrip().rstrip(";"), where, expression=True, typed=typed)
    statements = list_parts(script.root)
    if len(statements) == 1 and statements[0].type == "expression_statement":
        (whole,) = list_parts(statements[0])
        if whole.type == "parenthesized_expression" and len(list_parts(whole)) == 1 and whole.start_byte == 0:
            return script, bare(whole)
    raise SyntaxProblem("not one expression", 0)


def parse_program(text: str, where: Where | None = None, *, typed: bool = False) -> tuple[Script, list[Node]]:
    """Parse the statements of a script."""
    script = Script(text, where, typed=typed)
    return script, list_parts(script.root)


def list_parts(node: Node) -> list[Node]:
    """Return the parts that have a meaning: no punctuation, no comments."""
    return [child for child in node.named_children if child.type not in ("comment", "html_comment")]


def bare(node: Node) -> Node:
    """Return the node inside any number of brackets, without a type annotation."""
    while True:
        if (node.type == "parenthesized_expression" and len(list_parts(node)) == 1) or node.type in _TYPED:
            node = list_parts(node)[0]
        elif node.type == "type_assertion":
            node = list_parts(node)[-1]
        else:
            return node


def part(node: Node, name: str) -> Node:
    """Return a part that the grammar guarantees."""
    found = node.child_by_field_name(name)
    assert found is not None, f"{node.type} has no {name}"
    return found


def is_function(node: Node) -> bool:
    return bare(node).type in FUNCTIONS


def arguments_of(node: Node) -> list[Node]:
    """Return the arguments of a call; none for ``new Date``."""
    found = node.child_by_field_name("arguments")
    return list_parts(found) if found is not None and found.type == "arguments" else []


def _parse(raw: bytes, grammar: str) -> Node:
    return tree_sitter.Parser(_language(grammar)).parse(raw).root_node  # threads must not share a parser


@cache
def _language(grammar: str) -> tree_sitter.Language:
    languages = {
        "javascript": tree_sitter_javascript.language,
        "typescript": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
    }
    return tree_sitter.Language(languages[grammar]())
