"""Every Redis key of Signalbox is built here, and nowhere else.

All keys of one partition of a machine share one hash tag, ``{machine:partition}``, so that one
atomic call may touch them all on a cluster. A *root* is that shared beginning, for example
``sb:{activation:0}``; the functions library gets it as KEYS[1] and adds the suffixes below.
``tests/engine/connection/test_keys.py`` pins every literal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PREFIX = "sb:"

_JOB_OR_PLACE = re.compile(
    r"(\{[A-Za-z_][A-Za-z0-9_.-]*:[0-9]+\}):(?:job:([0-9]+-[0-9]+)|q:([A-Za-z_][A-Za-z0-9_.-]*)(?::(leased|delayed|dead))?)"
)


def crc16(data: bytes) -> int:
    """CRC-16/XMODEM, the checksum Redis Cluster places keys by (cluster specification, appendix A)."""
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021) & 0xFFFF if crc & 0x8000 else (crc << 1) & 0xFFFF
    return crc


def partition_of(id: str, partitions: int) -> int:
    """Which of a machine's partitions holds the instance."""
    return 0 if partitions == 1 else crc16(id.encode()) % partitions


@dataclass(frozen=True, slots=True)
class Partition:
    """The keys of one partition of one machine."""

    root: str

    @property
    def meta(self) -> str:
        """hash: current version, partitions, job counter, number of instances, indexed fields, and sensitive ones."""
        return f"{self.root}:meta"

    @property
    def states(self) -> str:
        """set: every state name any published version has."""
        return f"{self.root}:states"

    @property
    def queues(self) -> str:
        """set: every queue name this partition has ever had."""
        return f"{self.root}:queues"

    @property
    def flow(self) -> str:
        """hash: ``<version>:<transition>`` -> how often it was taken."""
        return f"{self.root}:flow"

    @property
    def refused(self) -> str:
        """hash: event -> how often an instance refused it; under "" those no version's transition names."""
        return f"{self.root}:refused"

    @property
    def log(self) -> str:
        """stream, capped: what machines emit and log, and what was deleted."""
        return f"{self.root}:log"

    @property
    def timers(self) -> str:
        """zset: ``<timer>:<instance>`` by the ms it is due; the instance's own list says what it is."""
        return f"{self.root}:timers"

    @property
    def late(self) -> str:
        """zset: timers that were due and could not be carried out, by the ms of the next try."""
        return f"{self.root}:late"

    @property
    def outbox(self) -> str:
        """stream: messages to other instances that are not yet delivered."""
        return f"{self.root}:out"

    @property
    def floors(self) -> str:
        """hash: root of a sender -> id below which every message of its outbox is settled."""
        return f"{self.root}:floors"

    @property
    def pulse(self) -> str:
        """string, PX 50: set by a step; its notification wakes the live hub."""
        return f"{self.root}:pulse"

    @property
    def clock(self) -> str:
        """list, capped: rung when something becomes due earlier than ticks have said; never what is due."""
        return f"{self.root}:bell"

    def definition(self, version: int) -> str:
        """hash: program, source, digest, secret of one published version."""
        return f"{self.root}:def:{version}"

    def instance(self, id: str) -> str:
        """hash: one instance."""
        return f"{self.root}:i:{id}"

    def state(self, state: str) -> str:
        """zset: ids of the instances in a state, by the ms they entered it."""
        return f"{self.root}:in:{state}"

    def history(self, id: str) -> str:
        """list, capped: the steps of one instance, oldest first."""
        return f"{self.root}:h:{id}"

    def seen(self, source: str) -> str:
        """zset: ids of the messages of one sender's outbox that were applied here and may come again."""
        return f"{self.root}:seen:{source}"

    def held(self, id: str) -> str:
        """list: messages that wait for a suspended instance, oldest first."""
        return f"{self.root}:held:{id}"

    def outcome(self, id: str, key: str) -> str:
        """string with PX: the outcome of the fire that carried this idempotency key."""
        return f"{self.root}:k:{len(id.encode())}:{id}:{key}"

    def creation(self, id: str, key: str) -> str:
        """string with PX: the outcome of the create that carried it; a create and a fire may carry the same."""
        return f"{self.root}:c:{len(id.encode())}:{id}:{key}"

    def job(self, job: str) -> str:
        """hash: one job."""
        return f"{self.root}:job:{job}"

    def ready(self, queue: str) -> str:
        """zset: jobs waiting for a worker, by priority and then by sequence."""
        return f"{self.root}:q:{queue}"

    def leased(self, queue: str) -> str:
        """zset: jobs a worker holds, by the ms their lease ends."""
        return f"{self.root}:q:{queue}:leased"

    def delayed(self, queue: str) -> str:
        """zset: jobs that wait for their time, or for their next attempt, by the ms it is due."""
        return f"{self.root}:q:{queue}:delayed"

    def dead(self, queue: str) -> str:
        """zset: jobs out of attempts, by the ms they died."""
        return f"{self.root}:q:{queue}:dead"

    def bell(self, queue: str) -> str:
        """list, capped: the doorbell an idle worker blocks on; never the work itself."""
        return f"{self.root}:q:{queue}:bell"

    def rules(self, queue: str) -> str:
        """hash: what holds a queue back: a pause, limits of the operator and of the definition, the rate's clock."""
        return f"{self.root}:q:{queue}:rules"

    def stats(self, queue: str) -> str:
        """hash: counters of what has happened on a queue, and how long jobs waited and ran."""
        return f"{self.root}:qs:{queue}"

    def unique(self, queue: str, key: str) -> str:
        """string: the one open job that a unique key stands for."""
        return f"{self.root}:u:{queue}:{key}"

    def withdrawn(self, job: str) -> str:
        """string with PX: the job was taken from the worker that runs it."""
        return f"{self.root}:w:{job}"

    def lookup(self, field: str) -> str:
        """zset, all of score 0: ``<mark of the value>NUL<id>`` of the instances by an indexed data field, or by their
        id, actor, version or error."""
        return f"{self.root}:by:{field}"

    @property
    def filling(self) -> str:
        """string with PX: ``<done>/<all>``, how far whoever fills the indexes of the machine has come."""
        return f"{self.root}:filling"

    @property
    def wrong(self) -> str:
        """hash: instance -> JSON of what is wrong with it now: dead jobs, timers that could not be carried out."""
        return f"{self.root}:wrong"

    @property
    def moved(self) -> str:
        """root of the count of instances that entered a state, a set and a HyperLogLog for each day."""
        return f"{self.root}:moved"

    @property
    def marks(self) -> str:
        """hash with PX: state -> ms and id of the last one that was counted among those that moved."""
        return f"{self.root}:moved:marks"

    def board(self, kind: str) -> str:
        """root of a scoreboard of the machine, in its partition 0."""
        return f"{self.root}:board:{kind}"

    def pages(self, run: str) -> str:
        """hash: ``<adder>:<page>`` -> JSON list of a map-reduce run's items."""
        return f"{self.root}:mr:pages:{run}"

    def index(self, run: str) -> str:
        """hash: how many items each page of a map-reduce run has, which are complete, and which it works on."""
        return f"{self.root}:mr:index:{run}"

    def parts(self, run: str) -> str:
        """hash: chunk -> JSON of what its map gave."""
        return f"{self.root}:mr:parts:{run}"

    def result(self, run: str) -> str:
        """string: JSON of what the reduce gave."""
        return f"{self.root}:mr:result:{run}"

    def bulk_order(self, bulk: str) -> str:
        """hash: what a bulk is to do, for whom, and who let it run."""
        return f"{self.root}:bk:order:{bulk}"

    def bulk_items(self, bulk: str) -> str:
        """hash: ``<attempt>:<page>`` -> JSON list of the instances a bulk found, each with its version then."""
        return f"{self.root}:bk:items:{bulk}"

    def bulk_verdicts(self, bulk: str) -> str:
        """hash: instance -> JSON of what a bulk's dry run said of it."""
        return f"{self.root}:bk:verdicts:{bulk}"

    def bulk_outcomes(self, bulk: str) -> str:
        """hash: instance -> JSON of what came of it in a bulk."""
        return f"{self.root}:bk:outcomes:{bulk}"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys below one prefix. Tests use a prefix each; production uses ``sb:``."""

    prefix: str = PREFIX

    def partition(self, machine: str, number: int = 0) -> Partition:
        return Partition(f"{self.prefix}{{{machine}:{number}}}")

    def jobs_pattern(self, machine: str | None = None) -> str:
        """What SCAN matches the keys of jobs and of their places by, and a few others; of all machines without one."""
        return f"{_literal(self.prefix)}{{{'*' if machine is None else machine}:*}}:[jq]*"

    def job_or_place(self, name: str) -> tuple[str, str, str, str] | None:
        """Root, job, queue, place of the key of a job (no queue and place) or of a place of a queue (no job); None for
        any other key."""
        found = _JOB_OR_PLACE.fullmatch(name, len(self.prefix)) if name.startswith(self.prefix) else None
        if found is None:
            return None
        tag, job, queue, place = found.groups()
        return f"{self.prefix}{tag}", job or "", queue or "", place or ("" if job else "ready")

    @property
    def machines(self) -> str:
        """hash: machine name -> number of partitions."""
        return f"{self.prefix}machines"

    @property
    def layout(self) -> str:
        """string: version number of the data layout."""
        return f"{self.prefix}layout"

    @property
    def workers(self) -> str:
        """zset: worker ids by the ms of their last heartbeat."""
        return f"{self.prefix}workers"

    def worker(self, worker: str) -> str:
        """hash with PX: one worker's heartbeat row."""
        return f"{self.prefix}worker:{worker}"

    def order(self, worker: str) -> str:
        """string with PX: what an operator told one worker to do, as JSON."""
        return f"{self.prefix}worker:{worker}:order"

    @property
    def news(self) -> str:
        """list, capped, with PX: rung when a machine is published, once for each worker there is."""
        return f"{self.prefix}news"


def _literal(text: str) -> str:
    """A text as a glob pattern that only it matches."""
    return re.sub(r"([*?\[\]\\])", r"\\\1", text)
