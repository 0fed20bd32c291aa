"""Reads the engine's cumulative counters as one document for each machine, and computes differences.

Such a document is nested: ``{"edges": {...}, "refused": {...}, "queues": {queue: {"enqueued": n, ..., "waits":
{...}}}}``. Its leaves are whole numbers, its keys texts, since it is kept as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from machines.engine import Live, QueueStats

Counters = dict[str, Any]

OF_QUEUES = ("enqueued", "taken", "completed", "failed", "lost", "died")
HISTOGRAMS = ("waits", "runs")
DERIVED = frozenset({"enqueued"})
"""Worked out from where jobs are: it may step back by itself, which says nothing about the server."""


class WentBack(Exception):
    """A counter that only grows is smaller than it was: another server, an older file, or one that began anew."""


def counters_of(live: Live, queues: Mapping[str, QueueStats]) -> Counters:
    """Return all of one machine, without what is 0."""
    return _keep_known(
        {
            "edges": dict(live.flow),
            "refused": dict(live.refused),
            "queues": {name: _of_queue(stats) for name, stats in queues.items()},
        }
    )


def _of_queue(stats: QueueStats) -> Counters:
    counted = {name: getattr(stats, name) for name in OF_QUEUES}
    magnitudes = {name: {str(size): count for size, count in getattr(stats, name).items()} for name in HISTOGRAMS}
    return counted | magnitudes


def _keep_known(document: Counters) -> Counters:
    found = {name: _keep_known(value) if isinstance(value, dict) else value for name, value in document.items()}
    return {name: value for name, value in found.items() if value}


def difference(new: Counters, old: Counters) -> Counters:
    """Return what was added since, without what was not. Raises WentBack."""
    found: Counters = {}
    for name in new.keys() | old.keys():
        after, before = new.get(name), old.get(name)
        if isinstance(after or before, dict):
            added: Any = difference(after or {}, before or {})
        else:
            added = (after or 0) - (before or 0)
            if added < 0 and name not in DERIVED:
                raise WentBack(name)
        if added and (isinstance(added, dict) or added > 0):
            found[name] = added
    return found


def add_counters(a: Counters, b: Counters) -> Counters:
    """Return both added up."""
    found = dict(a)
    for name, value in b.items():
        held = found.get(name)
        if isinstance(value, dict):
            found[name] = add_counters(held or {}, value)
        else:
            found[name] = (held or 0) + value
    return found


def leaves(numbers: Counters, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each number with the names that lead to it."""
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def path_text(path: tuple[str, ...]) -> str:
    """Return the path as one text, which ``build`` reads."""
    return json.dumps(path, separators=(",", ":"), ensure_ascii=False)


def build(counted: Mapping[str, int]) -> Counters:
    """Return the document that these texts and numbers are the leaves of."""
    found: Counters = {}
    for text, count in counted.items():
        *inner, last = json.loads(text)
        place = found
        for name in inner:
            place = place.setdefault(name, {})
        place[last] = count
    return found


def sums(numbers: Counters) -> dict[str, int]:
    """Return the columns of a ``Measurement``."""
    queues = numbers.get("queues", {}).values()

    def of(*names: str) -> int:
        return sum(queue.get(name, 0) for queue in queues for name in names)

    return {
        "transitions": sum(numbers.get("edges", {}).values()),
        "refused": sum(numbers.get("refused", {}).values()),
        "enqueued": of("enqueued"),
        "completed": of("completed"),
        "failed": of("failed", "lost"),
        "died": of("died"),
    }
