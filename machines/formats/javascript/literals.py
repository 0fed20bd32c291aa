"""Reads literals of ECMAScript as JSON values, where they have one."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from .parsing import Node, Script, bare, list_parts, part


class _NotPlain:
    def __repr__(self) -> str:
        return "NOT_PLAIN"


NOT_PLAIN: Final = _NotPlain()
UNDEFINED: Final = object()
MAX_DEPTH = 20

_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


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
    if node.type == "string":
        value = string(script, node)
        return value if storable(value) else NOT_PLAIN
    if node.type == "number":
        counted = number(script.of(node))
        return NOT_PLAIN if counted is None else counted
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
