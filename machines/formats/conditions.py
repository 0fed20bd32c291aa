"""Turns what diagrams name or write freely into names, expressions and data fields of ours.

A diagram says ``[is paid]``, and the code for that name is somewhere else. Here it becomes a data field of that name,
which is false until it is set.
"""

import re
from collections.abc import Callable
from typing import Any

from machines.engine import expressions, limits
from machines.engine.definitions.findings import quote

from .text import Names, field_name

Complain = Callable[[str, str, str], None]  # code, message, hint

_END = re.compile(r"[\W_]+$")
_CALL = re.compile(r"(!|not\s+)?\s*([A-Za-z_][\w.]*)\s*\(.*\)\s*")
_NO_ARGUMENTS = re.compile(r"\b([A-Za-z_]\w*)\(\s*\)")
_OPERATORS = ((re.compile(r"&&"), " and "), (re.compile(r"\|\|"), " or "), (re.compile(r"!(?!=)"), " not "))
_ONLY_NAMES = re.compile(r"(?:[\s()]*\b[A-Za-z_]\w*\b)+[\s()]*")  # with and, or, not between them
_NAMED_CALL = re.compile(r"(?P<name>[^\s(]+)\s*\((?P<arguments>.*)\)")
_NOT_A_WORD = re.compile(r"[\s*\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_NOT_A_HANDLER = re.compile(r"[^A-Za-z0-9_.-]+")
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
            wanted = field_name(_END.sub("", name), "condition")[: limits.MAX_FIELD_NAME - 8]
            field = self._names[name] = Names(self.fields).take(wanted)
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
        found = _CALL.fullmatch(text)
        if found and found[2] not in expressions.FUNCTIONS and found[2] != "In" and text.count("(") == 1:
            field = self.name_field(found[2], complain)
            return f"not {field}" if found[1] else field
        ours = _NO_ARGUMENTS.sub(lambda match: match[0] if match[1] in expressions.FUNCTIONS else match[1], text)
        for pattern, word in _OPERATORS:
            ours = pattern.sub(word, ours)
        for candidate in dict.fromkeys((text, " ".join(ours.split()))):
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


def event_name(text: str, complain: Complain) -> str:
    """Return an event's name, without the brackets of a call and without spaces."""
    call = _NAMED_CALL.fullmatch(text)
    name = _word(call["name"] if call else text, limits.MAX_EVENT_NAME - 1)
    if limits.is_reserved_event(name):
        name = f"_{name}"
    if name != text:
        complain("SB223", f"the event name {quote(text)} is not allowed here; it is now {quote(name)}", "")
    return name


def handler_name(text: str, complain: Complain) -> str:
    call = _NAMED_CALL.fullmatch(text)
    plain = call["name"] if call else text
    name = _NOT_A_HANDLER.sub("_", plain).strip("-._")[: limits.MAX_NAME - 1] or "work"
    name = name if limits.check_handler_name(name) is None else f"_{name}"
    if name != text:
        complain("SB223", f"the handler name {quote(text)} is not allowed here; it is now {quote(name)}", "")
    return name


def machine_name(text: str) -> str:
    """Return a text as a machine's name; empty if no character of the text is valid in a name."""
    name = _NOT_A_HANDLER.sub("-", text).strip("-.")[: limits.MAX_NAME - 1]
    return name if not name or limits.check_machine_name(name) is None else f"_{name}"


def message_of(text: str, complain: Complain) -> dict[str, Any]:
    """Turn an action that is only a name into a message of that name, for another program to act on."""
    call = _NAMED_CALL.fullmatch(text)
    kind = _word(call["name"] if call else text, limits.MAX_EVENT_NAME - 1)
    emit: dict[str, Any] = {"type": f"_{kind}" if limits.is_reserved_event(kind) else kind}
    if call and call["arguments"].strip():
        emit["data"] = {"arguments": repr(call["arguments"].strip())}
    complain(
        "SB220",
        f"the action {quote(text)} is only a name; it is now a message of that name",
        'write out what it does, such as {"set": {"field": "expression"}}',
    )
    return {"emit": emit}


def _word(text: str, length: int) -> str:
    word = _NOT_A_WORD.sub("_", text.strip()).strip("_")[:length] or "_"
    return word if limits.check_event_name(word) is None else "_"
