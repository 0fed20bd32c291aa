"""Builds every Redis key of Signalbox.

All keys of one partition of a machine share one hash tag, ``{machine:partition}``, so that one
atomic call may touch them all on a cluster. A *root* is that shared beginning, for example
``sb:{activation:0}``; the functions library gets it as KEYS[1] and adds the suffixes below.
``tests/engine/connection/test_keys.py`` pins every literal.
"""

import hashlib
import re
from binascii import crc_hqx
from collections.abc import Callable
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
    """A key below a root, by its ending. A comment above its declaration tells what it holds."""

    base = "root"

    def __init__(self, ending: str) -> None:
        self.ending = ending

    def __get__(self, owner: Any, kind: type) -> str:
        return f"{getattr(owner, self.base)}{self.ending}"


class KeyOf(Key):
    """A key below a root with a name in it, as in ``:q:{queue}:dead``: it is called with that name."""

    def __init__(self, ending: str) -> None:
        super().__init__(ending)
        self._before, self._after = re.split(r"\{\w+\}", ending)

    def __get__(self, owner: Any, kind: type) -> Callable[[str | int], str]:  # type: ignore[override]
        head, after = f"{owner.root}{self._before}", self._after
        return lambda name: f"{head}{name}{after}"


class PrefixKey(Key):
    """A key below the prefix alone."""

    base = "prefix"


