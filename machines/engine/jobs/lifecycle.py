"""The life of a job: enqueue, take, renew, complete, fail.

Delivery rule: a handler runs at least once; its effect on the machine happens exactly once. ``take`` pops, leases and
counts the attempt in one call; ``complete`` and ``fail`` end the job and move its instance in one call, fenced by the
token of the lease.
"""

from __future__ import annotations

import os
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import Any, Unpack

from machines.engine import arguments, limits, tracing
from machines.engine.base import return_errors
from machines.engine.connection import replies
from machines.engine.connection.calls import keep_available, translate
from machines.engine.connection.replies import Status
from machines.engine.errors import BadInput, EngineFault, EngineUnavailable, Refused, SignalboxError
from machines.engine.keys import Partition, choose_home
from machines.engine.records import Instance, Outcome

from . import reading, records
from .clock_jump import ClockBounds, list_words
from .group_admissions import UNANSWERED, GroupAdmissions
from .reading import JobReadMethods
from .records import Enqueue, EnqueueOptions, Job, Taken

SWEEP_LIMIT, SWEPT_TOGETHER = 500, 100  # jobs of one queue that one sweep moves, and one call of it
MAX_RESULT = 64 * 1024  # bytes of JSON
MAX_TAKEN = 1000  # jobs one call hands out
ENQUEUED_TOGETHER = 50  # jobs that one call enqueues: some ms in which the server does nothing else
MAX_TOGETHER = 100  # jobs that one call takes or ends, which does fewer when some ms are over
MAX_NOTE = 200  # characters
MAX_REFUSALS = 3  # takes from a partition with jobs that the homes of their groups refused, of one call
RUNS, SLICE = "runs", "slice"  # how the ends of jobs are sent: what is equal once, or each in full
MORE = "more"  # why a call took fewer jobs than are ready

Batches = dict[tuple[str, str, str], list[tuple[int, Enqueue, tuple[Any, ...]]]]
"""Root, time and idempotency key -> jobs to enqueue, each with its place."""


