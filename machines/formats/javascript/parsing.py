"""Parses JavaScript to a syntax tree with tree-sitter, which reads any text and never runs it; and reads the values of
the tree that are written out, as JSON has them."""

import math
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import tree_sitter
import tree_sitter_javascript
import tree_sitter_typescript

from machines.engine import limits
from machines.formats.text import place

Node = tree_sitter.Node
Where = Callable[[int], str]
FUNCTIONS = ("arrow_function", "function_expression")
_TYPED = ("as_expression", "satisfies_expression", "non_null_expression")  # a value with a type annotation
NOT_PLAIN: Final = object()
UNDEFINED: Final = object()
MAX_DEPTH = 20
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


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

    def locate(self, node: Node) -> str:
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


def plain(script: Script, node: Node, depth: int = 0) -> Any:
    """Return the JSON value, UNDEFINED, or NOT_PLAIN for a value that has to be calculated."""
    node = bare(node)
    if depth > MAX_DEPTH:
        return NOT_PLAIN
    if node.type == "array":
        return _array(script, node, depth)
    if node.type == "object":
        return _object(script, node, depth)
    if node.type == "unary_expression" and script.of(part(node, "operator")) == "-":
        value = plain(script, part(node, "argument"), depth + 1)
        return -value if isinstance(value, int | float) and not isinstance(value, bool) else NOT_PLAIN
    return scalar(script, node)


def scalar(script: Script, node: Node) -> Any:
    if node.type in ("string", "number"):
        value = string(script, node) if node.type == "string" else number(script.of(node))
        return NOT_PLAIN if value is None or (isinstance(value, str) and not storable(value)) else value
    return {"true": True, "false": False, "null": None, "undefined": UNDEFINED}.get(node.type, NOT_PLAIN)


def _array(script: Script, node: Node, depth: int) -> Any:
    items = [plain(script, item, depth + 1) for item in list_parts(node)]
    commas = sum(child.type == "," for child in node.children)
    if commas > max(0, len(items) - 1) and not (commas == len(items) and node.children[-2].type == ","):
        return NOT_PLAIN  # holes
    if any(item is NOT_PLAIN for item in items):
        return NOT_PLAIN
    return [None if item is UNDEFINED else item for item in items]


def _object(script: Script, node: Node, depth: int) -> Any:
    result: dict[str, Any] = {}
    for pair in list_parts(node):
        key = key_of(script, part(pair, "key")) if pair.type == "pair" else None
        value = plain(script, part(pair, "value"), depth + 1) if key is not None else NOT_PLAIN
        if key is None or value is NOT_PLAIN:
            return NOT_PLAIN
        if value is not UNDEFINED:
            result[key] = value
    return result


def key_of(script: Script, node: Node) -> str | None:
    """Return the name of a property as written in an object literal; None if the name is calculated."""
    if node.type == "string":
        key = string(script, node)
        return key if storable(key) else None
    if node.type == "number":
        value = number(script.of(node))
        return None if value is None else str(int(value) if value == int(value) else value)
    return script.of(node) if node.type in ("property_identifier", "identifier") else None


def string(script: Script, node: Node) -> str:
    """Return the value of a text literal, or of a fixed part of a template."""
    return unescape(script.of(node)[1:-1])


def unescape(written: str) -> str:
    """Decode the escapes of a text. A pair of escaped surrogates becomes the one character that it encodes."""
    held = _ESCAPE.sub(_character, written)
    return _SURROGATES.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), held)


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        return chr(min(int(code, 16), 0x10FFFF))
    letter = match[4]
    return "" if letter in ("\n", "\r\n", "\r", "\u2028", "\u2029") else _SIMPLE.get(letter, letter)


def storable(value: str) -> bool:
    """Return whether a text can be stored: it has neither NUL nor half of a surrogate pair."""
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value)


def number(written: str) -> int | float | None:
    """Parse a number. Return None for BigInt and for a number that a double cannot hold exactly."""
    text = written.replace("_", "").lower()
    try:
        if text[:2] in ("0x", "0o", "0b"):
            value: int | float = int(text, 0)
        elif len(text) > 1 and text[0] == "0" and text.isdigit():
            value = int(text, 8 if set(text) <= set("01234567") else 10)
        else:
            value = int(text) if text.isdigit() else float(text)
    except ValueError:
        return None
    if value < 2**53:
        return int(value) if value == int(value) else value
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
