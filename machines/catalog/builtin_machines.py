"""Publishes the machines that come with the product: when they are first needed, and again in a newer release.

Each says in ``meta.release`` which one it is; the number counts up with each change that handlers depend on. A version
an operator published of one that is as new stays.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from machines.engine import Engine
from machines.engine.definitions import (
    CompiledDefinition,
    Finding,
    compile_definition,
    list_embedded_names,
    make_finding,
    quote,
    render,
)
from machines.engine.definitions.findings import Path as Place
from machines.engine.errors import DefinitionError, UnknownMachine

ROOMS = {
    "bulk": "instances/bulks",
    "django_tasks": "integrations/tasks",
    "map_reduce": "mapreduce",
    "map_reduce_chunk": "mapreduce",
    "schedules": "schedules",
}
"""Machine -> the folder of ``machines`` whose ``definitions`` has it."""
NAMES = frozenset(ROOMS)

FLOW = "task_flow_"
"""Begins the names of machines that flows of tasks make: nobody else publishes one, since tasks run for it."""
WITHOUT_INSTANCES = frozenset({"django_tasks"})


def split_system(machines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return people's own machines, and those of the product and of flows, which pages list under the *System*
    filter."""
    own: list[str] = []
    system: list[str] = []
    for name in machines:
        (system if name in NAMES or name.startswith(FLOW) else own).append(name)
    return own, system


def definition(name: str) -> dict[str, Any]:
    """Return the definition of a machine as it is shipped."""
    file = Path(__file__).parents[1] / ROOMS[name] / "definitions" / f"{name}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def shadowing(definition: object) -> list[Finding]:
    """Return errors for machines that a definition brings along under the name of one of these: inside the definition
    that name would no longer mean the machine of the product."""
    hint = "rename it, and what invokes it"
    return [
        make_finding("SB115", render(path), f"a machine of the product has the name {quote(name)}", hint)
        for path, name, full in list_embedded_names(definition)
        if not NAMES.isdisjoint((name, full)) or full.startswith(FLOW)
    ]


RESERVED = tuple(f"{name}." for name in sorted(NAMES))
"""Begins the names of the product's handlers and of queues called like them."""


def is_reserved(name: str) -> bool:
    """Tell whether a handler or a queue of this name is the product's."""
    return name.startswith(RESERVED)


def find_reserved(compiled: CompiledDefinition) -> list[Finding]:
    """Return errors for handlers and queues of the product, and for messages to its machines, in other definitions."""
    if not compiled.runs or compiled.source["id"] in NAMES:
        return []
    if str(compiled.source["id"]).startswith(FLOW):
        message = f"names that begin with {FLOW} are those of flows of tasks"
        return [make_finding("SB127", "id", message, "choose another name")]
    inside = {full: path for path, _, full in list_embedded_names(compiled.source)} if compiled.along else {}
    return [
        *_list_reserved(compiled, ()),
        *(finding for name, inner in compiled.along.items() for finding in _list_reserved(inner, inside[name])),
    ]


def _list_reserved(compiled: CompiledDefinition, below: Place) -> Iterator[Finding]:
    for work in compiled.work_names:
        if is_reserved(work.name):
            message = f"{quote(work.name)} is a name of the product's own handlers and queues"
            yield make_finding("SB127", render((*below, *work.path)), message, "choose another name")
    for recipient in compiled.recipients:
        if recipient.machine in NAMES:
            path = ".".join(filter(None, (render(below), recipient.path)))
            message = f"the machine {quote(recipient.machine)} is the product's own and takes no messages of others"
            yield make_finding("SB127", path, message, "leave it out")


def demand_unreserved(definition: object) -> None:
    """Raise DefinitionError for a definition that names what is the product's."""
    if findings := find_reserved(compile_definition(definition)):
        raise DefinitionError(findings)


def publish(engine: Engine, name: str) -> None:
    """Publish a machine of the product where it is missing, or was shipped by an older release."""
    shipped = definition(name)
    if _release(engine, name) < shipped["meta"]["release"]:
        engine.publish(shipped)


def _release(engine: Engine, name: str) -> int:
    """Return the release, 0 where there is none; the first did not say its number."""
    try:
        meta = engine.definition(name).get("meta")
    except UnknownMachine:
        return 0
    release = meta.get("release") if isinstance(meta, dict) else None
    return release if isinstance(release, int) else 1
