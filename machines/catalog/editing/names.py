"""The names that may be written in a definition, for completion: its own, and those of the language."""

from __future__ import annotations

from functools import cache
from typing import Any

from machines.engine import definitions
from machines.engine.expressions import FUNCTIONS

from .places import Path, Place, Places

MOST = 2000  # names of a kind
# Where the keys of the language stand: what the browser calls the place -> its part of the schema.
KEYS = {
    "machine": "machine",
    "state": "state",
    "transition": "transition",
    "invoke": "invoke",
    "event": "event",
    "property": "property",
    "retry": "retry",
    "queue": "queueLimits",
    "retain": "retention",
}
VERBS = ("set", "unset", "append", "raise", "send", "cancel", "enqueue", "emit", "log", "if", "foreach", "block")
WORDS = {"event": "the event", "now": "seconds", "instance": "facts of the instance", 'In("")': "whether in a state"}


def list_names(places: Places) -> dict[str, Any]:
    """List the names of a definition: ``states``, ``events``, ``fields``, ``queues``, ``handlers``, each a list in the
    order of the text, and ``payloads``: event -> its fields."""
    found: dict[str, dict[str, None]] = {kind: {} for kind in ("states", "events", "fields", "queues", "handlers")}
    payloads: dict[str, list[str]] = {}
    for place in places:
        for kind, name in _list_names(places, place):
            if len(found[kind]) < MOST:
                found[kind][name] = None
    for event in found["events"]:
        if fields := places.keys(("events", event, "payload", "properties")) or places.keys(
            ("events", event, "payload")
        ):
            payloads[event] = fields
    return {kind: list(names) for kind, names in found.items()} | {"payloads": payloads}


def _list_names(places: Places, place: Place) -> list[tuple[str, str]]:
    path = place.path
    if len(path) < 2 or not isinstance(path[-1], str) or not path[-1]:
        return []
    name, before, holder = path[-1], path[:-1], path[-2]
    if holder == "states" and is_state_path(path):
        return [("states", name)]
    if (holder == "on" and is_state_path(before[:-1])) or before == ("events",):
        return [("events", name)] if "*" not in name else []
    if before == ("context", "properties") or (
        before == ("context",) and ("context", "properties") not in places.found
    ):
        return [("fields", name)]
    if before == ("queues",):
        return [("queues", name)]
    if name in ("src", "queue") and place.kind == "scalar":
        text = places.text[slice(*place.value)].strip("\"'")
        return [("handlers" if name == "src" else "queues", text)] if text else []
    return []


def is_state_path(path: Path) -> bool:
    """Tell whether a path is that of a state: ``states.A.states.B``; or of the machine."""
    return len(path) % 2 == 0 and all(part == "states" for part in path[::2])


@cache
def vocabulary() -> dict[str, Any]:
    """Return the vocabulary of the editor. ``keys``: place -> key -> what it is for; ``functions``: name -> usage and
    meaning; ``verbs``; ``words``."""
    parts = definitions.schema()["$defs"]
    keys = {
        place: {name: str(said.get("description", "")) for name, said in parts[part]["properties"].items()}
        for place, part in KEYS.items()
    }
    return {
        "keys": keys,
        "functions": {one.name: [one.usage, one.meaning] for one in FUNCTIONS.values()},
        "verbs": list(VERBS),
        "words": WORDS,
    }
