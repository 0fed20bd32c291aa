"""Operations on queues: pause, limit, purge, retry, withdraw; their repair and their statistics."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Required, TypedDict, Unpack

from machines.engine import arguments, limits, permits, rates
from machines.engine.connection import replies
from machines.engine.connection.calls import keep_available
from machines.engine.connection.replies import Status
from machines.engine.errors import BadInput, JobHandled, Miscounted
from machines.engine.keys import Partition
from machines.engine.permits import Permit
from machines.engine.records import PartialDict, PartialList

from .batches import BatchMethods
from .group_admissions import GroupAdmissions
from .mending import MendReport, MendWalk
from .reading import PLACES, check_place, get_job_id
from .records import Job, Pause, QueueStats
from .wakeups import ReadyQueues

TOGETHER = 50  # jobs that one call removes or retries: each may be a step of an instance
Words = tuple[str | int, ...]
LIMITS = ("concurrency", "rate")
PURGED = ("ready", "delayed", "dead", "handled")


class PauseOptions(TypedDict, total=False):
    """Who pauses or resumes a queue, and why. ``now``: ms since the epoch, in place of the server's clock."""

    actor: Required[str]
    reason: Required[str]
    now: int | None


class QueueOptions(TypedDict, total=False):
    """The options of an action on jobs.

    ``actor`` and ``reason`` are required. ``now``: ms since the epoch, in place of the server's clock. ``permit``: the
    rights of the person behind the call, None for a program. With a permit, an action that equals a repair for which
    the definition requires a second person (``cancel`` for ``purge`` and ``withdraw``, else ``retry``) raises
    NeedsApproval for one job and skips the job among several.
    """

    actor: Required[str]
    reason: Required[str]
    now: int | None
    permit: Permit | None


