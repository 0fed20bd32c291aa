"""Changes names that only XState allows to the nearest valid name, with a finding for each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from machines.engine import limits
from machines.engine.definitions.report import Path, quote
from machines.formats import names

from .dialect import DONE_ACTOR, DONE_INVOKE, DONE_STATE, DONE_STATE_5, ERROR_ACTOR, ERROR_INVOKE, ERROR_PLATFORM

if TYPE_CHECKING:
    from .context import Reading

_OF_XSTATE = ("xstate.done.", "xstate.error.", "xstate.after.")
_NOT_A_WORD = re.compile(r"[\s*\x00-\x1f\x7f-\x9f]+")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


def event_to_send(name: str, path: Path, reading: Reading) -> str:
    """Return an event name for raise, send and emit. Events that only XState or this engine creates are errors."""
    if limits.is_reserved_event(name) or name.startswith(_OF_XSTATE):
        message = f"the event {quote(name)} is the engine's own and cannot be raised, sent or emitted"
        reading.report.add("SB107", path, message, "write a name of your own")
    return event_name(name, path, reading)


def event_name(name: str, path: Path, reading: Reading) -> str:
    changed = _NOT_A_WORD.sub("_", name)[: limits.MAX_EVENT_NAME] or "_"
    return _note_change("event", name, changed, path, reading)


def descriptor(name: str, path: Path, reading: Reading) -> str:
    """Return a descriptor for ``on``. Patterns stay the same, and the engine's own events get the names used here."""
    for prefix, ours in ((DONE_ACTOR, DONE_INVOKE), (ERROR_ACTOR, ERROR_INVOKE), (ERROR_PLATFORM, ERROR_INVOKE)):
        if name.startswith(prefix):
            return ours + name.removeprefix(prefix)
    for prefix in (DONE_STATE_5, DONE_STATE):
        if name.startswith(prefix):
            return _done_state(name.removeprefix(prefix), reading)
    if name == "*":
        return name
    base = name.removesuffix(".*")
    return event_name(base, path, reading) + name[len(base) :]


def _done_state(id: str, reading: Reading) -> str:
    """Return the name of the event for the end of a state.

    XState uses the state's id, which includes the machine's; here it is the state's own name.
    """
    found = reading.states.find_by_id(id)
    return DONE_STATE + (found.word if found and found.parent else id)


def machine_name(name: str, path: Path, reading: Reading) -> str:
    return _plain(name, "machine", path, reading, limits.check_machine_name)


def handler_name(name: str, path: Path, reading: Reading) -> str:
    return _plain(name, "handler", path, reading, limits.check_handler_name)


def field_name(name: str, path: Path, reading: Reading) -> str:
    return _note_change("data field", name, names.field_name(name, "field"), path, reading)


def _plain(name: str, what: str, path: Path, reading: Reading, check: Callable[[object], str | None]) -> str:
    changed = name if check(name) is None else _NOT_A_NAME.sub("-", name).strip("-.")[: limits.MAX_NAME]
    if check(changed) is not None:
        changed = f"_{changed}"[: limits.MAX_NAME]
    return _note_change(what, name, changed, path, reading)


def _note_change(what: str, name: str, changed: str, path: Path, reading: Reading) -> str:
    if changed != name:
        message = f"the {what} name {quote(name)} is not allowed here; it is now {quote(changed)}"
        reading.report.add("SB223", path, message)
    return changed