class LifecycleMethods(JobReadMethods):
    """The jobs of all machines: a part of ``Engine``. Times given as ``now`` replace the server's clock."""

    _admissions: GroupAdmissions

    # Enqueue

    def enqueue(
        self,
        machine: str,
        src: str,
        input: Any = None,
        *,
        key: str | None = None,
        now: int | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Job:
        """Put a job without an instance on a queue (by default the one named like ``src``) and return it.

        ``key``: an idempotency key; for a day, the same key returns the first job, also when it has ended.
        ``options``: as in ``enqueue("order", "charge", priority=9)`` (``EnqueueOptions``).
        """
        (job,) = self.enqueue_many([Enqueue(machine, src, input, key=key, now=now, **options)])
        if isinstance(job, SignalboxError):
            raise job
        return job

    def enqueue_many(self, items: Iterable[Enqueue | Mapping[str, Any]]) -> list[Job | SignalboxError]:
        """Put many jobs on queues in one round trip; return, in order, the job or the error of each. Fifty jobs of
        one partition are enqueued together, or not at all."""
        results: list[Any] = []
        batches: Batches = {}
        for index, item in enumerate(items):
            results.append(None)
            try:
                call = records.read_item(item)
                call = replace(call, input=self._encryption.encrypt(call.machine, call.input))
                words = records.build_arguments(call)
                root = self._choose_job_partition(call).root
            except EngineUnavailable:
                raise
            except SignalboxError as error:
                results[index] = error
                continue
            together = (root, arguments.encode_whole("now", call.now), call.key or "")
            batches.setdefault(together, []).append((index, call, words))
        if batches and tracing.find_tracer():
            machines = sorted({call.machine for one in batches.values() for _, call, _ in one})
            with tracing.begin_sending(", ".join(machines)) as span:
                return self._send_jobs(batches, results, span.traceparent)
        return self._send_jobs(batches, results)

    def _send_jobs(self, batches: Batches, results: list[Any], traceparent: str = "") -> list[Job | SignalboxError]:
        wire, sent = [], []
        for (root, now, key), batch in batches.items():
            most = 1 if key else ENQUEUED_TOGETHER
            last = (key, traceparent) if traceparent else (key,) if key else ()
            for start in range(0, len(batch), most):
                part = batch[start : start + most]
                wire.append(("sb_enqueue", root, (now, *(word for _, _, words in part for word in words), *last)))
                sent.append((root, part))
        for (root, part), reply in zip(sent, self._caller.many(wire), strict=True):
            for (index, _, _), job in zip(part, self._read_enqueued(root, part, reply), strict=True):
                results[index] = job
        return results

    def _choose_job_partition(self, call: Enqueue) -> Partition:
        """Return the partition of a new job: by its unique key, its instance key or its idempotency key, else the home
        of its group, else any."""
        partitions = self._catalog.partitions(call.machine)
        if len(partitions) == 1:
            return partitions[0]
        if near := call.unique or call.instance_key or call.key:
            return self._catalog.partition(call.machine, near)
        if call.group:
            growth = self._catalog.find_growth(call.machine)
            return partitions[choose_home(call.group, growth.before if growth else len(partitions))]
        return secrets.choice(partitions)

    def _read_enqueued(
        self, root: str, part: Sequence[tuple[int, Enqueue, tuple[Any, ...]]], reply: Any
    ) -> list[Job | SignalboxError]:
        if (failed := _find_error(reply)) is not None:
            return [failed for _ in part]
        found: list[Job | SignalboxError] = []
        for (_, call, words), id, flat in zip(part, reply[1::2], reply[2::2], strict=True):
            row = replies.read_pairs(flat) if flat else records.build_row(call, words)
            found.append(reading.read_job(call.machine, root, id, row, {}))
        return found

    # Take and end

    def take(
        self,
        machine: str,
        queue: str,
        worker: str,
        *,
        count: int = 1,
        lease: int | None = None,
        partitions: Collection[int] | None = None,
        now: int | None = None,
    ) -> Taken:
        """Take up to ``count`` ready jobs, each leased to ``worker`` for ``lease`` ms (None: as the definition says).
        ``partitions``: the numbers of those to take from; None for all."""
        arguments.check_queue(queue)
        arguments.check_text("worker", worker, limits.MAX_ACTOR)
        arguments.check_count("count", count, MAX_TAKEN)
        ends = (arguments.encode_whole("lease", lease), arguments.encode_whole("now", now))
        taken = Taken()
        failed = None
        for number, partition in self._rotate_partitions(machine, partitions):
            types_of = partial(self._catalog.types, machine, partition.root)
            refusals = 0
            while number not in taken.emptied and (wanted := min(count - len(taken), MAX_TOGETHER)) > 0:
                args = (queue, worker, wanted, *ends, os.urandom(6).hex(), "hears", "brief")
                try:
                    reply = self._caller.call("sb_take", partition.root, *args)
                    if reply[0] != Status.OK:
                        raise BadInput(str(reply[1]))
                    found = reading.read_taken_jobs(machine, partition.root, queue, worker, reply, types_of)
                except SignalboxError as error:
                    # Jobs that are leased already must reach the worker. Where it gets none, a lost answer comes before
                    # a refusal: that partition may have leased some.
                    failed = failed if taken.unanswered else error
                    taken.unanswered = taken.unanswered or isinstance(error, EngineUnavailable)
                    break
                admitted, wait = self._admissions.admit(queue, found, ends[1])
                taken += admitted
                if len(found) < wanted and reply[1] != MORE:
                    taken.emptied.add(number)
                _note_hint(taken, reply[1])
                if wait is not None:
                    refusals += 1
                    taken.unanswered = taken.unanswered or wait == UNANSWERED
                    _note_hint(taken, max(wait, 1))
                    if refusals == MAX_REFUSALS:
                        _note_hint(taken, 1)
                        break
        if failed is not None and not taken:
            raise failed
        if taken and self._catalog.find_growth(machine) is not None:
            self._read_moved_data(machine, taken)
        return taken

    def _read_moved_data(self, machine: str, jobs: Sequence[Job]) -> None:
        """Read the data of instances that have moved to another partition than their jobs."""
        missing = [job for job in jobs if job.instance and not job.data]
        calls = [("sb_get", self._catalog.partition(machine, job.instance).root, (job.instance,)) for job in missing]
        for job, reply in zip(missing, self._caller.many(calls), strict=True):
            if not isinstance(reply, Exception) and reply[0] == Status.OK:
                raw = replies.read_fields(reply)
                reading.set_data(job, self._catalog.types(machine, job.root, raw["_def"]).data(raw))

    def _rotate_partitions(self, machine: str, only: Collection[int] | None) -> list[tuple[int, Partition]]:
        """List partitions with their numbers, beginning with a random one: a partition that always has work must not
        starve the others."""
        partitions = [
            (number, partition)
            for number, partition in enumerate(self._catalog.partitions(machine))
            if only is None or number in only
        ]
        if len(partitions) < 2:
            return partitions
        start = secrets.randbelow(len(partitions))
        return partitions[start:] + partitions[:start]

    def complete(self, job: Job, result: Any = None, *, now: int | None = None) -> Instance | None:
        """End a job and move its instance in one call; return the instance, or None for a job without one.

        Raises LeaseLost when the token no longer holds the job, Refused when the step fails (the job is then still
        held).
        """
        at, text = arguments.encode_whole("now", now), self._encode_result(require_job(job), result)
        with tracing.Spans() as steps:
            how = tracing.begin_ends([(0, job)], steps, "")
            reply = self._caller.call("sb_complete", job.root, at, how, job.id, job.token, text)
            ended = reply[1] if reply[0] == Status.OK else reply
            steps.end(0, ended)
        if ended[0] != Status.OK:
            raise self._build_job_error(job, ended)
        self._admissions.free([job], at)
        moved = self._read_moved(job, ended)
        if replies.has_messages(ended):
            self._deliver(job.root, now)
        return moved

    def complete_many(
        self, ends: Iterable[tuple[Job, Any]], *, now: int | None = None
    ) -> list[Outcome | SignalboxError | None]:
        """End many jobs in one round trip, each as ``complete`` does; return, in order, the outcome of each, None for a
        job without an instance, or its error."""
        at = arguments.encode_whole("now", now)
        batches: dict[str, list[tuple[int, Job, str]]] = defaultdict(list)
        given = list(ends)
        results: list[Any] = [None] * len(given)
        for index, (job, result) in enumerate(given):
            try:
                root = require_job(job).root
                batches[root].append((index, job, self._encode_result(job, result)))
            except SignalboxError as error:
                results[index] = error
        waiting = []
        with tracing.Spans() as steps:
            for root, batch in batches.items():
                for start in range(0, len(batch), MAX_TOGETHER):
                    part = batch[start : start + MAX_TOGETHER]
                    how = tracing.begin_ends(((index, job) for index, job, _ in part), steps, RUNS)
                    waiting.append((root, part, how))
            senders = self._send_ends(at, waiting, results, steps)
        ended = (job for (job, _), how in zip(given, results, strict=True) if not isinstance(how, SignalboxError))
        self._admissions.free(ended, at)
        for root in senders:
            self._deliver(root, now)
        return results

    def _send_ends(
        self, at: str, waiting: list[tuple[str, list[tuple[int, Job, str]], str]], results: list[Any], steps: Any
    ) -> set[str]:
        """Send the ends of jobs, in further calls those that a call left; return where messages were sent."""
        senders = set()
        while waiting:
            sent, waiting = waiting, []
            wire = [("sb_complete", root, (at, *_build_ends(part, how))) for root, part, how in sent]
            for (root, part, how), call, reply in zip(sent, wire, self._caller.many(wire), strict=True):
                distinct = [] if isinstance(reply, Exception) else reply[1:]
                if call[2][1] == RUNS and not isinstance(reply, Exception):
                    if reply[0] == Status.BAD_ARGUMENT:  # of the library of an older release
                        waiting.append((root, part, SLICE))
                        continue
                    if reply[0] == Status.OK:
                        distinct, reply = reply[1::2], _expand_runs(reply)
                failed, ended = _find_error(reply), self._read_completed(part, reply)
                for number, ((index, _, _), outcome) in enumerate(zip(part, ended, strict=False), start=1):
                    results[index] = outcome
                    if steps:
                        steps.end(index, failed or reply[number])
                if left := part[len(ended) :]:
                    waiting.append((root, left, tracing.skip_ends(how, len(ended))))
                if failed is None and any(map(replies.has_messages, distinct)):
                    senders.add(root)
        return senders

    def _encode_result(self, job: Job, result: Any) -> str:
        if result is None:
            return ""
        return arguments.encode_document("result", self._encryption.encrypt(job.machine, result), MAX_RESULT)

    def _read_completed(
        self, part: Sequence[tuple[int, Job, str]], reply: Any
    ) -> list[Outcome | SignalboxError | None]:
        if (failed := _find_error(reply)) is not None:
            return [failed for _ in part]
        found: list[Outcome | SignalboxError | None] = []
        outcomes: dict[str, Outcome | None] = {"": None}  # most jobs of a call have the same
        for (_, job, _), each in zip(part, reply[1:], strict=False):
            if isinstance(each, str):
                if each not in outcomes:
                    outcomes[each] = Outcome(each.split())
                found.append(outcomes[each])
            elif each[0] == Status.OK:
                found.append(replies.read_outcome(each) if len(each) > 1 else None)
            else:
                found.append(self._build_job_error(job, each))
        return found

    def fail(
        self,
        job: Job,
        error: str,
        *,
        kind: str = "",
        trace: str = "",
        retry: bool = True,
        delay: int | None = None,
        kinds: Iterable[str] = (),
        now: int | None = None,
    ) -> str:
        """End an attempt as failed; return "delayed" when there is another attempt, "dead" when there is none. The
        instance of a dead job gets ``error.invoke.<id>`` in the same step.

        ``kind`` names the exception, ``kinds`` its base classes: a job whose definition stops at one of them is not
        retried. ``delay``: ms until the next attempt, in place of the backoff. Raises LeaseLost.
        """
        return self._fail(job, "1" if retry else "0", now, delay, (error, kind, trace), kinds)

    def hand_back(self, job: Job, *, delay: int = 0, now: int | None = None) -> None:
        """Return a job that was not run, without counting the attempt: ready again after ``delay`` ms. Raises
        LeaseLost."""
        self._fail(job, "return", now, delay)

    def _fail(
        self,
        job: Job,
        again: str,
        now: int | None,
        delay: int | None,
        about: tuple[str, str, str] = ("", "", ""),
        kinds: Iterable[str] = (),
    ) -> str:
        """End an attempt; return the place the job went to: "delayed", "dead", or "ready" when it was handed back.
        ``about``: error, its kind and its traceback."""
        args = (
            require_job(job).id,
            job.token,
            arguments.require_text("error", about[0])[:1000],
            arguments.require_text("kind", about[1])[:200],
            arguments.require_text("trace", about[2])[-16000:],
            again,
            arguments.encode_whole("now", now),
            arguments.encode_whole("delay", delay),
            " ".join(arguments.require_text("one of kinds", one) for one in kinds)[:4000],
        )
        reply = self._caller.call("sb_fail", job.root, *(_escape(a) if isinstance(a, str) else a for a in args))
        if reply[0] != Status.OK:
            raise self._build_job_error(job, reply)
        self._admissions.free([job], str(args[6]))
        return str(reply[1])

    def extend(self, jobs: Job | Sequence[Job], lease: int, *, now: int | None = None) -> list[bool]:
        """Renew leases to ``lease`` ms from now, none past its job's deadline; return for each, in order, whether it is
        held."""
        return [not why for why in self.renew(jobs, lease, now=now)]

    def renew(self, jobs: Job | Sequence[Job], lease: int, *, now: int | None = None) -> list[str]:
        """Renew leases like ``extend``; return for each "" when it is held, else "taken back", "withdrawn" or
        "gone"."""
        jobs = [jobs] if isinstance(jobs, Job) else list(jobs)
        head = (arguments.encode_whole("now", now), arguments.check_count("lease", lease, limits.MAX_LEASE))
        found = [""] * len(jobs)
        places: dict[str, list[int]] = {}
        for number, job in enumerate(jobs):
            places.setdefault(require_job(job).root, []).append(number)
        calls: list[tuple[str, str, tuple[Any, ...]]] = [
            ("sb_extend", root, (*head, *(word for n in own for word in (jobs[n].id, jobs[n].token)), "homes"))
            for root, own in places.items()
        ]
        kept = []
        for own, reply in zip(places.values(), keep_available(self._caller.many(calls)), strict=True):
            if isinstance(reply, EngineUnavailable):
                continue  # held as far as is known; the other leases are renewed anyway
            if reply[0] != Status.OK:
                raise BadInput(str(reply[1]))
            for number, word in zip(own, reply[1:], strict=False):
                found[number] = "" if str(word) == "1" else str(word)
            for start in range(1 + len(own), len(reply), 4):
                queue, home, group, at = map(str, reply[start : start + 4])
                kept.append((jobs[own[int(at) - 1]], queue, home, group))
        self._admissions.keep(kept, head[0])
        return found

    def progress(
        self, job: Job, done: float, total: float | None = None, note: str = "", *, now: int | None = None
    ) -> None:
        """Report the progress of a job, which pages show live. Raises LeaseLost."""
        words = (
            require_job(job).id,
            job.token,
            arguments.encode_amount("done", done),
            "" if total is None else arguments.encode_amount("total", total),
            arguments.check_text("note", note, MAX_NOTE),
            arguments.encode_whole("now", now),
        )
        reply = self._caller.call("sb_progress", job.root, *words)
        if reply[0] != Status.OK:
            raise self._build_job_error(job, reply)

    def sweep(
        self,
        machine: str,
        *,
        partitions: Collection[int] | None = None,
        clock: ClockBounds | None = None,
        now: int | None = None,
    ) -> int:
        """Take back jobs whose lease ran out and make due jobs ready; return how many moved. ``partitions``: the
        numbers of those to sweep; None for all. ``clock``: what is known of the servers' clocks."""
        at, moved, failed = arguments.encode_whole("now", now), 0, None
        for number, partition in enumerate(self._catalog.partitions(machine)):
            if partitions is not None and number not in partitions:
                continue
            try:
                moved += self._sweep_partition(machine, partition, at, clock)
            except SignalboxError as error:
                failed = error  # the other partitions are swept anyway
        if failed is not None:
            raise failed
        return moved

    def _sweep_partition(self, machine: str, partition: Partition, now: str, clock: ClockBounds | None) -> int:
        moved = 0
        while moved < SWEEP_LIMIT:
            reply = self._caller.call("sb_sweep", partition.root, now, SWEPT_TOGETHER, *list_words(clock))
            if reply[0] != Status.OK:
                raise EngineFault(f"sweeping {machine}: {reply[1]}")
            found = sum(int(n) for n in reply[1:4])
            moved += found
            if not found:
                break
        return moved

    def _read_moved(self, job: Job, reply: Sequence[Any]) -> Instance | None:
        if len(reply) < 3:
            return None
        raw = replies.read_fields(reply)
        types = self._catalog.types(job.machine, job.root, raw["_def"])
        return replies.read_instance(job.machine, job.instance, raw, types, replies.read_outcome(reply))

    @staticmethod
    def _build_job_error(job: Job, reply: Sequence[Any]) -> SignalboxError:
        if reply[0] == Status.REFUSED:
            return Refused(replies.read_explanation(job.machine, job.instance, reply[1]))
        return replies.build_error(job.machine, job.id, reply)


def require_job(job: object) -> Job:
    """Return a job that ``take`` returned. Raises BadInput for anything else: an id alone does not prove the lease."""
    if not isinstance(job, Job):
        raise BadInput(f"a job that take() gave out is needed here, not {arguments.show(job)}")
    return job


def _note_hint(taken: Taken, hint: Any) -> None:
    """Record why a partition gave fewer jobs; a reason that passes soon replaces "no more jobs"."""
    word = str(hint)
    if word.isdigit():
        taken.hint = "rate"
        taken.wait = int(word) if taken.wait is None else min(taken.wait, int(word))
    elif word != MORE and not taken.hint:
        taken.hint = word


def _find_error(reply: Any) -> SignalboxError | None:
    """Return the error of a batch that was not carried out; None for a reply that has one of each job."""
    if isinstance(reply, Exception):
        return return_errors(translate, reply)
    return None if reply[0] == Status.OK else BadInput(str(reply[1]))


def _build_ends(part: Sequence[tuple[int, Job, str]], how: str) -> tuple[str, ...]:
    """Return the arguments of ``sb_complete`` for the ends of jobs. Jobs without a result are listed in one word: most
    have the token of the job before."""
    if how == RUNS and not any(text for _, _, text in part):
        words, lines = list[str](), list[str]()
        for token, jobs in groupby([job for _, job, _ in part], attrgetter("token")):
            ids = [job.id for job in jobs]
            words += [token, *ids]
            lines.append(" ".join([token, *ids]))
        listed = "\n".join(lines)
        if listed.split() == words:  # the id of a job that take() did not give out may have spaces
            return how, listed
    return SLICE if how == RUNS else how, *(word for _, job, text in part for word in (job.id, job.token, text))


def _expand_runs(reply: Sequence[Any]) -> list[Any]:
    """Return a reply that has each job's for one that says what is equal once."""
    return [reply[0], *chain.from_iterable(map(repeat, reply[1::2], reply[2::2]))]


def _escape(text: str) -> str:
    """Escape what Redis and JSON cannot carry in the text of an exception: half surrogates and NUL."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
