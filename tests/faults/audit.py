"""Everything that must hold of a machine and its queues, whatever happened: read key by key, past the engine.

The engine's own answers (``counts``, ``queues``, ``stats``) are compared with what the keys say; they are not believed.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from machines.engine import Engine
from machines.engine.keys import Partition
from tests.engine.jobs.group_members import list_wrong_members
from tests.engine.jobs.stored_jobs import parse_job, unpack_job

PLACES = ("ready", "leased", "delayed", "dead", "handled")
ENDED = ("dead", "handled")
BATCH = 1000  # keys read in one round trip
MOST_SHOWN = 20  # findings in a message

Row = dict[str, str]


@dataclass
class Audit:
    """What one look at a machine found: ``wrong`` is empty when all invariants hold."""

    wrong: list[str] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)  # leaf -> instances
    places: Counter[str] = field(default_factory=Counter)  # place -> jobs
    endings: Counter[str] = field(default_factory=Counter)  # job -> steps its end caused
    instances: dict[str, Row] = field(default_factory=dict)

    def of(self, state: str) -> set[str]:
        """Ids of the instances in a state."""
        return {id for id, row in self.instances.items() if state in row["_state"].split("\n")}


def audit(engine: Engine, machine: str) -> Audit:
    """Scans the machine and raises AssertionError with all that does not hold. Nobody may be working meanwhile."""
    found = look(engine, machine)
    shown = "\n".join(found.wrong[:MOST_SHOWN])
    assert not found.wrong, f"{len(found.wrong)} things are wrong with {machine}:\n{shown}"
    return found


def look(engine: Engine, machine: str) -> Audit:
    """The same without raising."""
    found = Audit()
    numbered = 0
    partitions = engine.client.hget(engine.keys.machines, machine)
    for number in range(int(partitions)):
        numbered += _Scan(engine, engine.keys.partition(machine, number), found).run()
    _compare_counts(engine, machine, found)
    _compare_stats(engine, machine, found, numbered)
    return found


def _compare_counts(engine: Engine, machine: str, found: Audit) -> None:
    live = engine.live(machine)
    counts = Counter({state: count for state, count in live.counts.items() if count})
    if counts != found.states:
        found.wrong.append(f"counts say {dict(counts)}, the instances {dict(found.states)}")
    if live.total != len(found.instances):
        found.wrong.append(f"the total says {live.total}, there are {len(found.instances)} instances")
    depths: Counter[str] = Counter()
    for depth in live.queues.values():
        depths.update({place: count for place, count in depth.items() if count})
    if depths != found.places:
        found.wrong.append(f"depths say {dict(depths)}, the jobs {dict(found.places)}")


def _compare_stats(engine: Engine, machine: str, found: Audit, numbered: int) -> None:
    """Every job that was ever numbered is still there, or was counted as it left; every ending was a job taken."""
    stats = engine.stats(machine).values()
    if (enqueued := sum(queue.enqueued for queue in stats)) != numbered:
        found.wrong.append(f"{numbered} jobs were numbered, and the statistics account for {enqueued}")
    taken = sum(queue.taken for queue in stats)
    ended = sum(queue.completed + queue.failed + queue.lost for queue in stats) + found.places["leased"]
    if ended > taken:
        found.wrong.append(f"{taken} attempts were handed out, and {ended} of them ended or are under way")


class _Scan:
    """One partition, all of its keys that have to do with instances and jobs."""

    def __init__(self, engine: Engine, keys: Partition, found: Audit) -> None:
        self.client = engine.client
        self.keys = keys
        self.found = found
        self.names = sorted(self.client.scan_iter(match=f"{_literal(keys.root)}:*", count=BATCH))
        self.instances = self._hashes(":i:")
        self.jobs = self._jobs()

    def run(self) -> int:
        """Answers how many jobs this partition ever numbered, also those that left it, without those that came from
        another one."""
        self.found.instances.update(self.instances)
        self._index()
        self._places()
        self._waiting()
        self._histories()
        self._unique()
        queues = self.client.smembers(self.keys.queues)
        arrived = sum(int(self.client.hget(self.keys.stats(queue), "arrived") or 0) for queue in queues)
        return int(self.client.hget(self.keys.meta, "jobs") or 0) - arrived

    def _wrong(self, what: str) -> None:
        self.found.wrong.append(f"{self.keys.root}: {what}")

    # Reading

    def _named(self, kind: str) -> list[str]:
        """What stands behind ``<root><kind>`` in the names of keys."""
        start = self.keys.root + kind
        return [name[len(start) :] for name in self.names if name.startswith(start)]

    def _hashes(self, kind: str) -> dict[str, Row]:
        ids = self._named(kind)
        return dict(zip(ids, self._each("hgetall", [f"{self.keys.root}{kind}{id}" for id in ids]), strict=True))

    def _jobs(self) -> dict[str, Row]:
        ids = self._named(":job:")
        names = [f"{self.keys.root}:job:{id}" for id in ids]
        types = dict(zip(names, self._each("type", names), strict=True))
        texts, hashes = ([name for name in names if types[name] == kind] for kind in ("string", "hash"))
        rows = dict(zip(texts, map(parse_job, self._each("get", texts)), strict=True))
        rows |= zip(hashes, map(unpack_job, self._each("hgetall", hashes)), strict=True)
        return {id: rows.get(name, {}) for id, name in zip(ids, names, strict=True)}

    def _each(self, command: str, keys: list[str], *arguments: Any) -> Iterator[Any]:
        for start in range(0, len(keys), BATCH):
            pipeline = self.client.pipeline(transaction=False)
            for key in keys[start : start + BATCH]:
                getattr(pipeline, command)(key, *arguments)
            yield from pipeline.execute()

    # Instances

    def _index(self) -> None:
        """Each instance is in the list of each of its states, and in that of no other."""
        listed: dict[str, set[str]] = defaultdict(set)
        for state in self._named(":in:"):
            for id in self.client.zrange(self.keys.state(state), 0, -1):
                listed[id].add(state)
        leaves_of = {id: set(row["_state"].split("\n")) for id, row in self.instances.items()}
        known = set().union(*leaves_of.values())  # a state that holds others may have a list of its own
        for id, leaves in leaves_of.items():
            self.found.states.update(leaves)
            if listed[id] & known != leaves:
                self._wrong(f"{id} is in {leaves} and listed in {listed[id]}")
        for id in listed.keys() - self.instances.keys():
            self._wrong(f"{id} is listed in {listed[id]} and does not exist")

    def _histories(self) -> None:
        """The end of a job is one step of one instance, and never two."""
        for id in self.instances:
            reply = self.client.fcall("sb_history", 1, self.keys.root, id, 0, -1)
            steps = [json.loads(entry) for entry in reply[3:]]
            self._unbroken(id, steps)
            for _, _, event, _, _, actor, *_ in steps:
                if isinstance(actor, str) and actor.startswith("job "):
                    self._ended(id, actor.removeprefix("job "), event)

    def _unbroken(self, id: str, steps: list[list[Any]]) -> None:
        versions = [int(step[0]) for step in steps]
        if versions and versions != list(range(versions[0], int(self.instances[id]["_version"]) + 1)):
            self._wrong(f"the history of {id} goes {versions}, its version is {self.instances[id]['_version']}")

    def _ended(self, id: str, job: str, event: str) -> None:
        name = f"{self.keys.root}:{job}"
        self.found.endings[name] += 1
        if self.found.endings[name] > 1:
            self._wrong(f"{id} was moved {self.found.endings[name]} times by the end of {job}")
        if event.startswith("done.") and job in self.jobs:
            self._wrong(f"{id} was moved by {job}, which is still there, {self.jobs[job]['place']}")

    # Jobs

    def _places(self) -> None:
        """Each job is in exactly one place, and says so itself."""
        listed: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for queue in self.client.smembers(self.keys.queues):
            for place in PLACES:
                for job in self.client.zrange(getattr(self.keys, place)(queue), 0, -1):
                    listed[job].append((queue, place))
        for job, row in self.jobs.items():
            if listed[job] != [(row.get("queue"), row.get("place"))]:
                self._wrong(f"{job} says {row.get('queue')} {row.get('place')}, and is listed in {listed[job]}")
            self._leased(job, row)
        for job, where in listed.items():
            self.found.places.update(place for _, place in where)
            if job not in self.jobs:
                self._wrong(f"{job} is listed in {where} and does not exist")
        for bell_or_place in self._named(":q:"):
            queue = bell_or_place.partition(":")[0]
            if not self.client.sismember(self.keys.queues, queue):
                self._wrong(f"the queue {queue} has keys and is not among the queues")
        for queue in self.client.smembers(self.keys.queues):
            for what in list_wrong_members(self.client, self.keys, queue):
                self._wrong(what)

    def _leased(self, job: str, row: Row) -> None:
        held = row.get("place") == "leased"
        if held != bool(row.get("token")):
            self._wrong(f"{job} is {row.get('place')} with the token {row.get('token')!r}")
        if int(row.get("attempt", 0)) > int(row.get("attempts", 3)):
            self._wrong(f"{job} is at attempt {row['attempt']} of {row.get('attempts', 3)}")

    def _waiting(self) -> None:
        """Instances wait for open jobs of their own, and each open job of an invoke is waited for."""
        waited: dict[str, str] = {}
        for id, row in self.instances.items():
            for job in row.get("_jobs", "").split():
                waited[job] = id
                there = self.jobs.get(job)
                if there is None or there.get("instance") != id or there["place"] in ENDED:
                    self._wrong(f"{id} waits for {job}, which is {there}")
        for job, row in self.jobs.items():
            if row.get("invoke") and row["place"] not in ENDED and waited.get(job) != row["instance"]:
                self._wrong(f"{job} is {row['place']}, and {row['instance']} does not wait for it")

    def _unique(self) -> None:
        """A unique key stands for one open job that has it, and each open job with a key holds it."""
        held: dict[str, str] = {}
        names = self._named(":u:")
        for name, job in zip(names, self._each("get", [f"{self.keys.root}:u:{n}" for n in names]), strict=True):
            held[job] = name
            row = self.jobs.get(job)
            if row is None or row["place"] in ENDED or name != f"{row['queue']}:{row.get('unique')}":
                self._wrong(f"the unique key {name} stands for {job}, which is {row}")
        for job in self._open_with_key():
            if job not in held:
                self._wrong(f"{job} does not hold its unique key {self.jobs[job]['unique']}")

    def _open_with_key(self) -> Iterable[str]:
        return (job for job, row in self.jobs.items() if row.get("unique") and row["place"] not in ENDED)


def _literal(text: str) -> str:
    """A key as a glob pattern that only it matches."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", text)
