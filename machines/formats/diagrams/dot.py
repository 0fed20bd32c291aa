"""Writes DOT, as our own pages draw it."""

from __future__ import annotations

from typing import Any

from machines import diagrams
from machines.engine.definitions import Finding, outline

from .omissions import omissions


def write(definition: dict[str, Any]) -> tuple[str, list[Finding]]:
    """Return the definition as a DOT graph. Raises DefinitionError for a definition that cannot be drawn."""
    shown = {key: value for key, value in definition.items() if key != "description"}
    return diagrams.dot(outline(definition)), omissions(shown, "a DOT graph")
