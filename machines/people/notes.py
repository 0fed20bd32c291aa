"""The handover note of a shift for the next one. A note that changed meanwhile is not overwritten."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from machines.connections import get_pattern
from machines.engine import BadInput
from machines.engine.errors import EngineFault
from machines.patterns import Changed, Record, Records

from .actor import Actor
from .errors import Forbidden

MAX_TEXT = 2000  # characters
KEY = "note"


@dataclass(frozen=True, slots=True)
class Note:
    """``revision``: 0 where nobody ever wrote one. ``author`` and ``at`` (ms): of its last change."""

    text: str = ""
    author: str = ""
    at: int = 0
    revision: int = 0


def records() -> Records:
    return get_pattern(Records, "handover")


def read(actor: Actor) -> Note:
    """Read the note as it is now. Raises Forbidden for who sees no machine."""
    if not actor.anywhere("view"):
        raise Forbidden("view")
    return note_of(records().get(KEY))


def write(actor: Actor, text: str, *, expect: int | None) -> Note:
    """Write a note in place of the revision ``expect``; None: of whichever there is. An account that may ``fire`` on
    any machine may write.

    Raises Forbidden, BadInput, and Changed with what stands there now as ``found``. What stands there already is
    written once.
    """
    with actor.records("note.write") as entry:
        if not actor.anywhere("fire"):
            raise Forbidden("fire")
        said = _clean(text)
        value = {"text": said, "author": actor.name, "at": int(time.time() * 1000)}
        try:
            note = note_of(records().put(KEY, value, expect=expect))
        except Changed as changed:
            note = note_of(changed.found)
            if note.text != said:
                entry.note(text=said, standing=note.revision)
                raise
            entry.void()  # sent twice: the first time is in the audit
            return note
        entry.note(text=said, revision=note.revision)
    return note


def note_of(record: Record) -> Note:
    if not record.exists:
        return Note()
    value: Any = record.value
    try:
        return Note(str(value["text"]), str(value["author"]), int(value["at"]), record.generation)
    except (TypeError, KeyError, ValueError) as error:
        raise EngineFault(
            f"the handover note is damaged (its key was written by another program): {error!r}"
        ) from error


def _clean(given: Any) -> str:
    """Clean a text: with lines as everybody ends them, and nothing after the last."""
    if not isinstance(given, str):
        raise BadInput(f"a note is a text, not {type(given).__name__}", code="SB403")
    text = given.replace("\r\n", "\n").replace("\r", "\n").rstrip()
    if len(text) > MAX_TEXT:
        raise BadInput(f"a note has at most {MAX_TEXT} characters; these are {len(text)}", code="SB403")
    if strange := sorted({sign for sign in text if not sign.isprintable() and sign not in "\n\t" and sign < " "}):
        raise BadInput(f"a note has no control characters, as {strange[0]!r}", code="SB403")
    return text
