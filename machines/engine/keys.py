"""Builds every Redis key of Signalbox.

All keys of one partition of a machine share one hash tag, ``{machine:partition}``, so that one
atomic call may touch them all on a cluster. A *root* is that shared beginning, for example
``sb:{activation:0}``; the functions library gets it as KEYS[1] and adds the suffixes below.
``tests/engine/connection/test_keys.py`` pins every literal.
"""

import hashlib
import re
from binascii import crc_hqx
from dataclasses import dataclass
from typing import Any

PREFIX = "sb:"

_JOB_OR_PLACE = re.compile(
    r"(\{[A-Za-z_][A-Za-z0-9_.-]*:[0-9]+\}):(?:job:([0-9]+-[0-9]+)|q:([A-Za-z_][A-Za-z0-9_.-]*)(?::(leased|delayed|dead|handled|members))?)"
)


def crc16(data: bytes) -> int:
    """Return the CRC-16/XMODEM of a key, which chooses its slot (cluster specification, appendix A)."""
    return crc_hqx(data, 0)


def choose_partition(id: str, partitions: int) -> int:
    """Return the number of the partition that holds the instance."""
    return 0 if partitions == 1 else crc16(id.encode()) % partitions


def choose_home(group: str, partitions: int) -> int:
    """Return the number of the partition that has the limits of a group, as ``lua/jobs/group_limits.lua`` does."""
    return int(hashlib.sha1(group.encode(), usedforsecurity=False).hexdigest()[:8], 16) % partitions


def get_machine(root: str) -> str:
    """Return the machine of a partition by its root, ``sb:{machine:0}``."""
    return root.partition("{")[2].rpartition(":")[0]


def name_root(root: str, number: str) -> str:
    """Return the root of another partition of the same machine."""
    return f"{root.rpartition(':')[0]}:{number}}}"


class Key:
    """A key below a root: how it ends, and what it holds."""

    base = "root"

    def __init__(self, ending: str, what: str) -> None:
        self._ending, self.what = ending, what

    def __get__(self, owner: Any, kind: type) -> str:
        return f"{getattr(owner, self.base)}{self._ending}"


class PrefixKey(Key):
    """A key below the prefix alone."""

    base = "prefix"


