"""What the ECMAScript of one document can name: its data, its functions, its states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from machines.formats.report import Report

from .code import Code
from .fields import Fields
from .parsing import Node, Script


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the document. It is never called: each call is replaced by what it returns."""

    script: Script
    parameters: tuple[str, ...]
    body: Node  # a block, or the expression of an arrow function


@dataclass(slots=True)
class Scope:
    """``states``: the ids In() can find active, with the names they have here."""

    report: Report
    fields: Fields
    functions: dict[str, Function]
    states: dict[str, str]
    name: str  # what _name is worth

    def variable(self, name: str) -> Code | None:
        """A data field as an expression; None for a name that nothing declares."""
        return self.fields.code(name)


Action = dict[str, Any]
