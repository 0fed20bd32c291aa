"""The formats that are read and written.

A new one is an entry in ``FORMATS`` and one in ``READERS`` or ``WRITERS``, or in both. ``guessing`` tells the format of
a text that does not say it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from machines.conf import extras
from machines.engine.definitions.findings import Finding, make_finding
from machines.engine.errors import DefinitionError

from . import json, yaml, yaml_text

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
            found = import_module(f".{module}", __package__)
        except ModuleNotFoundError as error:
            return None, [_missing(module, error)]
        return cast("tuple[Any, list[Finding]]", found.read(text, base))

    return read


def _writer(module: str) -> Writer:
    """Return ``write(definition)`` of a module below this package. The module is imported when it is first needed."""

    def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
        try:
            found = import_module(f".{module}", __package__)
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
