"""Parses the text of an expression to a Python syntax tree, and turns every exception of the parser into one error;
and the records of an expression that was read."""

import ast
import os
import re
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from machines.engine import limits

# Python only warns about these, or keeps the backslash; a definition should not depend on which.
_UNKNOWN_ESCAPE = re.compile(r"\\(?:\\|(?=[\n'\"abfnrtv0-7xuUN]).)|(?P<bad>\\.?)", re.DOTALL)
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|$)")  # as the parser counts lines: a form feed ends none
# CPython 3.11 counts the depth of a tree it makes once for all threads: two at a time fail with a SystemError.
_parsing = threading.Lock()
os.register_at_fork(before=_parsing.acquire, after_in_parent=_parsing.release, after_in_child=_parsing.release)


class Source:
    """An expression's text as the parser reads it: trimmed, on one line, with offsets that can be mapped back."""

    def __init__(self, text: str) -> None:
        if len(text) > limits.MAX_EXPRESSION_TEXT:
            raise ExpressionError(f"longer than {limits.MAX_EXPRESSION_TEXT} characters")
        self.indent = len(text) - len(text.lstrip())
        self.text = _on_one_line(text.strip())
        if not self.text:
            raise ExpressionError("empty", hint="leave the key out, or write an expression such as None")

    def parse(self) -> ast.expr:
        for match in _UNKNOWN_ESCAPE.finditer(self.text):
            if match["bad"] is not None:
                problem = f"unknown escape {match['bad']}"
                raise ExpressionError(problem, self.indent + match.start(), hint="write \\\\ for a backslash")
        try:
            with _parsing:
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            offset = error.offset - 1 if error.offset else len(self.text)  # 0: the text ended too early
            raise ExpressionError(self._reason(error, offset), self.indent + offset) from None
        except (MemoryError, RecursionError):
            raise ExpressionError("nested too deeply") from None
        except (ValueError, UnicodeError):
            raise ExpressionError("not readable text: it holds NUL or half of a surrogate pair") from None

    def offset(self, node: ast.expr) -> int:
        """Return where a node starts, in characters of the given text (the parser counts bytes)."""
        if node.lineno != 1:
            return self.indent
        return self.indent + len(self._lines[0][: node.col_offset].decode(errors="ignore"))

    def _reason(self, error: SyntaxError, offset: int) -> str:
        reason = error.msg or "invalid syntax"
        if offset >= len(self.text):
            return "the expression ends too early"
        if "Maybe you meant '=='" in reason or self.text[offset : offset + 1] == "=":
            return 'an assignment is not an expression; "==" compares'
        return "invalid syntax" if reason.startswith("invalid syntax") else reason

    def segment(self, node: ast.expr) -> str:
        """Return the text of one node, without the brackets around it."""
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        if first == last:
            return self._lines[first][node.col_offset : node.end_col_offset].decode()
        ends = self._lines[first][node.col_offset :], self._lines[last][: node.end_col_offset]
        return b"".join((ends[0], *self._lines[first + 1 : last], ends[1])).decode()

    @cached_property
    def _lines(self) -> list[bytes]:
        """Split the text into lines once: a guard needs the text of each of its parts."""
        return _LINE.findall(self.text.encode())


def _on_one_line(text: str) -> str:
    """Replace line breaks by spaces, unless that would change a comment or a long string."""
    if "#" in text or '"""' in text or "'''" in text:
        return text
    return re.sub(r"[\r\n]+", " ", text)


Node = list[Any]  # ["op", part, ...]: the JSON tree the Lua side evaluates
ProblemKind = Literal["syntax", "call", "function"]
UseKind = Literal["data", "payload", "instance", "trigger", "state"]


class ExpressionError(ValueError):
    """An error in an expression. ``offset`` counts characters from the start of the text.

    ``kind`` is ``syntax``, ``call`` (a function used wrongly) or ``function`` (no function of that ``name``).
    """

    def __init__(
        self, message: str, offset: int = 0, *, hint: str = "", kind: ProblemKind = "syntax", name: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint
        self.kind = kind
        self.name = name


@dataclass(frozen=True, slots=True)
class Use:
    """A name the expression reads: a data field, ``event.<name>``, ``instance.<name>``, ``trigger.<name>`` or
    ``In("<name>")``."""

    kind: UseKind
    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that was read. ``tree`` may be evaluated only when ``problems`` is empty."""

    text: str
    tree: Node
    uses: tuple[Use, ...] = ()
    problems: tuple[ExpressionError, ...] = ()
