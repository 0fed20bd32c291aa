"""The method of the engine that reads all that a page about one instance shows, in one round trip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine import arguments, limits
from machines.engine.connection import replies
from machines.engine.connection.calls import translate
from machines.engine.connection.replies import Status
from machines.engine.errors import SignalboxError, UnknownMachine
from machines.engine.jobs.reading import JobReadMethods
from machines.engine.jobs.records import Job
from machines.engine.publishing.sensitive_fields import SensitiveFields, read_sensitive_fields
from machines.engine.records import Explanation, Instance, Step

from . import previews
from .previews import Wait


@dataclass(frozen=True, slots=True)
class Inspection:
    """All that a page about one instance shows. ``steps``: the latest, newest first. ``jobs``: its open jobs, and
    the dead ones it waits for. ``explanations``: event -> what it would do without a payload, or the error of that
    question."""

    instance: Instance
    steps: list[Step]
    waits: list[Wait]
    jobs: list[Job]
    explanations: dict[str, Explanation | SignalboxError]
    sensitive: SensitiveFields


class InspectionMethods(JobReadMethods):
    """Inspection of an instance: a part of ``Engine``."""

    def inspect(self, machine: str, id: str, *, events: Iterable[str] = (), steps: int = 100) -> Inspection:
        """Read an instance with its latest ``steps``, the jobs it waits for, and what these events would do: several
        calls in one round trip, not one atomic call. Raises UnknownInstance, UnknownMachine."""
        arguments.check_count("steps", steps, limits.MAX_HISTORY)
        arguments.check_instance(id)
        names = list(dict.fromkeys(events))
        return self._caller.read_histories(lambda: self._inspect(machine, id, names, steps))

    def _inspect(self, machine: str, id: str, names: Sequence[str], steps: int) -> Inspection:
        partition = self._catalog.partition(machine, id)
        root, meta = partition.root, self._catalog.partitions(machine)[0].meta
        calls: list[tuple[str, str, Sequence[Any]]] = [
            ("sb_get", root, (id,)),
            ("sb_history", root, (id, -(steps + 1), -1)),
            ("sb_waits", root, (id,)),
            ("sb_jobs", root, ("", "instance", id)),
            *(("sb_explain", root, (id, arguments.check_event(name))) for name in names),
        ]
        got, history, waits, jobs, *answers, marks = self._caller.many(calls, [(meta, ("HGET", meta, "sensitive"))])
        if isinstance(marks, Exception) and not self._caller.spread:
            translate(marks)  # without the names of sensitive fields nothing may be shown
        found = [self._require_ok(machine, id, reply) for reply in (got, history, waits, jobs)]
        raw = replies.read_fields(found[0])
        types = self._catalog.types(machine, root, raw["_def"])
        return Inspection(
            instance=replies.read_instance(machine, id, raw, types, replies.read_outcome(found[0])),
            steps=replies.read_steps(found[1][3:], found[1][2])[:steps],
            waits=previews.read_waits(found[2][1]),
            jobs=self._read_jobs(machine, partition, found[3]),
            explanations={
                name: self._read_explanation(machine, id, reply) for name, reply in zip(names, answers, strict=True)
            },
            # Where the first partition does not answer, another one has the names, too.
            sensitive=self._catalog.sensitive(machine)
            if isinstance(marks, Exception)
            else read_sensitive_fields(marks),
        )

    def explain_all(
        self, machine: str, id: str, events: Iterable[str], *, now: int | None = None
    ) -> dict[str, Explanation | SignalboxError]:
        """Compute what each of these events would do without a payload, or the error of that question; one round
        trip."""
        names = list(dict.fromkeys(events))
        root = self._catalog.partition(machine, arguments.check_instance(id)).root
        at = arguments.encode_whole("now", now)
        answers = self._caller.many([("sb_explain", root, (id, arguments.check_event(name), "", at)) for name in names])
        return {name: self._read_explanation(machine, id, reply) for name, reply in zip(names, answers, strict=True)}

    def _require_ok(self, machine: str, id: str, reply: Any, expect: int | None = None) -> Sequence[Any]:
        """Return an OK reply; raise the error that any other stands for."""
        if isinstance(reply, Exception):
            translate(reply)
        if reply[0] != Status.OK:
            error = replies.build_error(machine, id, reply, expect=expect)
            if isinstance(error, UnknownMachine):
                self._catalog.forget(machine)
            raise error
        answer: Sequence[Any] = reply
        return answer

    def _read_explanation(self, machine: str, id: str, reply: Any) -> Explanation | SignalboxError:
        try:
            return replies.read_explanation(machine, id, self._require_ok(machine, id, reply)[1])
        except SignalboxError as error:
            return error
