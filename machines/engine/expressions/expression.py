"""The result of reading an expression, and its errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

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
