"""Definition files: text in, definition out.

``load`` only reads; whether the definition is a good one, ``machines.engine.definitions.check`` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from machines.engine.definitions.findings import Finding, finding
from machines.engine.errors import DefinitionError

from . import json, yaml
from .text import decode

__all__ = ["FORMATS", "NOT_YET", "format_of", "load"]

FORMATS: dict[str, Callable[[str], tuple[Any, list[Finding]]]] = {"json": json.read, "yaml": yaml.read}
NOT_YET = {"scxml": "SCXML", "xstate": "XState and Stately exports", "sm": "redis-state-machine templates"}
SUFFIXES = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".scxml": "scxml", ".sm": "sm"}


def load(text: str | bytes, format: str = "json") -> dict[str, Any]:
    """The definition a text holds. Raises DefinitionError; its findings name line and column.

    Refused, because readers of the same text would disagree or be harmed: keys that stand twice, NaN and
    Infinity, integers too large for a double, more than 32 levels, more than 1 MiB, NUL, anything but UTF-8.
    """
    if format not in FORMATS:
        raise DefinitionError([_unknown(format)])
    decoded = decode(text)
    if isinstance(decoded, Finding):
        raise DefinitionError([decoded])
    definition, findings = FORMATS[format](decoded)
    if findings:
        raise DefinitionError(findings)
    if not isinstance(definition, dict):
        what = "the text holds no object; a definition is one"
        raise DefinitionError(
            [finding("SB104", "", what, 'it starts like {"id": ..., "initial": ..., "states": {...}}')]
        )
    return definition


def format_of(name: str) -> str:
    """The format of a file by its name; ``json`` where the name does not tell."""
    lower = name.lower()
    return next((format for suffix, format in SUFFIXES.items() if lower.endswith(suffix)), "json")


def _unknown(format: object) -> Finding:
    if isinstance(format, str) and format in NOT_YET:
        return finding("SB130", "", f"{NOT_YET[format]} cannot be read yet", f"use {' or '.join(FORMATS)}")
    shown = repr(format) if isinstance(format, str) and len(format) <= 40 else "of that name"
    return finding("SB130", "", f"no format {shown}", f"there are: {', '.join([*FORMATS, *NOT_YET])}")
