"""The methods of the engine that read instances and explain events, one, several in a round trip, or all that a page
shows; and that which creates several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine import arguments, limits
from machines.engine.base import return_errors
from machines.engine.connection import replies
from machines.engine.connection.calls import require_any, translate
from machines.engine.connection.replies import Status
from machines.engine.connection.retries import get_root
from machines.engine.errors import BadInput, EncryptionFailed, SignalboxError
from machines.engine.jobs.reading import JobReadMethods
from machines.engine.jobs.records import Job
from machines.engine.publishing.machine_meta import SensitiveFields, read_sensitive_fields
from machines.engine.records import Explanation, Instance, Step

from .repairs import Wait, read_waits


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

    def get(self, machine: str, id: str) -> Instance:
        """Read one instance. Raises UnknownInstance, UnknownMachine."""
        return self._change("sb_get", machine, id, (id,))

    def get_many(self, machine: str, ids: Iterable[str]) -> list[Instance | SignalboxError]:
        """Return, in order, the instance of each id or its error. Raises UnknownMachine; EngineUnavailable where no
        partition answers."""
        asked = [arguments.check_instance(id) for id in ids]
        roots, answers = self._ask(machine, "sb_get", asked, ())
        found = zip(asked, roots, answers, strict=True)
        return [return_errors(self._instance, machine, id, root, reply) for id, root, reply in found]

    def explain_many(
        self, machine: str, ids: Iterable[str], event: str, payload: Mapping[str, Any] | None = None
    ) -> list[Explanation | SignalboxError]:
        """Compute what ``fire`` would do with each instance, in order; change nothing. Raises UnknownMachine,
        EngineUnavailable."""
        asked = [arguments.check_instance(id) for id in ids]
        payload = self._encryption.encrypt(machine, payload)
        words = (arguments.check_event(event), arguments.encode_fields("payload", payload, limits.MAX_PAYLOAD), "")
        _, answers = self._ask(machine, "sb_explain", asked, words)
        return [return_errors(self._explanation, machine, id, reply) for id, reply in zip(asked, answers, strict=True)]

    def create_many(
        self,
        machine: str,
        instances: Mapping[str, Mapping[str, Any] | None],
        *,
        actor: str = "",
        reason: str = "",
        now: int | None = None,
    ) -> list[Instance | SignalboxError]:
        """Create instances, id -> data, each as ``create`` does; return, in order, the instance or its error. One that
        fails does not stop the others. Raises UnknownMachine; EngineUnavailable where no partition answers, after which
        some may have been created."""
        ends = (arguments.check_actor(actor), arguments.check_reason(reason), arguments.encode_whole("now", now))
        results: dict[str, Instance | SignalboxError] = {}
        calls: dict[str, tuple[str, str, Sequence[Any]]] = {}
        for id, data in instances.items():
            try:
                data = self._encryption.encrypt(machine, data)
                words = (arguments.check_instance(id), arguments.encode_fields("data", data, limits.MAX_DATA), "", "")
            except (BadInput, EncryptionFailed) as error:
                results[id] = error
            else:
                calls[id] = "sb_create", self._catalog.partition(machine, id).root, (*words, *ends)
        wanted = self._replication.choose(None)
        answers, counts = self._replication.many(wanted, list(calls.values()))
        require_any(answers)
        sending = set()
        for (id, (_, root, _)), reply, count in zip(calls.items(), answers, counts, strict=True):
            made = return_errors(self._instance, machine, id, root, reply)
            results[id] = self._replication.mark(made, wanted, count) if isinstance(made, Instance) else made
            if isinstance(made, Instance) and replies.has_messages(reply):
                sending.add(get_root(reply, root))
        for root in sending:
            self._deliver(root, now)
        return [results[id] for id in instances]

    def _ask(
        self, machine: str, function: str, ids: Sequence[str], words: Sequence[str]
    ) -> tuple[list[str], list[Any]]:
        roots = [self._catalog.partition(machine, id).root for id in ids]
        calls = [(function, root, (id, *words)) for id, root in zip(ids, roots, strict=True)]
        answers = self._caller.many(calls)
        require_any(answers)
        return roots, answers

    def explain(
        self, machine: str, id: str, event: str, payload: Mapping[str, Any] | None = None, *, now: int | None = None
    ) -> Explanation:
        """Compute what ``fire`` would do, and why; change nothing. Raises UnknownInstance, BadPayload."""
        root = self._root(machine, id)
        body = arguments.encode_fields("payload", self._encryption.encrypt(machine, payload), limits.MAX_PAYLOAD)
        reply = self._caller.call(
            "sb_explain", root, id, arguments.check_event(event), body, arguments.encode_whole("now", now)
        )
        return self._explanation(machine, id, reply)

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
            waits=read_waits(found[2][1]),
            jobs=self._read_jobs(machine, partition, found[3]),
            explanations=self._explanations(machine, id, names, answers),
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
        root = self._root(machine, id)
        at = arguments.encode_whole("now", now)
        answers = self._caller.many([("sb_explain", root, (id, arguments.check_event(name), "", at)) for name in names])
        return self._explanations(machine, id, names, answers)

    def _explanations(
        self, machine: str, id: str, names: Sequence[str], answers: Sequence[Any]
    ) -> dict[str, Explanation | SignalboxError]:
        found = zip(names, answers, strict=True)
        return {name: return_errors(self._explanation, machine, id, reply) for name, reply in found}

    def history(self, machine: str, id: str, *, limit: int = 100, before: int | None = None) -> list[Step]:
        """Return the latest steps, newest first; ``before`` is a revision, for the next page. Raises
        UnknownInstance."""
        arguments.check_count("limit", limit, limits.MAX_HISTORY)
        if before is not None:
            arguments.encode_whole("before", before)
        root = self._root(machine, id)
        return self._caller.read_histories(lambda: self._read_history(machine, id, root, limit, before))

    def _read_history(self, machine: str, id: str, root: str, limit: int, before: int | None) -> list[Step]:
        skip = 0
        if before is not None:
            newest = self._caller.call("sb_history", root, id, -1, -1)
            if newest[0] == Status.OK and len(newest) > 3:
                skip = max(0, replies.read_step(newest[3]).revision - before + 1)
        # One entry more than asked for: it holds the state that the oldest step came from.
        reply = self._caller.call("sb_history", root, id, -(limit + skip + 1), -1 - skip)
        self._require_ok(machine, id, reply)
        # Steps that were added between the two calls moved the window: drop those that are not older than ``before``.
        definition = self._find_definition(root, id, reply, skip) if skip else reply[2]
        steps = replies.read_steps(reply[3:], definition)
        return [step for step in steps if before is None or step.revision < before][:limit]

    def _find_definition(self, root: str, id: str, page: Sequence[Any], skip: int) -> int:
        """Return the version that an instance had before its latest ``skip`` steps. ``page``: older ones."""
        current = int(str(page[2]).partition(":")[0])
        if any(replies.MIGRATE in entry for entry in page[3:]):
            moves = [step for step in replies.read_steps(page[3:]) if step.event == replies.MIGRATE]
            if moves:
                return int(moves[0].payload.get("to") or current)
        newer = self._caller.call("sb_history", root, id, -skip, -1)
        moves = [step for step in replies.read_steps(newer[3:]) if step.event == replies.MIGRATE]
        return int(moves[-1].payload.get("from") or 0) if moves else current
