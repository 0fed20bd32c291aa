"""What reading an expression gives, and what can be wrong with one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Node = list[Any]  # ["op", part, ...]: the JSON tree the Lua side evaluates
ProblemKind = Literal["syntax", "call", "function"]
UseKind = Literal["data", "payload", "instance", "trigger", "state"]


class ExpressionError(ValueError):
    """``offset`` counts characters from the start of the text.

    ``kind`` is ``syntax``, ``call`` (a function used wrongly) or ``function`` (none of that ``name``).
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
    ``In("<name>")``.
    """

    kind: UseKind
    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Expression:
    """``problems`` is empty exactly when ``tree`` may be evaluated."""

    text: str
    tree: Node
    uses: tuple[Use, ...] = ()
    problems: tuple[ExpressionError, ...] = ()
