"""Searches everything: instances of any machine by id, machines and queues by name, jobs by id.

The search is bounded however much there is: the names of what is published, one command for each machine, and a page of
the index of ids where a definition declares one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from machines.connections import get_engine
from machines.engine import Engine

from .access import scope_of
from .converters import JobId
from .instance_filter import IDS

MAX_HITS = 20  # of each kind on the page
BY_PREFIX = 20  # machines whose ids are looked through
JOB = re.compile(JobId.regex)


@dataclass(frozen=True, slots=True)
class Hit:
    """Holds a result. ``of``: its machine; ``exact``: the whole name was typed."""

    kind: str
    name: str
    url: str
    of: str = ""
    exact: bool = False


def search(request: HttpRequest, asked: str) -> Iterator[Hit]:
    """Yield what has this name on the machines that the person sees."""
    engine, scope = get_engine(), scope_of(request.user)
    names = sorted(name for name in engine.machines() if name in scope)
    yield from _find_by_id(engine, names, asked)
    yield from _find_by_prefix(engine, names, asked)
    if JOB.fullmatch(asked):
        for name in engine.find_machines(asked, names, of="job")[:MAX_HITS]:
            yield Hit("job", asked, reverse("signalbox:job", args=[name, asked]), name, exact=True)
    wanted = asked.lower()
    for name in [name for name in names if wanted in name.lower()][:MAX_HITS]:
        yield Hit("machine", name, reverse("signalbox:machine", args=[name]), exact=name == asked)
    for name, queue in [pair for pair in engine.queue_names(names) if wanted in pair[1].lower()][:MAX_HITS]:
        yield Hit("queue", queue, reverse("signalbox:queue", args=[name, queue]), name, exact=queue == asked)


def _find_by_id(engine: Engine, names: list[str], id: str) -> Iterator[Hit]:
    for name in engine.find_machines(id, names)[:MAX_HITS]:
        yield Hit("instance", id, reverse("signalbox:instance", args=[name, id]), name, exact=True)


def _find_by_prefix(engine: Engine, machines: list[str], prefix: str) -> Iterator[Hit]:
    """Yield instances whose id begins with the prefix, of machines that index their ids."""
    for name in engine.find_indexed(IDS, machines)[:BY_PREFIX]:
        for instance in engine.find(name, id_prefix=prefix, limit=MAX_HITS):
            if instance.id != prefix:
                yield Hit("instance", instance.id, reverse("signalbox:instance", args=[name, instance.id]), name)
