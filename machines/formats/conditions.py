"""Turns conditions that are only names, or are written freely, into expressions and the data fields that they read.

Diagrams and classes of other libraries contain ``[is paid]`` and ``conditions: is_paid``. The code for such a name is
somewhere else. Here it becomes a data field of that name, which is false until it is set.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from machines.engine import expressions, limits
from machines.engine.definitions.report import quote

from .names import field_name

Complain = Callable[[str, str, str], None]  # code, message, hint

_END = re.compile(r"[\W_]+$")
_CALL = re.compile(r"(!|not\s+)?\s*([A-Za-z_][\w.]*)\s*\(.*\)\s*")
_NO_ARGUMENTS = re.compile(r"\b([A-Za-z_]\w*)\(\s*\)")
_LISTED = re.compile(r"['\"]?[A-Za-z_]\w*['\"]?(?:\s*,\s*['\"]?[A-Za-z_]\w*['\"]?)+")
_OPERATORS = ((re.compile(r"&&"), " and "), (re.compile(r"\|\|"), " or "), (re.compile(r"!(?!=)"), " not "))
_WORDS = ((re.compile(r"\bAND\b"), "and"), (re.compile(r"\bOR\b"), "or"), (re.compile(r"\bNOT\b"), "not"))
_SPACES = re.compile(r"\s+")
_ONLY_NAMES = re.compile(r"(?:[\s()]*\b[A-Za-z_]\w*\b)+[\s()]*")  # with and, or, not between them
_SET_IT = "set it with an action or when an instance is created, or write an expression"


class Conditions:
    """The data fields that the conditions of one text read."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._read: dict[str, str] = {}

    def name_field(self, name: str, complain: Complain) -> str:
        """Return the field that stands for a condition."""
        field = self._names.get(name)
        if field is None:
            field = self._names[name] = self._free(field_name(_END.sub("", name), "condition"))
            self.fields[field] = False
            message = f"the condition {quote(name)} is only a name; it is now the data field {quote(field)}"
            complain("SB224", message, _SET_IT)
        return field

    def read(self, text: str, complain: Complain) -> str:
        """Return a condition as an expression: unchanged if it is one already, else the field that stands for it."""
        if text not in self._read:
            self._read[text] = self._expression(text, complain)
        return self._read[text]

    def assign(self, name: str, value: str, complain: Complain) -> bool:
        """Declare both fields and return True, if a text assigns an expression to a possible data field."""
        if limits.check_field_name(name) is not None or not self._take(value, complain, literal=True):
            return False
        if name not in self.fields:
            self._declare(name, False, complain)
        self.fields[name] = None
        return True

    def _expression(self, text: str, complain: Complain) -> str:
        text = text.strip()
        quoted = text.strip("'\"")
        if quoted != text and re.fullmatch(r"\w+", quoted):
            text = quoted
        if _LISTED.fullmatch(text):
            return " and ".join(self.name_field(part.strip(" '\""), complain) for part in text.split(","))
        found = _CALL.fullmatch(text)
        if found and found[2] not in expressions.FUNCTIONS and found[2] != "In" and text.count("(") == 1:
            field = self.name_field(found[2], complain)
            return f"not {field}" if found[1] else field
        written = _as_ours(text)
        for candidate in dict.fromkeys((text, written)):
            if self._take(candidate, complain):
                return candidate
        return self.name_field(text, complain)

    def _take(self, text: str, complain: Complain, *, literal: bool = False) -> bool:
        """Declare the fields of a text and return True, if it is an expression that reads only data."""
        if len(text) > limits.MAX_EXPRESSION_TEXT:
            return False
        found = expressions.read(text, guard=not literal)
        if (
            found.problems
            or not (found.uses or literal)
            or any(use.kind not in ("data", "payload") for use in found.uses)
        ):
            return False
        names = [use.name for use in found.uses if use.kind == "data"]
        if any(limits.check_field_name(name) is not None for name in names):
            return False
        for name in names:
            self._declare(name, not literal and _ONLY_NAMES.fullmatch(text) is not None, complain)
        return True

    def _declare(self, name: str, is_condition: bool, complain: Complain) -> None:
        """Declare a field. A field that is itself a condition begins as false; one that is compared has any type."""
        if name not in self.fields and is_condition:
            self._names[name] = name
            complain(
                "SB224", f"the condition {quote(name)} is only a name; it is now the data field of that name", _SET_IT
            )
        elif name not in self.fields:
            message = f"the data field {quote(name)} is used and not declared; it is of any type"
            complain("SB224", message, 'declare it in "context" with an example')
        if not is_condition or name not in self.fields:
            self.fields[name] = False if is_condition else None

    def _free(self, field: str) -> str:
        taken, number = field, 2
        while taken in self.fields:
            taken, number = f"{field[: limits.MAX_FIELD_NAME - 8]}_{number}", number + 1
        return taken


def _as_ours(text: str) -> str:
    text = _NO_ARGUMENTS.sub(lambda match: match[0] if match[1] in expressions.FUNCTIONS else match[1], text)
    for pattern, word in (*_OPERATORS, *_WORDS):
        text = pattern.sub(word, text)
    return _SPACES.sub(" ", text).strip()
