"""Says what is read from Redis for a topic, and builds the topic's value from it.

A *source* is what one command reads: a partition, an instance, the rows of the workers. Topics share sources, so a
partition that rang is read once for all sockets. Some sources are only known after others were read (the partitions
of a machine, how an instance's data reads), so asking again after a read may bring more.
"""

import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from dashboard.live.topics import REDACTED, Topic
from machines.audit.redaction import Redactor
from machines.audit.reveals import names_in
from machines.engine.connection import replies
from machines.engine.jobs.queue_operations import merge_stats
from machines.engine.jobs.records import Job, QueueStats, WorkerInfo
from machines.engine.keys import Keys, choose_partition
from machines.engine.publishing.machine_meta import SensitiveFields
from machines.engine.records import Live
from machines.people.permissions import Scope, among

LASTING = frozenset({"types", "sensitive", "marked", "workers", "worker"})
RINGING = frozenset({"partition", "stats", "instance", "job", "sensitive", "edited"})


@dataclass(frozen=True, slots=True)
class Source:
    """``kind``: "partition", "stats" (of its queues), "instance", "types" (of definition ``name``), "job",
    "sensitive" (the machine's sensitive fields, to mask by), "marked" (the same, for the audit and for encrypted
    fields), "workers" (their ids), "worker", "edited" (the time of the last action in the Studio)."""

    kind: str
    machine: str = ""
    partition: int = 0
    name: str = ""

    @property
    def constant(self) -> bool:
        """Published versions never change: read once."""
        return self.kind == "types"

    @property
    def lasting(self) -> bool:
        """Whether the last reading stands for the next while the server does not answer."""
        return self.kind in LASTING

    @property
    def version(self) -> int:
        """Of a "types" source: the definition's number, out of ``<number>:<digest>``."""
        return int(self.name.partition(":")[0])

    def root(self, keys: Keys) -> str | None:
        """Return the partition whose ring says that this may have changed; None if no ring does."""
        return keys.partition(self.machine, self.partition).root if self.kind in RINGING else None


WORKERS = Source("workers")


class LostReading:
    """The reading of a source whose server does not answer."""


LOST = LostReading()


class Unavailable(Exception):
    """No server that holds the topic answers."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What ``sb_stats`` says of one partition; ``queues`` as it has them."""

    now: int
    queues: dict[str, dict[str, Any]]


class Directory(dict[str, int]):
    """Machine -> number of partitions. ``before``: machine whose instances move to more partitions -> the number
    that it had."""

    def __init__(self, counts: Mapping[str, int] = MappingProxyType({})) -> None:
        super().__init__(counts)
        self.before: dict[str, int] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Directory) and dict(self) == dict(other) and self.before == other.before

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class World:
    """What has been read so far. ``directory``: machine -> number of partitions; ``at``: Redis time, ms; ``merged``:
    machine -> the readings of its partitions and what they add up to."""

    directory: Directory = field(default_factory=Directory)
    readings: dict[Source, Any] = field(default_factory=dict)
    at: int = 0
    merged: dict[str, tuple[list[Any], Live]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.directory, Directory):
            self.directory = Directory(self.directory)


Value = dict[str, Any]
GONE: Value = {"gone": True}


def sources(topic: Topic, world: World) -> Iterator[Source]:
    """Yield every source that the topic needs, as far as the readings so far show it."""
    if topic.kind in REDACTED and topic.machine in world.directory:
        yield Source("sensitive" if topic.redacted else "marked", topic.machine)
    if topic.kind == "machine" and topic.machine in world.directory:
        yield Source("edited", topic.machine)
    if topic.kind in ("machine", "queue"):
        yield from _list_partitions(topic.machine, world, READ_AS[topic.kind])
    elif topic.kind == "instance":
        yield from _list_instance_sources(topic, world)
    elif topic.kind == "job":
        yield from _list_job_sources(topic, world)
    elif topic.kind in ("overview", "queues"):
        for machine in _list_in_scope(topic, world):
            yield from _list_partitions(machine, world, READ_AS[topic.kind])
    if topic.kind in ("overview", "workers"):
        yield WORKERS
    if topic.kind == "workers":
        for worker in _list_worker_ids(world):
            yield Source("worker", name=worker)


#: what is read of each partition
READ_AS = {"machine": "partition", "overview": "partition", "queue": "stats", "queues": "stats"}


def _list_partitions(machine: str, world: World, kind: str) -> Iterator[Source]:
    for number in range(world.directory.get(machine, 0)):
        yield Source(kind, machine, number)


def _list_job_sources(topic: Topic, world: World) -> Iterator[Source]:
    number = int(topic.name.partition("-")[0])
    if number < world.directory.get(topic.machine, 0):
        yield Source("job", topic.machine, number, topic.name)


