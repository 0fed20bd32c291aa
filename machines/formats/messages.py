"""Turns the names of actions, work and events into names that are valid here."""

from __future__ import annotations

import re
from typing import Any

from machines.engine import limits
from machines.engine.definitions.report import quote

from .conditions import Complain

_CALL = re.compile(r"(?P<name>[^\s(]+)\s*\((?P<arguments>.*)\)")
_SPACES = re.compile(r"[\s*\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_NOT_A_HANDLER = re.compile(r"[^A-Za-z0-9_.-]+")


def event_name(text: str, complain: Complain) -> str:
    """Return an event's name, without the brackets of a call and without spaces."""
    call = _CALL.fullmatch(text)
    name = _word(call["name"] if call else text, limits.MAX_EVENT_NAME - 1)
    if limits.is_reserved_event(name):
        name = f"_{name}"
    if name != text:
        complain("SB223", f"the event name {quote(text)} is not allowed here; it is now {quote(name)}", "")
    return name


def handler_name(text: str, complain: Complain) -> str:
    call = _CALL.fullmatch(text)
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
    call = _CALL.fullmatch(text)
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
    word = _SPACES.sub("_", text.strip()).strip("_")[:length] or "_"
    return word if limits.check_event_name(word) is None else "_"
