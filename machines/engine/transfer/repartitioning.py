"""Spreads a running machine over more partitions, one instance after the other.

``docs/decisions/037-growing-machines.md`` says why this is safe. In short: the new number is a multiple of the old one,
so an instance stays, or goes from its old partition to one new one. Its record is staged in the new partition; then one
call removes it from the old one if it is still as in the record, which is the moment it moves; then the staged record
comes into force. Callers ask the old partition, which sends them on. A run that was killed is continued by the next.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from machines.engine import arguments
from machines.engine.connection import routing
from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.client import FAILURES, Client
from machines.engine.connection.replies import Status, require_ok
from machines.engine.errors import BadInput, EngineFault, EngineUnavailable, UnknownMachine
from machines.engine.keys import Keys, Partition, choose_partition
from machines.engine.publishing.catalog import SECRET_BYTES, Catalog
from machines.engine.publishing.machine_meta import FRESH, Growth

from .exporting import Progress, read_settings, scan_keys
from .importing import REASON, apply_rules

MAX_PARTITIONS = 1024
TOGETHER = 40  # instances that move in four round trips; each call takes some ms of the server
SETTLE = 2 * FRESH + 1  # seconds after which every process reads the new partitions, too
MAX_WAIT = 300.0  # seconds after which instances are moved although a worker holds one of their jobs
PAUSE = 0.2  # seconds between two passes
ALIVE_MS = 10_000  # a run that says nothing for so long is not alive
SLACK_MS = 60_000  # by which the clocks of servers may differ
REPLICA_MS = 2000  # ms to wait for a replica
OUTCOMES = 200  # outcomes of idempotency keys that one call copies


class Outrun(EngineFault):
    """Another run of the command has begun; this one can move nothing any more."""

    code = "SB513"


@dataclass(slots=True)
class RepartitionReport:
    """What a run did. ``moved``: instances; ``taken``: of these with a job that a worker held; ``resumed``: instances
    that an earlier run had left between two partitions; ``sizes``: instances of each partition afterwards."""

    before: int
    after: int
    moved: int = 0
    taken: int = 0
    resumed: int = 0
    finished: bool = False
    sizes: list[int] = field(default_factory=list)

    @property
    def busiest(self) -> float:
        """Return the size of the largest partition, as a multiple of the mean."""
        mean = sum(self.sizes) / len(self.sizes) if self.sizes else 0
        return max(self.sizes) / mean if mean else 1.0


class Repartition:
    """One run that spreads ``machine`` over ``to`` partitions."""

    def __init__(
        self,
        client: Client,
        keys: Keys,
        machine: str,
        to: int,
        *,
        max_wait: float = MAX_WAIT,
        settle: float = SETTLE,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._caller = Caller(client, keys.prefix)
        self._catalog = Catalog(self._caller, keys, 1)
        self._keys = keys
        self.machine = arguments.check_machine(machine)
        self.to = arguments.check_between("to", to, 1, MAX_PARTITIONS)
        self._max_wait = max_wait
        self._settle = settle
        self._stopped = stopped
        self._growth = Growth(1, 1, 0, 0)
        self._replicas = 0
        self._report = RepartitionReport(1, to)

    def run(self, progress: Progress = lambda done, total: None) -> RepartitionReport:
        """Move everything that is to move and return a report; ``finished`` is False where ``stopped`` said so. Raises
        BadInput for a number that is no multiple, UnknownMachine, Outrun, EngineUnavailable."""
        if self._is_done():
            self._report.before, self._report.finished = self.to, True
            self._report.sizes = self._count_sizes()
            return self._report
        is_new = self._begin()
        self._replicas = self._count_replicas()
        self._publish_everywhere()
        if is_new:
            self._wait(self._settle)
            self._announce()  # for those who read the list of partitions just before the others knew
        self._grow()
        self._publish_everywhere()
        self._move_all(progress)
        if not self._stopped():
            self._copy_outcomes()
            self._publish_everywhere()  # what was published meanwhile by a process that did not know
            self._finish()
        self._report.sizes = self._count_sizes()
        return self._report

    def rescue(self) -> int:
        """Bring instances into force that a killed run has left between two partitions; return how many. Does nothing
        while a run is alive, and for a machine that does not grow."""
        held = self._caller.command("HGET", self._keys.growth, self.machine)
        growth = Growth.read(held) if held else None
        if growth is None or not growth.under_way or self._caller.command("EXISTS", self._alive):
            return 0
        self.to = growth.after
        if not any(self._caller.command("HLEN", root.staged) for root in self._roots(growth.before, growth.after)):
            return 0
        self._begin()
        self._grow()
        return self._report.resumed

    # The beginning and the end

    def _is_done(self) -> bool:
        """Tell whether the machine has the number already, and nothing moves."""
        growth = self._catalog.find_growth(self.machine)
        held = self._caller.command("HGET", self._keys.machines, self.machine)
        return held is not None and int(held) == self.to and not (growth is not None and growth.under_way)

    def _begin(self) -> bool:
        """Take a number for this run, and tell all processes that the machine grows; return whether that is new."""
        held = self._caller.command("HGET", self._keys.machines, self.machine)
        if held is None:
            raise UnknownMachine(self.machine)
        text = self._caller.command("HGET", self._keys.growth, self.machine)
        earlier = Growth.read(text) if text else None
        is_new = earlier is None or not earlier.under_way
        before = int(held) if is_new or earlier is None else earlier.before
        if not is_new and earlier is not None and earlier.after != self.to:
            raise BadInput(
                f"{self.machine} grows to {earlier.after} partitions already: finish that first, with that number"
            )
        if is_new and (self.to <= before or self.to % before):
            raise BadInput(
                f"{self.machine} has {before} partitions and grows to a multiple of them: {2 * before}, {3 * before}."
                f" For {self.to}, export it and import it with --partitions {self.to}"
            )
        if is_new and earlier is not None and earlier.over > time.time() * 1000:
            raise BadInput(f"{self.machine} has just grown: try again in a minute")
        first = self._keys.partition(self.machine)
        if is_new:
            rules = json.dumps(read_settings(self._caller, self._roots(0, before))["queues"])
            self._caller.command("HSET", first.meta, "rules", rules)
        run = int(self._caller.command("HINCRBY", first.meta, "runs", 1))
        self._growth = Growth(before, self.to, run, 0)
        self._report.before = before
        self._caller.command("HSET", self._keys.growth, self.machine, str(self._growth))
        self._catalog.refresh()
        self._announce()
        self._say_alive()
        return is_new

    def _grow(self) -> None:
        """Tell each partition, the new ones first, so that no redirect leads to one that does not know; then deal with
        what an earlier run has left."""
        staged: dict[Partition, list[str]] = {}
        for root in (*self._roots(self._growth.before, self.to), *self._roots(0, self._growth.before)):
            words = (self._growth.before, self.to, self._growth.run)
            staged[root] = [str(id) for id in self._call("sb_grow", root, *words)[1:]]
        for root, ids in staged.items():
            while ids:
                some, ids = ids[:TOGETHER], ids[TOGETHER:]
                here = self._caller.commands([(key, ("EXISTS", key)) for key in map(self._make_old_key, some)])
                left = [id for id, held in zip(some, here, strict=True) if held]
                gone = [id for id, held in zip(some, here, strict=True) if not held]
                if left:
                    self._call("sb_arrive", root, self._growth.run, "", "drop", *left)
                if gone:
                    self._report.resumed += self._arrive({root: gone})
        rules = self._caller.command("HGET", self._keys.partition(self.machine).meta, "rules")
        apply_rules(self._caller, self._catalog, self.machine, json.loads(rules or "{}"), pauses=False)
        self._copy_pauses()

    def _copy_pauses(self) -> None:
        """Pause on the new partitions the queues that are paused on the old ones."""
        held = read_settings(self._caller, self._roots(0, self._growth.before))["queues"]
        for queue, rule in held.items():
            if "paused" in rule:
                who = (rule["paused"]["actor"], rule["paused"]["reason"] or REASON)
                for root in self._roots(self._growth.before, self.to):
                    self._call("sb_queue", root, queue, "pause", *who)

    def _finish(self) -> None:
        """Make the new number the machine's."""
        over = round(time.time() * 1000) + SLACK_MS
        growth = Growth(self._growth.before, self.to, self._growth.run, over)
        held = self._caller.command("HGET", self._keys.growth, self.machine)
        if held != str(self._growth):
            raise Outrun(f"another run moves {self.machine}")
        self._caller.command("HSET", self._keys.machines, self.machine, self.to)
        self._caller.command("HSET", self._keys.growth, self.machine, str(growth))
        self._caller.command("HDEL", self._keys.partition(self.machine).meta, "rules")
        self._announce()
        self._report.finished = True

    def _publish_everywhere(self) -> None:
        """Publish on the new partitions what the first one has, and share the limits of the definition anew."""
        first = self._keys.partition(self.machine)
        homes = self._caller.command("HGET", first.meta, "homes") or self._growth.before
        for root in self._roots(0, self.to):
            self._caller.command("HSET", root.meta, "homes", homes)  # groups keep their homes
        self._catalog.copy_versions(self.machine)
        number = int(str(self._caller.command("HGET", first.meta, "current")).partition(":")[0])
        row = self._caller.command("HMGET", first.definition(number), "digest", "program", "source")
        for root in self._roots(0, self.to):
            self._call("sb_publish", root, *row, os.urandom(SECRET_BYTES).hex(), self.to, number)
        self._catalog.align_partitions(self.machine)

    # Moving

    def _move_all(self, progress: Progress) -> None:
        """Pass over the old partitions until nothing is left there that belongs elsewhere."""
        until = time.monotonic() + self._max_wait
        total = self._report.moved + self._count_leaving()
        while True:
            left, scan = 0, self._scan_leaving()
            while not self._stopped() and (found := list(islice(scan, TOGETHER))):
                left += self._move_some(found, time.monotonic() > until)
                progress(min(self._report.moved, total), total)
            if self._stopped():
                return
            if not left and next(self._scan_leaving(), None) is None:
                return
            self._wait(PAUSE)

    def _scan_leaving(self) -> Iterator[tuple[Partition, str]]:
        """Yield (old partition, id) of instances that belong to another one. A pass that yields none proves that there
        are none: SCAN returns every key that exists all the time, and none is added after ``sb_grow``."""
        heads = {f"{root.root}:i:": root for root in self._roots(0, self._growth.before)}
        for name in scan_keys(self._caller.client, self._keys.records_pattern(self.machine)):
            head, mark, id = name.partition("}:i:")
            root = heads.get(head + mark)
            if root is not None and self._make_new_root(id) != root:
                yield root, id

    def _move_some(self, found: Sequence[tuple[Partition, str]], with_leased: bool) -> int:
        """Move some instances; return how many have to wait for the next pass."""
        self._say_alive()
        groups: dict[Partition, list[str]] = {}
        for root, id in found:
            groups.setdefault(root, []).append(id)
        left = 0
        for root, ids in groups.items():
            for _ in range(3):  # an instance that takes a step meanwhile is tried again at once
                ids, waiting = self._move_from(root, ids, with_leased)
                left += waiting
                if not ids:
                    break
            left += len(ids)
        return left

    def _move_from(self, root: Partition, ids: list[str], with_leased: bool) -> tuple[list[str], int]:
        """Move instances of one old partition; return those that have changed meanwhile, and how many have to wait."""
        reply = self._caller.call("sb_export", root.root, "instances", *ids)
        if reply[0] == Status.FULL:
            return [], len(ids)
        records = {id: str(text) for id, text in zip(ids, self._check("sb_export", reply)[1:], strict=False) if text}
        again = ids[len(reply) - 1 :]
        staged = self._stage(records)
        words = [word for id in staged for word in (id, _digest(records[id]))]
        outcomes = (
            self._call_replicated("sb_depart", root, self._growth.run, "1" if with_leased else "", *words)[1:]
            if words
            else []
        )
        departed: dict[Partition, list[str]] = {}
        waiting = 0
        for id, outcome in zip(staged, outcomes, strict=True):
            if outcome == "departed":
                departed.setdefault(self._make_new_root(id), []).append(id)
            elif outcome == "changed":
                again.append(id)
            elif outcome != "gone":
                waiting += 1
        self._report.taken += self._count_taken(records, departed) if with_leased else 0
        self._report.moved += self._arrive(departed)
        return again, waiting

    def _stage(self, records: dict[str, str]) -> list[str]:
        """Stage records in their new partitions; return the ids of those that are."""
        groups: dict[Partition, list[str]] = {}
        for id in records:
            groups.setdefault(self._make_new_root(id), []).append(id)
        done = []
        for root, ids in groups.items():
            words = [word for id in ids for word in (id, records[id])]
            reply = self._call_replicated("sb_stage", root, self._growth.run, *words)[1:]
            for id, outcome, why in zip(ids, reply[::2], reply[1::2], strict=True):
                if outcome == "staged":
                    done.append(id)
                elif "is not published here" in str(why):
                    self._publish_everywhere()
                else:
                    raise EngineFault(f"{self.machine}/{id} cannot move: {why or 'another instance has its place'}")
        return done

    def _arrive(self, departed: dict[Partition, list[str]]) -> int:
        """Bring staged instances into force; return how many."""
        count = 0
        for root, ids in departed.items():
            reply = self._call("sb_arrive", root, self._growth.run, "", "arrive", *ids)[1:]
            for id, outcome, why in zip(ids, reply[::2], reply[1::2], strict=True):
                if outcome not in ("arrived", "gone"):  # gone: a caller or a worker has done it
                    raise EngineUnavailable(
                        f"{self.machine}/{id} is between two partitions: {why or outcome}; run it again"
                    )
                count += 1
        return count

    @staticmethod
    def _count_taken(records: dict[str, str], departed: dict[Partition, list[str]]) -> int:
        ids = [id for some in departed.values() for id in some]
        return sum(any("leased" in job for job in json.loads(records[id])["jobs"]) for id in ids)

    # Outcomes of idempotency keys

    def _copy_outcomes(self) -> None:
        """Copy what is stored under idempotency keys to where their instances are now. None is added to the old
        partitions any more, since their instances are gone."""
        heads = {root.root: root for root in self._roots(0, self._growth.before)}
        groups: dict[tuple[Partition, Partition], list[str]] = {}
        for name in scan_keys(self._caller.client, self._keys.outcomes_pattern(self.machine)):
            head, _, rest = name.partition("}:")
            root = heads.get(f"{head}}}")
            if root is None or (id := _read_outcome_id(rest)) is None or (there := self._make_new_root(id)) == root:
                continue
            group = groups.setdefault((root, there), [])
            group.append(f":{rest}")
            if len(group) >= OUTCOMES:
                self._copy(root, there, groups.pop((root, there)))
        for (root, there), names in groups.items():
            self._copy(root, there, names)

    def _copy(self, root: Partition, there: Partition, names: list[str]) -> None:
        self._say_alive()
        found = self._call("sb_outcomes", root, "read", *names)[1:]
        words = [
            w for n, text, ms in zip(names, found[::2], found[1::2], strict=True) if text and ms for w in (n, text, ms)
        ]
        if words:
            self._call("sb_outcomes", there, "write", *words)

    # Small parts

    def _roots(self, first: int, end: int) -> list[Partition]:
        return [self._keys.partition(self.machine, n) for n in range(first, end)]

    def _make_new_root(self, id: str) -> Partition:
        return self._keys.partition(self.machine, choose_partition(id, self.to))

    def _make_old_key(self, id: str) -> str:
        return self._keys.partition(self.machine, choose_partition(id, self._growth.before)).instance(id)

    def _count_leaving(self) -> int:
        """Estimate how many instances will move."""
        held = sum(self._count_sizes()[: self._growth.before])
        return round(held * (1 - self._growth.before / self.to))

    def _count_sizes(self) -> list[int]:
        metas = [root.meta for root in self._roots(0, self.to)]
        return [int(n or 0) for n in self._caller.commands([(meta, ("HGET", meta, "instances")) for meta in metas])]

    def _announce(self) -> None:
        """Make processes read the list of machines again."""
        self._caller.command("INCR", self._keys.revision)

    @property
    def _alive(self) -> str:
        return self._keys.growth_alive(self.machine)

    def _say_alive(self) -> None:
        self._caller.command("SET", self._alive, self._growth.run, "PX", ALIVE_MS)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopped() and (left := until - time.monotonic()) > 0:
            self._say_alive()
            time.sleep(min(left, 0.5))

    def _call(self, function: str, root: Partition, *words: str | int) -> list[Any]:
        return self._check(function, self._caller.call(function, root.root, *words))

    def _call_replicated(self, function: str, root: Partition, *words: str | int) -> list[Any]:
        """Make a call that the next one builds on: a replica has it, too, so that a failover between the two loses no
        instance and brings none back. Raises EngineUnavailable where no replica has it in time."""
        if not self._replicas:
            return self._call(function, root, *words)
        reply, written = self._caller.call_and_wait(
            function, root.root, *words, replicas=self._replicas, timeout=REPLICA_MS
        )
        self._check(function, reply)
        if written < self._replicas:
            raise EngineUnavailable(f"no replica has written what moves to or from {root.root}; run it again later")
        return reply

    def _count_replicas(self) -> int:
        """Return 1 where each server has a replica, else 0."""
        try:
            held = [node.info("replication") for node in routing.list_nodes(self._caller.client)]
        except FAILURES as error:
            translate(error)
        return min(1, *(int(each.get("connected_slaves", 0)) for each in held))

    def _check(self, function: str, reply: list[Any]) -> list[Any]:
        if reply[0] == Status.CONFLICT and function != "sb_publish":
            raise Outrun(f"another run moves {self.machine}")
        return require_ok(function, reply)


def rescue_all(client: Client, keys: Keys) -> int:
    """Bring into force what killed runs of all machines have left between two partitions; return how many instances."""
    caller = Caller(client, keys.prefix)
    count = 0
    for machine, text in caller.command("HGETALL", keys.growth).items():
        growth = Growth.read(str(text))
        if growth.under_way:
            count += Repartition(client, keys, str(machine), growth.after).rescue()
    return count


def _digest(text: str) -> str:
    """Return what ``redis.sha1hex`` makes of a record: it only tells whether the instance has changed."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _read_outcome_id(rest: str) -> str | None:
    """Return the instance in ``k:<bytes>:<id>:<key>``; None for another key."""
    kind, _, rest = rest.partition(":")
    length, _, rest = rest.partition(":")
    if kind not in ("k", "c") or not length.isdigit():
        return None
    return rest.encode()[: int(length)].decode(errors="replace")
