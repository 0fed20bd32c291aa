"""Finds the machines embedded under ``machines``, which are published together with the definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from machines.engine.definitions.report import Path


def list_embedded(definition: object) -> dict[str, Any]:
    """List the embedded definitions by their short names, unchanged."""
    found = definition.get("machines") if isinstance(definition, dict) else None
    return found if isinstance(found, dict) else {}


def list_embedded_names(definition: object, path: Path = ()) -> Iterator[tuple[Path, str, str]]:
    """List path, short name and full name of every embedded machine, at any depth."""
    id = definition.get("id") if isinstance(definition, dict) else None
    for name, inner in list_embedded(definition).items() if isinstance(id, str) else ():
        if isinstance(inner, dict):
            below = (*path, "machines", name)
            yield below, name, f"{id}.{name}"
            yield from list_embedded_names(inner | {"id": f"{id}.{name}"}, below)


def find_embedded(definition: object) -> dict[str, dict[str, Any]]:
    """Return all embedded machines by full name (``<id>.<name>``), with those ids, in publish order.

    A machine inside an embedded one comes before it. Publish each of them without its own embedded machines: those are
    all in the result.
    """
    id = definition.get("id") if isinstance(definition, dict) else None
    if not isinstance(id, str):
        return {}
    result: dict[str, dict[str, Any]] = {}
    for name, inner in list_embedded(definition).items():
        if isinstance(inner, dict):
            named = inner | {"id": f"{id}.{name}"}
            result |= find_embedded(named)
            result[named["id"]] = named
    return result
