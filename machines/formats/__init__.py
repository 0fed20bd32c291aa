"""Definition files: reads text into definitions, and writes definitions as text.

``load`` only reads; ``machines.engine.definitions.check`` tells whether the definition is valid. Whatever a format
cannot express is reported as a finding, never lost silently.

A new format is one entry in ``FORMATS`` and one in ``READERS`` or ``WRITERS``, or in both.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from machines.conf import extras
from machines.engine.definitions.findings import Finding, make_finding
from machines.engine.errors import DefinitionError

from . import json, python_statemachine, yaml, yaml_text
from .guessing import format_of_text, may_be_xstate
from .text import decode

__all__ = ["FORMATS", "READERS", "WRITERS", "dump", "format_of", "guess", "listed", "load", "may_be_xstate", "read"]

Base = str | Path | None
Reader = Callable[[str, Base], tuple[Any, list[Finding]]]
Writer = Callable[[dict[str, Any]], tuple[str, list[Finding]]]


def _plain(reader: Callable[[str], tuple[Any, list[Finding]]]) -> Reader:
    """Return a reader for a format whose texts never name other files."""
    return lambda text, base: reader(text)


def _reader(module: str) -> Reader:
    """Return ``read(text, base)`` of a module below this package. The module is imported when it is first needed."""

    def read(text: str, base: Base) -> tuple[Any, list[Finding]]:
        try:
            found = import_module(f".{module}", __name__)
        except ModuleNotFoundError as error:
            return None, [_missing(module, error)]
        return cast("tuple[Any, list[Finding]]", found.read(text, base))

    return read


def _writer(module: str) -> Writer:
    """Return ``write(definition)`` of a module below this package. The module is imported when it is first needed."""

    def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
        try:
            found = import_module(f".{module}", __name__)
        except ModuleNotFoundError as error:
            raise DefinitionError([_missing(module, error)]) from None
        return cast("tuple[str, list[Finding]]", found.write(definition))

    return write


def _missing(module: str, error: ModuleNotFoundError) -> Finding:
    """Say which extra to install. Raises the error if no extra contains the module."""
    extra = extras.find_extra(error.name)
    if extra is None:
        raise error
    return make_finding(
        "SB137", "", extras.explain(f"the format {module.rpartition('.')[2]}", extra, [error.name or ""])
    )


# name: what people call it
FORMATS = {
    "json": "JSON",
    "yaml": "YAML",
    "scxml": "SCXML",
    "xstate": "XState machine config",
    "sm": "redis-state-machine template",
    "mermaid": "Mermaid",
    "dot": "DOT",
}
READERS: dict[str, Reader] = {
    "json": _plain(json.read),
    "yaml": _plain(yaml.read),
    "scxml": _reader("scxml"),
    "xstate": _reader("xstate"),
    "sm": _reader("sm"),
    "mermaid": _reader("diagrams.reading.document"),
}
WRITERS: dict[str, Writer] = {
    "json": json.write,
    "yaml": yaml_text.write,
    "scxml": _writer("scxml"),
    "xstate": _writer("xstate"),
    "mermaid": _writer("diagrams.mermaid"),
    "dot": _writer("diagrams.dot"),
}
# Diagrams are read only on request. They are not searched for among the definitions of a folder.
DIAGRAMS = ("mermaid",)
# The first suffix that matches the file name applies.
SUFFIXES = {
    ".xstate.json": "xstate",
    ".sm.json": "sm",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".scxml": "scxml",
    ".sm": "sm",
    **dict.fromkeys((".mmd", ".mermaid"), "mermaid"),
    **dict.fromkeys((".dot", ".gv"), "dot"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx"), "xstate"),
}


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


def listed(formats: dict[str, Any]) -> str:
    """Return the names of READERS or WRITERS as they appear in a sentence: ``json, yaml or scxml``."""
    *most, last = formats
    return f"{', '.join(most)} or {last}" if most else last


def _unknown(format: object, known: dict[str, Any], done: str) -> Finding:
    if isinstance(format, str) and format in FORMATS:
        return make_finding("SB130", "", f"{FORMATS[format]} cannot be {done}", f"use {listed(known)}")
    if format == python_statemachine.FORMAT:
        return make_finding("SB130", "", "classes of python-statemachine are no text", python_statemachine.HINT)
    shown = repr(format) if isinstance(format, str) and len(format) <= 40 else "of that name"
    return make_finding("SB130", "", f"no format {shown}", f"there are: {', '.join(known)}")
