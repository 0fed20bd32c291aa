"""Machines that a definition brings along under ``machines``, to be published with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from machines.engine.definitions.report import Path


def list_embedded(definition: object) -> dict[str, Any]:
    """The embedded definitions by their short names, as they stand there."""
    found = definition.get("machines") if isinstance(definition, dict) else None
    return found if isinstance(found, dict) else {}


def list_embedded_names(definition: object, path: Path = ()) -> Iterator[tuple[Path, str, str]]:
    """Of every machine a definition brings along, at any depth: where it stands, its short name and its full one."""
    id = definition.get("id") if isinstance(definition, dict) else None
    for name, inner in list_embedded(definition).items() if isinstance(id, str) else ():
        if isinstance(inner, dict):
            below = (*path, "machines", name)
            yield below, name, f"{id}.{name}"
            yield from list_embedded_names(inner | {"id": f"{id}.{name}"}, below)


def find_embedded(definition: object) -> dict[str, dict[str, Any]]:
    """All machines a definition brings along, by full name (``<id>.<name>``), with those ids, in publish order.

    What stands in an embedded definition comes before it. They are all here: publishing one of them must not
    publish what it brings along once more.
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
