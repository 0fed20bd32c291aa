"""Definition files: reads text into definitions, and writes definitions as text.

``load`` only reads; ``machines.engine.definitions.check`` tells whether the definition is valid. Whatever a format
cannot express is reported as a finding, never lost silently.

A new format is an entry in ``registry``.
"""

from __future__ import annotations

from typing import Any

from machines.engine.definitions.findings import Finding, make_finding
from machines.engine.errors import DefinitionError

from .registry import DIAGRAMS, FORMATS, READERS, SUFFIXES, WRITERS, Base, format_of_text, may_be_xstate
from .text import decode

__all__ = [
    "DIAGRAMS",
    "FORMATS",
    "READERS",
    "SUFFIXES",
    "WRITERS",
    "dump",
    "format_of",
    "guess",
    "load",
    "may_be_xstate",
    "read",
]


def load(text: str | bytes, format: str = "json", base: Base = None) -> dict[str, Any]:
    """Return the definition that a text holds. Raises DefinitionError; its findings name line and column.

    ``base`` is the text's file, or the folder in which the files that it names are looked up. Without a base, a text
    that names files is refused. A text that does not name its machine gets the name of its file. These are refused,
    because readers of the same text would disagree or be harmed: duplicate keys, NaN and Infinity, integers too large
    for a double, more than 32 levels, more than 1 MiB, NUL, anything but UTF-8.
    """
    definition, findings = read(text, format, base)
    if definition is None or any(found.is_error for found in findings):
        raise DefinitionError(findings)
    return definition


def read(text: str | bytes, format: str = "json", base: Base = None) -> tuple[dict[str, Any] | None, list[Finding]]:
    """Return what could be read of a text, with all findings about it. Never raises.

    The definition is None when there is none. Next to an error it is a draft that a person can continue from.
    """
    if not isinstance(format, str) or format not in READERS:
        return None, [_unknown(format, READERS, "read")]
    decoded = decode(text)
    if isinstance(decoded, Finding):
        return None, [decoded]
    definition, findings = READERS[format](decoded, base)
    if isinstance(definition, dict):
        return definition, findings
    if not any(found.is_error for found in findings):
        what = "the text holds no object; a definition is one"
        findings = [
            *findings,
            make_finding("SB104", "", what, 'it starts like {"id": ..., "initial": ..., "states": {...}}'),
        ]
    return None, findings


def dump(definition: dict[str, Any], format: str = "json") -> tuple[str, list[Finding]]:
    """Write a definition as text. Return the text and findings about what it leaves out.

    Raises DefinitionError where no text can be written.
    """
    if not isinstance(format, str) or format not in WRITERS:
        raise DefinitionError([_unknown(format, WRITERS, "written")])
    return WRITERS[format](definition)


def format_of(name: str, otherwise: str = "json") -> str:
    """Return the format of a file, by its name."""
    lower = name.lower()
    return next((format for suffix, format in SUFFIXES.items() if lower.endswith(suffix)), otherwise)


def guess(text: str | bytes, name: str = "") -> str:
    """Guess the format of a text by its file name, or by its content if the name is missing, unknown or ``.json``."""
    named = format_of(name, "")
    look = format_of_text(text) if named in ("", "json") else ""
    return named if named and look in ("", "yaml", "scxml", *DIAGRAMS) else look


def _unknown(format: object, known: dict[str, Any], done: str) -> Finding:
    if isinstance(format, str) and format in FORMATS:
        *most, last = known
        return make_finding("SB130", "", f"{FORMATS[format]} cannot be {done}", f"use {', '.join(most)} or {last}")
    shown = repr(format) if isinstance(format, str) and len(format) <= 40 else "of that name"
    return make_finding("SB130", "", f"no format {shown}", f"there are: {', '.join(known)}")