@dataclass(frozen=True, slots=True)
class Partition:
    """The keys of one partition of one machine."""

    root: str

    meta = Key(
        ":meta",
        "hash: current version, partitions, job counter, number of instances, indexed and sensitive fields, plans "
        "of moves, ms of the latest pulse",
    )
    states = Key(":states", "set: the state names of all published versions")
    queues = Key(":queues", "set: the names of all queues this partition has ever had")
    flow = Key(":flow", "hash: ``<version>:<transition>`` -> number of times it was taken")
    refused = Key(":refused", 'hash: event -> number of refusals; under "" events that no version\'s transition names')
    log = Key(":log", "stream, capped: messages of `emit` and `log`, deletions and failures")
    timers = Key(
        ":timers", "zset: ``<timer>:<instance>`` by its due ms; the instance's own list holds the timer itself"
    )
    late = Key(":late", "zset: timers whose step failed, by the ms of the next try")
    outbox = Key(":out", "stream: undelivered messages to other instances")
    floors = Key(":floors", "hash: root of a sender -> id below which every message of its outbox is settled")
    pulse = Key(":pulse", "string, PX 50: set by a step; its keyspace notification wakes the live hub")
    edited = Key(
        ":edited", "string with PX: ms at which somebody came to the Studio, moved in it, saved a draft, or left"
    )
    bells = Key(
        ":bells",
        "channel, sharded: ``job <queue>`` when a job becomes ready, ``due <ms>`` when something becomes due "
        "earlier than the last tick returned",
    )
    clock = Key(
        ":bell", "list, capped: a push for a worker that does not hear the channel, when something becomes due earlier"
    )

    def definition(self, version: int) -> str:
        """hash: program, source, digest, secret of one published version."""
        return f"{self.root}:def:{version}"

    def instance(self, id: str) -> str:
        """hash: one instance."""
        return f"{self.root}:i:{id}"

    def state(self, state: str) -> str:
        """zset: instance ids in a state, by the ms of entry."""
        return f"{self.root}:in:{state}"

    def history(self, id: str) -> str:
        """list, capped: the steps of one instance, oldest first, packed: ``sb_history`` reads them."""
        return f"{self.root}:h:{id}"

    def seen(self, source: str) -> str:
        """zset: ids of messages of one sender's outbox that were applied here and may be delivered again."""
        return f"{self.root}:seen:{source}"

    def held(self, id: str) -> str:
        """list: messages that wait for a suspended instance, oldest first."""
        return f"{self.root}:held:{id}"

    def undo(self, id: str) -> str:
        """string with PX: what an instance was before a plan moved it to another version."""
        return f"{self.root}:undo:{id}"

    def outcome(self, id: str, key: str) -> str:
        """string with PX: the outcome of the fire with this idempotency key."""
        return f"{self.root}:k:{len(id.encode())}:{id}:{key}"

    def creation(self, id: str, key: str) -> str:
        """string with PX: the outcome of the create with this idempotency key; a fire may use the same key."""
        return f"{self.root}:c:{len(id.encode())}:{id}:{key}"

    def job(self, job: str) -> str:
        """hash: one job."""
        return f"{self.root}:job:{job}"

    def ready(self, queue: str) -> str:
        """zset: ready jobs, by priority, then by the turns of their groups or by sequence."""
        return f"{self.root}:q:{queue}"

    def leased(self, queue: str) -> str:
        """zset: leased jobs, by the ms at which the lease ends."""
        return f"{self.root}:q:{queue}:leased"

    def delayed(self, queue: str) -> str:
        """zset: delayed jobs (scheduled, or waiting for the next attempt), by their due ms."""
        return f"{self.root}:q:{queue}:delayed"

    def dead(self, queue: str) -> str:
        """zset: dead jobs (no attempts left), by the ms of death."""
        return f"{self.root}:q:{queue}:dead"

    def handled(self, queue: str) -> str:
        """zset: dead jobs that their instances no longer wait for, by the ms of death."""
        return f"{self.root}:q:{queue}:handled"

    def bell(self, queue: str) -> str:
        """list, capped: the bell of takers that do not hear the channel; it holds no jobs."""
        return f"{self.root}:q:{queue}:bell"

    def rules(self, queue: str) -> str:
        """hash: the pause of a queue, its limits by operator and definition, the clock of its rate."""
        return f"{self.root}:q:{queue}:rules"

    def turns(self, queue: str) -> str:
        """zset: the next turn of each group of jobs that is ahead of the first ready job."""
        return f"{self.root}:q:{queue}:turns"

    def limits(self, queue: str) -> str:
        """hash: group -> its own limits and pause, as JSON."""
        return f"{self.root}:q:{queue}:limits"

    def members(self, queue: str) -> str:
        """zset of one score: the jobs of groups with limits, by group, then held, ready or leased."""
        return f"{self.root}:q:{queue}:members"

    def arrivals(self, queue: str) -> str:
        """zset: groups with a rate, by the clock of that rate in ms."""
        return f"{self.root}:q:{queue}:arrivals"

    def releases(self, queue: str) -> str:
        """zset: groups with held jobs, by the ms at which a take looks at them again; below 0, the next one does."""
        return f"{self.root}:q:{queue}:releases"

    def admitted(self, queue: str) -> str:
        """zset: the jobs that the home of their groups admitted, as in ``members``, by the ms of their latest check."""
        return f"{self.root}:q:{queue}:admitted"

    def stats(self, queue: str) -> str:
        """hash: counters of a queue, and histograms of wait and run times."""
        return f"{self.root}:qs:{queue}"

    def unique(self, queue: str, key: str) -> str:
        """string: the open job with this unique key."""
        return f"{self.root}:u:{queue}:{key}"

    def withdrawn(self, job: str) -> str:
        """string with PX: the running job was taken from its worker."""
        return f"{self.root}:w:{job}"

    def lookup(self, field: str) -> str:
        """zset, all of score 0: ``<mark of the value>NUL<id>`` of the instances by an indexed data field, or by their
        id, actor, version or error."""
        return f"{self.root}:by:{field}"

    versions = Key(
        ":versions",
        "hash: ``<version>:<name>`` -> counter: instances, created, refused, dead, failed; ``mode``: whether "
        "``instances`` is exact",
    )
    filling = Key(":filling", "string with PX: ``<done>/<all>``, the progress of filling the indexes of the machine")
    wrong = Key(":wrong", "hash: instance -> JSON of its current failures: dead jobs, failing timers")
    staged = Key(
        ":staged", "hash: instance that moves here from its old partition -> its record, until it has departed there"
    )

    def imported(self, transfer: str) -> str:
        """hash with PX: job or counters of a transfer -> what they became here, so that they are written once."""
        return f"{self.root}:imported:{transfer}"

    def pages(self, run: str) -> str:
        """hash: ``<adder>:<page>`` -> JSON list of a map-reduce run's items."""
        return f"{self.root}:mr:pages:{run}"

    def index(self, run: str) -> str:
        """hash: the number of items in each page of a map-reduce run, the complete pages, the pages in use."""
        return f"{self.root}:mr:index:{run}"

    def parts(self, run: str) -> str:
        """hash: chunk -> JSON of its part."""
        return f"{self.root}:mr:parts:{run}"

    def result(self, run: str) -> str:
        """string: JSON of the result."""
        return f"{self.root}:mr:result:{run}"

    def bulk_order(self, bulk: str) -> str:
        """hash: the action of a bulk action, its author, and the approval to run."""
        return f"{self.root}:bk:order:{bulk}"

    def bulk_items(self, bulk: str) -> str:
        """hash: ``<attempt>:<page>`` -> JSON list of the matching instances with their revisions."""
        return f"{self.root}:bk:items:{bulk}"

    def bulk_previews(self, bulk: str) -> str:
        """hash: instance -> JSON of its preview in a bulk action."""
        return f"{self.root}:bk:verdicts:{bulk}"

    def bulk_outcomes(self, bulk: str) -> str:
        """hash: instance -> JSON of its result in a bulk action."""
        return f"{self.root}:bk:outcomes:{bulk}"

    def enqueued(self, key: str) -> str:
        """string with PX: the job that was enqueued with this idempotency key."""
        return f"{self.root}:once:{key}"

    def batch(self, id: str) -> str:
        """hash: the figures of a batch of jobs, its callbacks, how much of each addition is stored."""
        return f"{self.root}:batch:{id}"

    def schedule(self, name: str) -> str:
        """hash: what a schedule does and when, and its source."""
        return f"{self.root}:sc:{name}"

    def task_result(self, job: str) -> str:
        """string with PX: JSON of a task of Django that succeeded, with what it returned."""
        return f"{self.root}:task:{job}"

    def task_errors(self, job: str) -> str:
        """hash with PX: attempt -> JSON of the exception and traceback of a task of Django."""
        return f"{self.root}:task:{job}:errors"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys below one prefix. Each test has a prefix of its own; production uses ``sb:``."""

    prefix: str = PREFIX

    def partition(self, machine: str, number: int = 0) -> Partition:
        return Partition(f"{self.prefix}{{{machine}:{number}}}")

    def jobs_pattern(self, machine: str | None = None) -> str:
        """Return a SCAN pattern for the keys of jobs and places (and a few others), by default of all machines."""
        return f"{_literal(self.prefix)}{{{'*' if machine is None else machine}:*}}:[jq]*"

    def output(self, root: str, job: str) -> str:
        """string with EX: the end of what the handler of a job of the partition ``root`` logged and printed."""
        return f"{root}:output:{job}"

    def records_pattern(self, machine: str) -> str:
        """Return a SCAN pattern for the keys of the machine's instances and jobs, and a few others."""
        return f"{_literal(self.prefix)}{{{machine}:*}}:[ij]*"

    def outcomes_pattern(self, machine: str) -> str:
        """Return a SCAN pattern for the keys of outcomes that are stored for idempotency."""
        return f"{_literal(self.prefix)}{{{machine}:*}}:[kc]:*"

    def job_or_place(self, name: str) -> tuple[str, str, str, str] | None:
        """Return root, job, queue, place of a job's key (no queue, no place) or of a place's key (no job); None for
        any other key."""
        found = _JOB_OR_PLACE.fullmatch(name, len(self.prefix)) if name.startswith(self.prefix) else None
        if found is None:
            return None
        tag, job, queue, place = found.groups()
        return f"{self.prefix}{tag}", job or "", queue or "", place or ("" if job else "ready")

    machines = PrefixKey("machines", "hash: machine name -> number of partitions")
    revision = PrefixKey(
        "revision", "string: a counter that each publication increments, and each begin and end of a growth"
    )
    growth = PrefixKey(
        "growth",
        "hash: machine whose number of partitions has grown -> ``<before>:<after>:<run>:<ms of the end, or 0>``",
    )

    def growth_alive(self, machine: str) -> str:
        """string with PX: number of the run that moves instances of a machine."""
        return f"{self.prefix}growth:{machine}:alive"

    layout = PrefixKey(
        "layout",
        "hash: number of the data layout, the lowest one that a reader must know, place of an unfinished migration",
    )
    layout_lock = PrefixKey("layout:lock", "string with PX: the process that moves the data layout")

    def library_lock(self, tag: int) -> str:
        """string with PX: the process that loads the functions library; on a cluster, one for each node."""
        return f"{self.prefix}{{library:{tag}}}:loading"

    workers = PrefixKey("workers", "zset: worker ids by the ms of their last heartbeat")
    shares = PrefixKey(
        "shares", "zset: ids of the workers that share the duties of partitions, by the ms of their last sign of life"
    )
    clock_jumps = PrefixKey("clock:jumps", 'hash: server, "" for the only one -> JSON of the latest jump of its clock')

    def worker(self, worker: str) -> str:
        """hash with PX: one worker's heartbeat row."""
        return f"{self.prefix}worker:{worker}"

    def order(self, worker: str) -> str:
        """string with PX: an operator's order for one worker, as JSON."""
        return f"{self.prefix}worker:{worker}:order"

    news = PrefixKey("news", "list, capped, with PX: a bell with one push for each worker when a machine is published")


def _literal(text: str) -> str:
    """Return a glob pattern that matches only this text."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)