def _list_instance_sources(topic: Topic, world: World) -> Iterator[Source]:
    partitions = world.directory.get(topic.machine)
    if partitions is None:
        return
    before = world.directory.before.get(topic.machine, partitions)
    for number in dict.fromkeys(choose_partition(topic.name, count) for count in (before, partitions)):
        instance = Source("instance", topic.machine, number, topic.name)
        yield instance
        raw = world.readings.get(instance)
        if raw and raw is not LOST and "_def" in raw:
            yield Source("types", topic.machine, number, str(raw["_def"]))
            return


def value(topic: Topic, world: World) -> Value:
    """Return the topic's absolute value; every one of its sources must have been read. A topic for which no server
    answers has only ``unavailable``."""
    try:
        return VALUES[topic.kind](topic, world)
    except Unavailable:
        return {"unavailable": True}


def _list_worker_ids(world: World) -> Sequence[str]:
    found = world.readings.get(WORKERS)
    return () if found is None or found is LOST else found


def _require_available(reading: Any) -> Any:
    if reading is LOST:
        raise Unavailable
    return reading


def _count_lost_partitions(machine: str, world: World, kind: str) -> Value:
    """Return how many partitions of a machine do not answer, and of how many; nothing where all do."""
    lost = [source.partition for source in _list_partitions(machine, world, kind) if world.readings[source] is LOST]
    return {"missing": lost, "partitions": world.directory[machine]} if lost else {}


def _make_machine(topic: Topic, world: World) -> Value:
    live = _merge_live(topic.machine, world)
    if live is None:
        return GONE
    edited = world.readings.get(Source("edited", topic.machine))
    found = {"edited": edited} if isinstance(edited, int) else {}
    return live_value(live) | found | _count_lost_partitions(topic.machine, world, "partition")


def live_value(live: Live) -> Value:
    return {name: getattr(live, name) for name in OF_LIVE}


def _make_overview(topic: Topic, world: World) -> Value:
    machines = {
        machine: row for machine in _list_in_scope(topic, world) if (row := _make_row(machine, world)) is not None
    }
    return {"machines": machines, "workers": len(_list_worker_ids(world))}


def _make_row(machine: str, world: World) -> Value | None:
    lost = _count_lost_partitions(machine, world, "partition")
    try:
        live = _merge_live(machine, world)
    except Unavailable:
        return {"unavailable": True, **lost}
    return None if live is None else _shorten(live) | lost


def _shorten(live: Live) -> Value:
    return {name: getattr(live, name) for name in OF_ROW} | {"refused": sum(live.refused.values())}


def _make_instance(topic: Topic, world: World) -> Value:
    read = list(_list_instance_sources(topic, world))
    complete = bool(read) and read[-1].kind == "types"
    # Unless it was found, a partition that does not answer may have it.
    found = [_require_available(world.readings[source]) for source in (read[-2:] if complete else read)]
    raw, types = found if complete else (None, None)
    redactor = _find_redactor(topic, world) if topic.redacted else _find_encrypted(topic, world)
    if raw is None or types is None or redactor is None:
        return GONE
    try:
        instance = among(replies.read_instance(topic.machine, topic.name, raw, types), topic.scope)
        return redactor.instance(instance).as_dict()
    except (KeyError, ValueError):  # a foreign hand wrote into the hash: for us it is no instance
        return GONE


def _make_queues(topic: Topic, world: World) -> Value:
    found: Value = {}
    for machine in _list_in_scope(topic, world):
        with contextlib.suppress(Unavailable):
            lost = _count_lost_partitions(machine, world, "stats")
            for stats in _merge_stats(machine, world).values():
                found[f"{machine}/{stats.queue}"] = of_queue(stats) | lost
    return {"queues": found}


def _make_queue(topic: Topic, world: World) -> Value:
    stats = _merge_stats(topic.machine, world).get(topic.name)
    lost = _count_lost_partitions(topic.machine, world, "stats")
    if stats is None and lost:
        raise Unavailable
    return GONE if stats is None else of_queue(stats) | lost


def _make_job(topic: Topic, world: World) -> Value:
    found = [_require_available(world.readings[source]) for source in _list_job_sources(topic, world)]
    job, redactor = (found[0] if found else None), _find_redactor(topic, world)
    return GONE if job is None or redactor is None else of_job(redactor.job(job))


def _find_redactor(topic: Topic, world: World) -> Redactor | None:
    """Return the redactor of an instance or a job; None if the sensitive fields are unknown, so that all is hidden."""
    if not topic.redacted:
        return Redactor()
    sensitive = _require_available(world.readings.get(Source("sensitive", topic.machine)))
    return None if sensitive is None else Redactor(sensitive)


