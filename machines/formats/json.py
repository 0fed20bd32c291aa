"""Reads strict JSON by RFC 8259: Python's own reader accepts NaN, duplicate keys and any depth."""

import json
import re
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding, make_finding, quote
from machines.engine.errors import DefinitionError

from .text import MAX_FINDINGS, place

_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\\x00-\x1f]|\\.)*"?)"""  # the end is optional, so that a missing quote is not retried often
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<colon>:)|(?P<comma>,)"
    r"|(?P<constant>-?\b(?:NaN|Infinity)\b)"
    r"|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
)
_HINTS = {
    "Expecting property name enclosed in double quotes": "keys stand in double quotes; no comma after the last one",
    "Expecting value": "text stands in double quotes; JSON has no comments and no comma after the last element",
    "Extra data": "one object is all there may be",
    "Illegal trailing comma before end of object": "remove the comma",
    "Illegal trailing comma before end of array": "remove the comma",
}


def read(text: str) -> tuple[Any, list[Finding]]:
    """Return the value and all findings. The value counts only if there are no findings."""
    if not text.strip():
        return None, [make_finding("SB131", "", "the text is empty")]
    scan = _Scan(text)
    scan.run()
    if scan.findings:
        return None, scan.findings
    try:
        return json.loads(text), []
    except json.JSONDecodeError as error:
        where = place(text, min(error.pos, len(text)))
        return None, [make_finding("SB131", where, f"not JSON: {error.msg}", _HINTS.get(error.msg, ""))]
    except (RecursionError, ValueError):  # the scan excludes both, but a reader must not depend on it
        return None, [make_finding("SB131", "", "not JSON")]


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Write the definition indented, in its own order. Nothing is lost."""
    try:
        return json.dumps(definition, indent=2, ensure_ascii=False, allow_nan=False) + "\n", []
    except (TypeError, ValueError, RecursionError) as error:
        raise DefinitionError([make_finding("SB110", "", f"not plain JSON: {error}")]) from error


class _Scan:
    """One pass over the tokens, for errors that the standard reader accepts. The grammar is left to that reader."""

    def __init__(self, text: str) -> None:
        self.findings: list[Finding] = []
        self._text = text
        self._open: list[set[str] | None] = []  # the keys so far of each object around; None for an array
        self._last: tuple[str, int] | None = None  # the text token just before, in case it is a key

    def run(self) -> None:
        for match in _TOKEN.finditer(self._text):
            if len(self.findings) >= MAX_FINDINGS:
                return
            kind = match.lastgroup or ""
            if kind == "open":
                self._open.append(set() if match[0] == "{" else None)
                if len(self._open) > limits.MAX_DEFINITION_DEPTH:
                    self._add("SB111", match.start(), f"nested more than {limits.MAX_DEFINITION_DEPTH} levels deep")
                    return
            elif kind == "close" and self._open:
                self._open.pop()
            elif kind == "constant":
                self._add("SB133", match.start(), f"{match[0]} is not a number in JSON", "write null, or a text")
            elif kind == "number":
                self._number(match[0], match.start())
            elif kind == "colon" and self._last:
                self._key(*self._last)
            self._last = (match[0], match.start()) if kind == "text" else None

    def _add(self, code: str, offset: int, message: str, hint: str = "") -> None:
        self.findings.append(make_finding(code, place(self._text, offset), message, hint))

    def _key(self, token: str, offset: int) -> None:
        keys = self._open[-1] if self._open else None
        if keys is None:
            return
        try:
            key = json.loads(token)
        except ValueError:
            return  # a bad escape: the reader will report it
        if key in keys:
            self._add("SB132", offset, f"the key {quote(key)} stands twice in one object")
        keys.add(key)

    def _number(self, token: str, offset: int) -> None:
        if token.lstrip("-").isdigit():
            if len(token) > 17 or abs(int(token)) > limits.MAX_INTEGER:
                self._add("SB133", offset, "an integer of 2**53 or more cannot be held exactly", "write it as text")
        elif float(token) in (float("inf"), float("-inf")):
            self._add("SB133", offset, "the number is too large")
