"""Definition files: reads text into definitions, and writes definitions as text.

``load`` only reads; ``machines.engine.definitions.check`` tells whether the definition is valid. Whatever a format
cannot express is reported as a finding, never lost silently.

A new format is an entry in ``FORMATS`` and one in ``READERS`` or ``WRITERS``, or in both.
"""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from machines.conf import extras
from machines.engine.definitions.findings import Finding, make_finding
from machines.engine.errors import DefinitionError

from . import json, yaml
from .text import decode

Base = str | Path | None
Reader = Callable[[str, Base], tuple[Any, list[Finding]]]
Writer = Callable[[dict[str, Any]], tuple[str, list[Finding]]]
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
LOOK = 100_000  # characters from the start: enough to meet a word that only one format has
_XSTATE = re.compile(r'"queryLanguage"\s*:|"type"\s*:\s*"xstate\.|"predictableActionArguments"\s*:')
# Guards that are objects, actions that are names, guards called as in version 4: errors in a definition of ours.
_LIKE_XSTATE = re.compile(r'"guard"\s*:\s*\{|"(?:actions|entry|exit)"\s*:\s*\[?\s*(?:"|\{\s*"type")|"cond"\s*:')
_SCRIPT = re.compile(r"\b(?:createMachine|Machine|setup)\s*\(")
_MERMAID = re.compile(
    r"(?:---\n.*?\n---\s*|%%[^\n]*\n\s*|```+\s*mermaid\s*)*stateDiagram(?:-v2)?[ \t]*(?:;|\r?\n|$)", re.DOTALL
)
_TEMPLATE = ("initial", "map", "current", "reason")


def _load(module: str) -> Any:
    """Import a module below this package when it is first needed. Raises DefinitionError with the extra to install."""
    try:
        return import_module(f".{module}", __package__)
    except ModuleNotFoundError as error:
        extra = extras.find_extra(error.name)
        if extra is None:
            raise
        what = extras.explain(f"the format {module.rpartition('.')[2]}", extra, [error.name or ""])
        raise DefinitionError([make_finding("SB137", "", what)]) from None


def _reader(module: str) -> Reader:
    def read(text: str, base: Base) -> tuple[Any, list[Finding]]:
        try:
            found = _load(module)
        except DefinitionError as error:
            return None, error.findings
        return cast("tuple[Any, list[Finding]]", found.read(text, base))

    return read


def _writer(module: str) -> Writer:
    return lambda definition: cast("tuple[str, list[Finding]]", _load(module).write(definition))


READERS: dict[str, Reader] = {
    "json": lambda text, base: json.read(text),
    "yaml": lambda text, base: yaml.read(text),
    "scxml": _reader("scxml"),
    "xstate": _reader("xstate"),
    "sm": _reader("sm"),
    "mermaid": _reader("diagrams.definition"),
}
WRITERS: dict[str, Writer] = {
    "json": json.write,
    "yaml": yaml.write,
    "scxml": _writer("scxml"),
    "xstate": _writer("xstate"),
    "mermaid": _writer("diagrams.mermaid"),
    "dot": _writer("diagrams.dot"),
}


def format_of_text(text: str | bytes) -> str:
    """Guess the format of a text.

    JSON begins with a brace and XML with an angle bracket. Typical words show which kind of JSON it is.
    """
    start = text[:LOOK] if isinstance(text, str) else bytes(text[:LOOK]).decode("utf-8", "ignore")
    start = start.lstrip("\ufeff \t\r\n")
    if start.startswith("<"):
        return "scxml"
    if _MERMAID.match(start):
        return "mermaid"
    if not start.startswith(("{", "[")):
        return "xstate" if _SCRIPT.search(start) else "yaml"
    if _XSTATE.search(start):
        return "xstate"
    is_template = all(f'"{key}"' in start for key in _TEMPLATE) and '"states"' not in start
    return "sm" if is_template else "json"


def may_be_xstate(text: str | bytes) -> bool:
    """Return whether JSON that is not a definition of ours could be an XState config."""
    return bool(_LIKE_XSTATE.search(text if isinstance(text, str) else bytes(text).decode("utf-8", "ignore")))


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