class JobMethods(BatchMethods):
    """Operations on queues: a part of ``Engine``. Each call is atomic on each partition; several partitions follow one
    another."""

    _ready_queues: ReadyQueues
    _admissions: GroupAdmissions

    # Pause and limits

    def pause(self, machine: str, queue: str, *, group: str | None = None, **options: Unpack[PauseOptions]) -> None:
        """Pause a queue, or one group of it: no job is taken until it is resumed. Running jobs may finish, new jobs may
        be enqueued."""
        self._set_pause(machine, queue, "pause", group, options)

    def resume_queue(
        self, machine: str, queue: str, *, group: str | None = None, **options: Unpack[PauseOptions]
    ) -> None:
        """End the pause of a queue, or of one group of it."""
        self._set_pause(machine, queue, "resume", group, options)

    def _set_pause(self, machine: str, queue: str, action: str, group: str | None, options: PauseOptions) -> None:
        """Pause or resume a queue or a group, by ``action``."""
        arguments.check_queue(queue)
        words = (queue, action, *_encode_options(**options)[0], "", "", arguments.check_group(group))
        for partition in self._catalog.partitions(machine):
            self._call_queue("sb_queue", partition, *words)

    def list_pauses(self, machine: str) -> dict[str, Pause]:
        """Return queue -> pause, of the queues that are paused."""
        return {name: found.paused for name, found in self.stats(machine).items() if found.paused is not None}

    def limit(
        self,
        machine: str,
        queue: str,
        *,
        group: str | None = None,
        concurrency: int | None = None,
        rate: str | None = None,
        actor: str = "",
        reason: str = "",
    ) -> None:
        """Limit how many jobs of a queue, or of one group of it, may be leased at a time, and how fast they are taken
        ("100/s", "5/s burst 20").

        None: the limit of the current definition, if any. 0 and "none": no limit, whatever the definition says. They
        hold for all partitions together, and count jobs that run already.
        """
        arguments.check_queue(queue)
        most = limits.MAX_CONCURRENCY
        wanted = None if concurrency is None else arguments.check_between("concurrency", concurrency, 0, most)
        head = (queue, "limit", arguments.check_actor(actor), arguments.check_reason(reason), "")
        partitions = self._catalog.partitions(machine)
        words = ("" if wanted is None else wanted, _parse_rate(rate), arguments.check_group(group), "whole")
        for partition in partitions:
            self._call_queue("sb_queue", partition, *head, *words)
        self._count_leased(machine, [queue])

    def _count_leased(self, machine: str, queues: Iterable[str] | None = None) -> None:
        """Have jobs counted that run already, of queues, None for all, that have limits now or whose groups have."""
        partitions = self._catalog.partitions(machine)
        if len(partitions) > 1:
            queues = queues or sorted(map(str, self._caller.command("SMEMBERS", partitions[0].queues)))
            self._admissions.count_leased(queues, [each.root for each in partitions])

    # Jobs

    def purge(
        self, machine: str, queue: str, *, place: str, expect: int | None = None, **options: Unpack[QueueOptions]
    ) -> int:
        """Remove all jobs of one place (ready, delayed, dead or handled); return how many. With ``expect``, only
        when there are exactly that many; else Miscounted. Their instances get ``error.invoke.<id>``, kind "Purged"."""
        arguments.check_queue(queue)
        check_place(place, PURGED)
        who, rights = _encode_options(**options)
        held = [(p, self._count_jobs(p, queue, place)) for p in self._catalog.partitions(machine)]
        total = sum(count for _, count in held)
        if expect is not None and arguments.check_between("expect", expect, 0, limits.MAX_INTEGER) != total:
            raise Miscounted(queue, place, expected=expect, actual=total)
        purged = 0
        for partition, count in held:
            left, audit_count = count, str(count)
            while left > 0:
                words: Words = (queue, place, min(left, TOGETHER), *who, audit_count, *rights)
                reply = self._call_queue("sb_purge", partition, *words, machine=machine)
                gone, audit_count = int(reply[1]), ""
                if not gone:
                    break
                purged, left = purged + gone, left - gone
        return purged

    def redrive(
        self,
        machine: str,
        queue: str,
        job: Job | str | None = None,
        *,
        force: bool = False,
        unchanged: bool = False,
        **options: Unpack[QueueOptions],
    ) -> int:
        """Make one dead job, or all of a queue, ready again with their attempts reset; return how many moved.

        An instance still in the state that asked for the job waits for it again; one that moved on stays where it is. A
        job whose unique key has another open job stays dead. Handled jobs stay: one alone raises JobHandled unless
        ``force``; no instance waits for its result then. ``unchanged``, with one job: as of ``withdraw``.
        """
        return self._redrive(machine, queue, "dead", job, options, unchanged, "force" if force else "")

    def move_now(
        self,
        machine: str,
        queue: str,
        job: Job | str | None = None,
        *,
        unchanged: bool = False,
        **options: Unpack[QueueOptions],
    ) -> int:
        """Make one delayed job, or all of a queue, ready at once; return how many moved. ``unchanged``, with one job:
        as of ``withdraw``."""
        return self._redrive(machine, queue, "delayed", job, options, unchanged)

    def _redrive(
        self,
        machine: str,
        queue: str,
        place: str,
        job: Job | str | None,
        options: QueueOptions,
        unchanged: bool,
        force: str = "",
    ) -> int:
        """Make jobs of a place ready."""
        arguments.check_queue(queue)
        who, rights = _encode_options(**options)
        if job is not None:
            id = get_job_id(job)
            seen = _describe_place(job) if unchanged else ""
            words: Words = (queue, place, id, 0, *who, id, *(rights or ("",)), force, seen)
            reply = self._call_queue("sb_redrive", self._find_job_partition(machine, id), *words, machine=machine)
            if len(reply) > 4:
                raise JobHandled(machine, id)
            return int(reply[1])
        return sum(self._redrive_all(each, queue, place, who, rights) for each in self._catalog.partitions(machine))

    def _redrive_all(
        self, partition: Partition, queue: str, place: str, who: tuple[str, str, str], rights: Words
    ) -> int:
        moved = passed = 0
        left = self._count_jobs(partition, queue, place)
        audit_count = str(left)
        while left > 0:
            words: Words = (queue, place, min(left, TOGETHER), passed, *who, audit_count, *rights)
            reply = self._call_queue("sb_redrive", partition, *words)
            moved, passed, audit_count = moved + int(reply[1]), passed + int(reply[2]), ""
            seen = int(reply[1]) + int(reply[2])
            if not seen:
                break
            left -= seen
        return moved

    def reschedule(
        self,
        machine: str,
        job: Job | str,
        *,
        until: int | None = None,
        queue: str = "",
        unchanged: bool = False,
        **options: Unpack[QueueOptions],
    ) -> bool:
        """Have a ready or delayed job wait until a time (ms since the epoch), or move it to another queue; return
        whether it moved. It stays when another open job of that queue has its unique key. ``unchanged``: as of
        ``withdraw``."""
        if queue:
            arguments.check_queue(queue)
        if until is None and not queue:
            raise BadInput("give a time until which the job waits, or a queue")
        id = get_job_id(job)
        who, rights = _encode_options(**options)
        partition = self._find_job_partition(machine, id)
        words: Words = (id, arguments.encode_whole("until", until), _describe_place(job) if unchanged else "", queue)
        reply = self._call_queue("sb_reschedule", partition, *words, *who, *rights, machine=machine)
        return int(reply[1]) > 0

    def withdraw(
        self, machine: str, job: Job | str, *, unchanged: bool = False, **options: Unpack[QueueOptions]
    ) -> bool:
        """Withdraw one job, wherever it is; return whether it was there. ``unchanged``: only while it is where the
        record says, since then. Its instance gets ``error.invoke.<id>``, kind "Withdrawn"; a worker that runs it learns
        of it with its next heartbeat. Raises LookupFailed."""
        id = get_job_id(job)
        seen = _describe_place(job) if unchanged else ""
        found = self.job(machine, id)
        who, rights = _encode_options(**options)
        partition = self._find_job_partition(machine, id)
        words = *who, "", *(rights or ("",)), "", seen
        reply = self._caller.call("sb_purge", partition.root, found.queue, "job", id, *words)
        if reply[0] != Status.OK:
            self.job(machine, id)  # raises when it went meanwhile
            raise replies.build_error(machine, id, reply)
        return int(reply[1]) > 0

    def _count_jobs(self, partition: Partition, queue: str, place: str) -> int:
        return int(self._call_queue("sb_jobs", partition, queue, place, 1)[1])

    def mend(self, machine: str, *, now: int | None = None) -> MendReport:
        """Put every job where its hash says it is, after keys were damaged from outside; return what was repaired.

        Reads the whole keyspace in small steps. A leased job without a lease gets one, which a live worker renews; a
        job past its deadline gets ten seconds at most and is then taken back like any other.
        """
        self._catalog.partitions(machine)  # raises when there is none
        walk, found = MendWalk(self._caller, self.keys, machine), MendReport()
        while not walk.over:
            found += walk.step(now)
        return found

    def mending(self) -> MendWalk:
        """Return the same for all machines, step by step."""
        return MendWalk(self._caller, self.keys)

    def ready(self, queues: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """List those of the queues, (machine, queue), that hold ready jobs."""
        return list(self._ready_queues.find(queues))

    def ready_partitions(self, queues: Iterable[tuple[str, str]]) -> dict[tuple[str, str], set[int]]:
        """Return (machine, queue) -> the numbers of its partitions that hold ready jobs, for queues that have any."""
        return self._ready_queues.find(queues)

    def queue_names(self, machines: Iterable[str]) -> PartialList[tuple[str, str]]:
        """List (machine, queue) for every queue these machines ever had. The attribute ``missing`` of the result lists
        the roots of partitions that did not answer."""
        return self._ready_queues.list_queues(machines)

    # Statistics

    def stats(self, machine: str) -> PartialDict[QueueStats]:
        """Return queue -> its depths, counters, histograms and limits. The attribute ``missing`` of the result lists
        the roots of partitions that did not answer."""
        roots = [partition.root for partition in self._catalog.partitions(machine)]
        answers = keep_available(self._caller.many([("sb_stats", root, ()) for root in roots]))
        missing = tuple(root for root, reply in zip(roots, answers, strict=True) if isinstance(reply, Exception))
        found = merge_stats([json.loads(reply[1]) for reply in answers if not isinstance(reply, Exception)])
        if missing:
            found = {queue: replace(stats, missing=missing) for queue, stats in found.items()}
        return PartialDict(found, missing=missing)

    def _call_queue(self, function: str, partition: Partition, *words: str | int, machine: str = "") -> list[Any]:
        reply = self._caller.call(function, partition.root, *words)
        if reply[0] != Status.OK:
            raise replies.build_error(machine or partition.root, str(words[0]), reply)
        return reply


def _describe_place(job: Job | str) -> str:
    """Return where a job was when it was read, and since when, as ``sb_reschedule`` takes it."""
    if isinstance(job, str):
        raise BadInput("unchanged needs the record of the job")
    return f"{job.place} {job.finished or job.due} {job.queue}"


def _encode_options(
    *, actor: str, reason: str, now: int | None = None, permit: Permit | None = None
) -> tuple[tuple[str, str, str], Words]:
    """Return the arguments for actor, reason and time; and that for a permit, which follows all others, none for a
    program."""
    who = arguments.check_actor(actor), arguments.require_reason(reason), arguments.encode_whole("now", now)
    return who, () if permit is None else (permits.encode_permit(permit),)


def _parse_rate(rate: str | None) -> str:
    """Return what ``sb_queue`` takes for a rate."""
    if rate is None:
        return ""
    if rate == "none":
        return "0"
    parsed = rates.QueueRate.parse(rate) if isinstance(rate, str) else None
    if parsed is None:
        raise BadInput(f"{arguments.show(rate)} is no rate; {rates.RATE_HINT}", code="SB414")
    return parsed.encode()


def merge_stats(parts: Sequence[Mapping[str, Any]]) -> dict[str, QueueStats]:
    """Merge what ``sb_stats`` returned for each partition of a machine into queue -> statistics."""
    names = sorted({name for part in parts for name in part["queues"]})
    return {name: _build_stats(name, parts) for name in names}


def _build_stats(queue: str, parts: Sequence[Mapping[str, Any]]) -> QueueStats:
    rows = [part["queues"][queue] for part in parts if queue in part["queues"]]
    counters: Counter[str] = Counter()
    for row in rows:
        counters.update({name: int(value) for name, value in row["counters"].items()})
    depth = {place: sum(int(row.get(place, 0)) for row in rows) for place in PLACES}
    waits, runs = _histogram(counters, "wait:"), _histogram(counters, "run:")
    completed, withdrawn, purged = sum(runs.values()), counters["withdrawn"], counters["purged"]
    waiting = [int(row["oldest"]) for row in rows if row["oldest"] is not None]
    return QueueStats(
        queue=queue,
        now=max(int(part["now"]) for part in parts),
        depth=depth,
        oldest=min(waiting, default=None),
        held=sum(int(row.get("held", 0)) for row in rows),
        # Every job that ever came is still there, or has left in one of these four ways. One that a growing machine has
        # moved to another partition is there once more.
        enqueued=sum(depth.values()) + completed + withdrawn + purged + counters["moved"] - counters["arrived"],
        taken=sum(waits.values()),
        completed=completed,
        failed=counters["failed"],
        lost=counters["lost"],
        died=counters["dead"],
        withdrawn=withdrawn,
        purged=purged,
        waits=waits,
        runs=runs,
        **_read_rules([row["rules"] for row in rows]),
    )


def _histogram(counters: Mapping[str, int], prefix: str) -> dict[int, int]:
    found = {int(name.removeprefix(prefix)): n for name, n in counters.items() if name.startswith(prefix)}
    return dict(sorted(found.items()))


def _read_rules(rules: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Merge the pause and limits in force over all partitions."""
    paused = next((row for row in rules if "paused" in row), None)
    concurrency, rate = (join_limits(rules, name) or join_limits(rules, "declared_" + name) for name in LIMITS)
    return {
        "paused": paused and Pause(int(paused["paused"]), paused.get("actor", ""), paused.get("reason", "")),
        "concurrency": int(concurrency or 0) or None,
        "rate": str(rates.QueueRate.decode(rate) or ""),
    }


def join_limits(rules: Sequence[Mapping[str, str]], name: str) -> str | None:
    """Return a limit of all partitions as the engine stores it; None where one has none."""
    values = [row[name] for row in rules if name in row]
    if len(values) < len(rules):
        return None
    if ("declared_whole" if name.startswith("declared") else "whole") in rules[0]:
        return values[0]
    if name.endswith("concurrency"):  # each has its share, as the release before stored it
        return str(sum(map(int, values)))
    rate = rates.QueueRate.decode(values[0], len(rules))
    return rate.encode() if rate else values[0]
