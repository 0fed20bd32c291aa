"""What is read from Redis for a topic, and how the topic's value is made of it.

A *source* is what one command reads: a partition, an instance, the rows of the workers. Topics share sources, so a
partition that rang is read once whoever watches. Some sources are only known after others were read (the partitions
of a machine, how an instance's data reads), so asking again after a read may bring more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboard.live.topics import Topic
from machines.engine import replies
from machines.engine.keys import Keys, partition_of
from machines.engine.records import Live

DEPTHS = ("ready", "leased", "delayed", "dead")


@dataclass(frozen=True, slots=True)
class Source:
    """``kind``: "partition", "instance", "types" (of definition ``name``), "workers" (their ids), "worker"."""

    kind: str
    machine: str = ""
    partition: int = 0
    name: str = ""

    @property
    def constant(self) -> bool:
        """Published versions never change: read once."""
        return self.kind == "types"

    @property
    def version(self) -> int:
        """Of a "types" source: the definition's number, out of ``<number>:<digest>``."""
        return int(self.name.partition(":")[0])

    def root(self, keys: Keys) -> str | None:
        """The partition whose ring says that this may have changed; None where nothing rings."""
        return keys.partition(self.machine, self.partition).root if self.kind in ("partition", "instance") else None


WORKERS = Source("workers")


@dataclass(slots=True)
class World:
    """What has been read so far. ``directory``: machine -> number of partitions; ``at``: Redis time, ms."""

    directory: dict[str, int] = field(default_factory=dict)
    readings: dict[Source, Any] = field(default_factory=dict)
    at: int = 0


Value = dict[str, Any]


def sources(topic: Topic, world: World) -> Iterator[Source]:
    """Every source the topic needs, as far as can be told from what has been read."""
    if topic.kind in ("machine", "queue"):
        yield from _partitions(topic.machine, world)
    elif topic.kind == "instance":
        yield from _instance_sources(topic, world)
    elif topic.kind in ("overview", "queues"):
        for machine in world.directory:
            yield from _partitions(machine, world)
    if topic.kind in ("overview", "workers"):
        yield WORKERS
    if topic.kind == "workers":
        for worker in world.readings.get(WORKERS) or ():
            yield Source("worker", name=worker)


def _partitions(machine: str, world: World) -> Iterator[Source]:
    for number in range(world.directory.get(machine, 0)):
        yield Source("partition", machine, number)


def _instance_sources(topic: Topic, world: World) -> Iterator[Source]:
    partitions = world.directory.get(topic.machine)
    if partitions is None:
        return
    instance = Source("instance", topic.machine, partition_of(topic.name, partitions), topic.name)
    yield instance
    raw = world.readings.get(instance)
    if raw and "_def" in raw:
        yield Source("types", topic.machine, instance.partition, str(raw["_def"]))


def value(topic: Topic, world: World) -> Value:
    """The topic's absolute value; every one of its sources must have been read."""
    return VALUES[topic.kind](topic, world)


def _machine(topic: Topic, world: World) -> Value:
    live = _live(topic.machine, world)
    return _gone(topic) if live is None else live_value(live)


def live_value(live: Live) -> Value:
    return {
        "machine": live.machine,
        "version": live.version,
        "counts": live.counts,
        "oldest": live.oldest,
        "flow": live.flow,
        "queues": live.queues,
        "total": live.total,
        "timers": live.timers,
        "overdue": live.overdue,
        "mail": live.mail,
        "now": live.now,
    }


def _overview(topic: Topic, world: World) -> Value:
    return {
        "machines": {live.machine: _short(live) for live in _all(world)},
        "workers": len(world.readings[WORKERS] or ()),
    }


def _short(live: Live) -> Value:
    return {
        "version": live.version,
        "counts": live.counts,
        "total": live.total,
        "overdue": live.overdue,
        "queues": live.queues,
    }


def _instance(topic: Topic, world: World) -> Value:
    found = list(_instance_sources(topic, world))
    raw, types = (world.readings[source] for source in found) if len(found) == 2 else (None, None)
    if raw is None or types is None:
        return _gone(topic)
    try:
        return replies.instance(topic.machine, topic.name, raw, types).as_dict()
    except (KeyError, ValueError):  # a foreign hand wrote into the hash: for us it is no instance
        return _gone(topic)


def _queues(topic: Topic, world: World) -> Value:
    found = ((live.machine, name, depths) for live in _all(world) for name, depths in live.queues.items())
    return {"queues": {f"{machine}/{name}": depths for machine, name, depths in found}}


def _queue(topic: Topic, world: World) -> Value:
    live = _live(topic.machine, world)
    depths = None if live is None else live.queues.get(topic.name)
    return _gone(topic) if depths is None else {place: depths.get(place, 0) for place in DEPTHS}


def _workers(topic: Topic, world: World) -> Value:
    rows = (world.readings[Source("worker", name=worker)] for worker in world.readings[WORKERS] or ())
    return {"workers": {row.id: row.as_dict() for row in rows if row is not None}}


def _all(world: World) -> Iterator[Live]:
    for machine in sorted(world.directory):
        live = _live(machine, world)
        if live is not None:
            yield live


def _live(machine: str, world: World) -> Live | None:
    """The machine as a whole; None where it is not published, or not all of it."""
    parts = [world.readings[source] for source in _partitions(machine, world)]
    return replies.merged(parts) if parts and None not in parts else None


def _gone(topic: Topic) -> Value:
    return {"gone": True}


VALUES: Mapping[str, Callable[[Topic, World], Value]] = {
    "machine": _machine,
    "overview": _overview,
    "instance": _instance,
    "queues": _queues,
    "queue": _queue,
    "workers": _workers,
}