@dataclass(frozen=True, slots=True)
class Partition:
    """The keys of one partition of one machine."""

    root: str

    #: hash: current version, partitions, job counter, number of instances, indexed and sensitive fields, plans of
    #: moves, ms of the latest pulse
    meta = Key(":meta")
    #: set: the state names of all published versions
    states = Key(":states")
    #: set: the names of all queues this partition has ever had
    queues = Key(":queues")
    #: hash: ``<version>:<transition>`` -> number of times it was taken
    flow = Key(":flow")
    #: hash: event -> number of refusals; under "" events that no version's transition names
    refused = Key(":refused")
    #: stream, capped: messages of `emit` and `log`, deletions and failures
    log = Key(":log")
    #: zset: ``<timer>:<instance>`` by its due ms; the instance's own list holds the timer itself
    timers = Key(":timers")
    #: zset: timers whose step failed, by the ms of the next try
    late = Key(":late")
    #: stream: undelivered messages to other instances
    outbox = Key(":out")
    #: hash: root of a sender -> id below which every message of its outbox is settled
    floors = Key(":floors")
    #: string, PX 50: set by a step; its keyspace notification wakes the live hub
    pulse = Key(":pulse")
    #: string with PX: ms at which an author came to the Studio, moved in it, saved a draft, or left
    edited = Key(":edited")
    #: channel, sharded: ``job <queue>`` when a job becomes ready, ``due <ms>`` when something becomes due earlier than
    #: the last tick returned
    bells = Key(":bells")
    #: list, capped: a push for a worker that does not hear the channel, when something becomes due earlier
    clock = Key(":bell")
    #: hash: program, source, digest, secret of one published version
    definition = KeyOf(":def:{version}")
    #: hash: one instance
    instance = KeyOf(":i:{id}")
    #: zset: instance ids in a state, by the ms of entry
    state = KeyOf(":in:{state}")
    #: list, capped: the steps of one instance, oldest first, packed: ``sb_history`` reads them
    history = KeyOf(":h:{id}")
    #: zset: ids of messages of one sender's outbox that were applied here and may be delivered again
    seen = KeyOf(":seen:{source}")
    #: list: messages that wait for a suspended instance, oldest first
    held = KeyOf(":held:{id}")
    #: string with PX: what an instance was before a plan moved it to another version
    undo = KeyOf(":undo:{id}")

    def outcome(self, id: str, key: str) -> str:
        """string with PX: the outcome of the fire with this idempotency key."""
        return f"{self.root}:k:{len(id.encode())}:{id}:{key}"

    def creation(self, id: str, key: str) -> str:
        """string with PX: the outcome of the create with this idempotency key; a fire may use the same key."""
        return f"{self.root}:c:{len(id.encode())}:{id}:{key}"

    #: string of a plain job, hash of any other: see lua/jobs/packed_jobs.lua
    job = KeyOf(":job:{job}")
    #: zset: ready jobs, by priority, then by the turns of their groups or by sequence
    ready = KeyOf(":q:{queue}")
    #: zset: leased jobs, by the ms at which the lease ends
    leased = KeyOf(":q:{queue}:leased")
    #: zset: delayed jobs (scheduled, or waiting for the next attempt), by their due ms
    delayed = KeyOf(":q:{queue}:delayed")
    #: zset: dead jobs (no attempts left), by the ms of death
    dead = KeyOf(":q:{queue}:dead")
    #: zset: dead jobs that their instances no longer wait for, by the ms of death
    handled = KeyOf(":q:{queue}:handled")
    #: list, capped: the bell of takers that do not hear the channel; it holds no jobs
    bell = KeyOf(":q:{queue}:bell")
    #: hash: the pause of a queue, its limits by operator and definition, the clock of its rate
    rules = KeyOf(":q:{queue}:rules")
    #: zset: the next turn of each group of jobs that is ahead of the first ready job
    turns = KeyOf(":q:{queue}:turns")
    #: hash: group -> its own limits and pause, as JSON
    limits = KeyOf(":q:{queue}:limits")
    #: zset of one score: the jobs of groups with limits, by group, then held, ready or leased
    members = KeyOf(":q:{queue}:members")
    #: zset: groups with a rate, by the clock of that rate in ms
    arrivals = KeyOf(":q:{queue}:arrivals")
    #: zset: groups with held jobs, by the ms at which a take looks at them again; below 0, the next one does
    releases = KeyOf(":q:{queue}:releases")
    #: zset: the jobs that the home of their groups admitted, as in ``members``, by the ms of their latest check
    admitted = KeyOf(":q:{queue}:admitted")
    #: hash: counters of a queue, and histograms of wait and run times
    stats = KeyOf(":qs:{queue}")

    def unique(self, queue: str, key: str) -> str:
        """string: the open job with this unique key."""
        return f"{self.root}:u:{queue}:{key}"

    #: string with PX: the running job was taken from its worker
    withdrawn = KeyOf(":w:{job}")
    #: zset, all of score 0: ``<mark of the value>NUL<id>`` of the instances by an indexed data field, or by their id,
    #: actor, version or error
    lookup = KeyOf(":by:{field}")
    #: hash: ``<version>:<name>`` -> counter: instances, created, refused, dead, failed; ``mode``: whether ``instances``
    #: is exact
    versions = Key(":versions")
    #: string with PX: ``<done>/<all>``, the progress of filling the indexes of the machine
    filling = Key(":filling")
    #: hash: instance -> JSON of its current failures: dead jobs, failing timers
    wrong = Key(":wrong")
    #: hash: instance that moves here from its old partition -> its record, until it has departed there
    staged = Key(":staged")
    #: hash with PX: job or counters of a transfer -> what they became here, so that they are written once
    imported = KeyOf(":imported:{transfer}")
    #: hash: ``<adder>:<page>`` -> JSON list of a map-reduce run's items
    pages = KeyOf(":mr:pages:{run}")
    #: hash: the number of items in each page of a map-reduce run, the complete pages, the pages in use
    index = KeyOf(":mr:index:{run}")
    #: hash: chunk -> JSON of its part
    parts = KeyOf(":mr:parts:{run}")
    #: string: JSON of the result
    result = KeyOf(":mr:result:{run}")
    #: hash: the action of a bulk action, its author, and the approval to run
    bulk_order = KeyOf(":bk:order:{bulk}")
    #: hash: ``<attempt>:<page>`` -> JSON list of the matching instances with their revisions
    bulk_items = KeyOf(":bk:items:{bulk}")
    #: hash: instance -> JSON of its preview in a bulk action
    bulk_previews = KeyOf(":bk:verdicts:{bulk}")
    #: hash: instance -> JSON of its result in a bulk action
    bulk_outcomes = KeyOf(":bk:outcomes:{bulk}")
    #: string with PX: the job that was enqueued with this idempotency key
    enqueued = KeyOf(":once:{key}")
    #: hash: the figures of a batch of jobs, its callbacks, how much of each addition is stored
    batch = KeyOf(":batch:{id}")
    #: hash: what a schedule does and when, and its source
    schedule = KeyOf(":sc:{name}")
    #: string with PX: JSON of a task of Django that succeeded, with what it returned
    task_result = KeyOf(":task:{job}")
    #: hash with PX: attempt -> JSON of the exception and traceback of a task of Django
    task_errors = KeyOf(":task:{job}:errors")


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

    #: hash: machine name -> number of partitions
    machines = PrefixKey("machines")
    #: string: a counter that each publication increments, and each begin and end of a growth
    revision = PrefixKey("revision")
    #: hash: machine whose number of partitions has grown -> ``<before>:<after>:<run>:<ms of the end, or 0>``
    growth = PrefixKey("growth")

    def growth_alive(self, machine: str) -> str:
        """string with PX: number of the run that moves instances of a machine."""
        return f"{self.prefix}growth:{machine}:alive"

    #: hash: number of the data layout, the lowest one that a reader must know
    layout = PrefixKey("layout")

    def library_lock(self, tag: int) -> str:
        """string with PX: the process that loads the functions library; on a cluster, one for each node."""
        return f"{self.prefix}{{library:{tag}}}:loading"

    #: zset: worker ids by the ms of their last heartbeat
    workers = PrefixKey("workers")
    #: zset: ids of the workers that share the duties of partitions, by the ms of their last sign of life
    shares = PrefixKey("shares")
    #: hash: server, "" for the only one -> JSON of the latest jump of its clock
    clock_jumps = PrefixKey("clock:jumps")

    def worker(self, worker: str) -> str:
        """hash with PX: one worker's heartbeat row."""
        return f"{self.prefix}worker:{worker}"

    def order(self, worker: str) -> str:
        """string with PX: an operator's order for one worker, as JSON."""
        return f"{self.prefix}worker:{worker}:order"

    #: list, capped, with PX: a bell with one push for each worker when a machine is published
    news = PrefixKey("news")


def _literal(text: str) -> str:
    """Return a glob pattern that matches only this text."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)