def _find_encrypted(topic: Topic, world: World) -> Redactor | None:
    """Return the redactor of encrypted fields alone: a value that goes to many is not decrypted for one. None if they
    are unknown, so that all is hidden."""
    marked = _require_available(world.readings.get(Source("marked", topic.machine)))
    return None if marked is None else Redactor(SensitiveFields(frozenset(marked.encrypted)))


def find_disclosed(topic: Topic, value: Value, hidden: frozenset[str]) -> frozenset[str]:
    """Return the hidden fields that the value of a topic shows in clear. ``hidden``: names of sensitive fields."""
    if topic.redacted or topic.kind not in REDACTED or not hidden:
        return frozenset()
    if topic.kind == "instance":
        return frozenset(names_in(value.get("data"), hidden))
    note = (value.get("progress") or {}).get("note")
    return frozenset(name for name, text in (("error", value.get("error")), ("note", note)) if text)


def find_disclosed_in(topic: Topic, value: Value, world: World) -> frozenset[str]:
    sensitive = world.readings.get(Source("marked", topic.machine))
    return find_disclosed(topic, value, sensitive.names) if sensitive and sensitive is not LOST else frozenset()


def _make_workers(topic: Topic, world: World) -> Value:
    _require_available(world.readings[WORKERS])
    rows = [world.readings[Source("worker", name=worker)] for worker in _list_worker_ids(world)]
    alive = [row for row in rows if row is not None and row is not LOST]
    return {"workers": {row.id: of_worker(row, topic.scope) for row in alive}}


def _list_in_scope(topic: Topic, world: World) -> list[str]:
    wanted = topic.listed & world.directory.keys() if topic.name else world.directory
    return sorted(machine for machine in wanted if machine in topic.scope)


def _merge_live(machine: str, world: World) -> Live | None:
    """Return the machine as a whole, without partitions that do not answer; None if it is not published, or only in
    part. Merged again only when a partition was read again."""
    parts = _drop_lost([world.readings[source] for source in _list_partitions(machine, world, "partition")])
    held = world.merged.get(machine)
    if held is not None and len(held[0]) == len(parts) and all(map(operator.is_, held[0], parts)):
        return held[1]
    if not parts or any(part is None for part in parts):
        return None
    merged = replies.merge_live(parts)
    world.merged[machine] = (parts, merged)
    return merged


def _merge_stats(machine: str, world: World) -> dict[str, QueueStats]:
    """Return the machine's queues, without partitions that do not answer; none if it is not published, or only in
    part."""
    parts = _drop_lost([world.readings[source] for source in _list_partitions(machine, world, "stats")])
    return merge_stats([{"now": part.now, "queues": part.queues} for part in parts]) if None not in parts else {}


def _drop_lost(parts: list[Any]) -> list[Any]:
    """Return the readings of the partitions that answer. Raises Unavailable where none does."""
    found = [part for part in parts if part is not LOST]
    if parts and not found:
        raise Unavailable
    return found


VALUES: Mapping[str, Callable[[Topic, World], Value]] = {
    "machine": _make_machine,
    "overview": _make_overview,
    "instance": _make_instance,
    "queues": _make_queues,
    "queue": _make_queue,
    "job": _make_job,
    "workers": _make_workers,
}


COUNTERS = ("enqueued", "taken", "completed", "failed", "lost", "died", "withdrawn", "purged")
OF_ROW = ("version", "counts", "total", "overdue", "breaches", "queues")
OF_LIVE = ("machine", *OF_ROW, "oldest", "flow", "refused", "timers", "mail", "now")
OF_JOB = ("queue", "src", "instance", "place", "attempt", "attempts", "worker", "lease_until", "deadline", "due")
OF_JOB += ("taken", "finished", "kind", "error")


def of_queue(stats: QueueStats) -> dict[str, Any]:
    value: dict[str, Any] = {**stats.depth, **{name: getattr(stats, name) for name in COUNTERS}}
    value["waits"] = {str(magnitude): count for magnitude, count in stats.waits.items()}
    value["runs"] = {str(magnitude): count for magnitude, count in stats.runs.items()}
    pause = stats.paused
    some = {
        "oldest": stats.oldest,
        "concurrency": stats.concurrency,
        "rate": stats.rate or None,
        "paused": pause and {"since": pause.since, "actor": pause.actor, "reason": pause.reason},
    }
    return value | {name: found for name, found in some.items() if found is not None}


def of_worker(row: WorkerInfo, scope: Scope) -> dict[str, Any]:
    """Return a worker's row, limited to the machines in scope."""
    return (row if scope.all else row.only(scope)).as_dict()


def of_job(job: Job) -> dict[str, Any]:
    value = {name: getattr(job, name) for name in OF_JOB}
    if job.progress:
        value["progress"] = {name: found for name, found in job.progress.items() if found is not None}
    return value
