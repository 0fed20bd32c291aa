"""The assertions of the test kit: a failure prints the explanation, the instance and its history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from machines.engine import Engine, Explanation, Instance, Job
from machines.engine.definitions import outline

from .report import describe_instance, explain_unknown_state, format_jobs, format_value, list_active, list_jobs

_ANY: Any = object()


class Assertions:
    """Assertions on instances and jobs: a part of ``Signalbox``. They read and change nothing. Each raises
    AssertionError."""

    engine: Engine

    def assert_state(self, machine: str, id: str, *states: str) -> Instance:
        """Assert that an instance is in all of these states, each a leaf or a state around one; return the instance."""
        __tracebackhide__ = True
        instance = self._get(machine, id)
        missing = [state for state in states if state not in instance.configuration]
        if missing:
            active = list_active(instance.configuration, outline(self.engine.definition(machine, instance.version)))
            missing = [state for state in missing if state not in active]
        if missing:
            hints = "".join(explain_unknown_state(self.engine, machine, state) for state in missing)
            self._fail(machine, id, f"{machine} {id} is in {instance.state}, not in {' and '.join(missing)}{hints}")
        return instance

    def assert_done(self, machine: str, id: str) -> Instance:
        """Assert that an instance has reached its final state; return the instance."""
        __tracebackhide__ = True
        instance = self._get(machine, id)
        if not instance.done:
            self._fail(machine, id, f"{machine} {id} is in {instance.state}, which is not its end")
        return instance

    def assert_data(self, machine: str, id: str, expected: Mapping[str, Any] | None = None, **fields: Any) -> Instance:
        """Assert that fields of an instance's data have these values, whatever others have; return the instance."""
        __tracebackhide__ = True
        instance = self._get(machine, id)
        wrong = []
        for name, value in {**(expected or {}), **fields}.items():
            if name not in instance.data:
                wrong.append(f"  {name}: expected {format_value(value)}, there is no such field")
            elif instance.data[name] != value:
                wrong.append(f"  {name}: expected {format_value(value)}, found {format_value(instance.data[name])}")
        if wrong:
            self._fail(machine, id, "\n".join([f"{machine} {id} has other data:", *wrong]))
        return instance

    def assert_available(
        self, machine: str, id: str, event: str, payload: Mapping[str, Any] | None = None
    ) -> Explanation:
        """Assert that an event would be taken; return the explanation. It is not fired."""
        __tracebackhide__ = True
        self._get(machine, id)
        explanation = self.engine.explain(machine, id, event, payload)
        if not explanation.taken:
            self._fail(machine, id, str(explanation))
        return explanation

    def assert_refused(
        self, machine: str, id: str, event: str, payload: Mapping[str, Any] | None = None, *, because: str = ""
    ) -> Explanation:
        """Assert that an event would be refused, and that the explanation contains ``because``; return the explanation.
        It is not fired."""
        __tracebackhide__ = True
        self._get(machine, id)
        explanation = self.engine.explain(machine, id, event, payload)
        if explanation.taken:
            outcome = explanation.outcome or {}
            to = ", ".join(outcome.get("configuration", [])) or "another state"
            candidates = "\n".join(f"  {candidate}" for candidate in explanation.candidates)
            self._fail(
                machine, id, f"{explanation}, and would lead to {to}; it should be refused\n{candidates}".rstrip()
            )
        if because not in str(explanation):
            self._fail(machine, id, f"refused, but not because of {because!r}: {explanation}")
        return explanation

    def assert_job(
        self,
        machine: str,
        src: str,
        *,
        instance: str | None = None,
        queue: str | None = None,
        place: str | None = None,
        input: Any = _ANY,
        count: int | None = None,
    ) -> Job:
        """Assert that there is a job for the handler ``src``, or ``count`` of them; return the first.

        ``place``: "ready", "leased", "delayed" or "dead". Completed jobs are gone: ``run_jobs`` returns what ran.
        """
        __tracebackhide__ = True
        jobs = list_jobs(self.engine, machine)
        found = [
            job
            for job in jobs
            if job.src == src
            and (instance is None or job.instance == instance)
            and (queue is None or job.queue == queue)
            and (place is None or job.place == place)
            and (input is _ANY or job.input == input)
        ]
        if not found or (count is not None and len(found) != count):
            given = {"instance": instance, "queue": queue, "place": place} | (
                {"input": input} if input is not _ANY else {}
            )
            asked = ", ".join(f"{name} {format_value(value)}" for name, value in given.items() if value is not None)
            wanted = "a job" if count is None else f"{count} jobs"
            head = f"expected {wanted} {src!r} of {machine}{f' with {asked}' if asked else ''}, found {len(found)}"
            raise AssertionError(f"{head}\njobs of {machine}:\n{format_jobs(jobs)}")
        return found[0]

    def assert_no_job(self, machine: str, src: str | None = None, *, instance: str | None = None) -> None:
        """Assert that a machine has no job in any place, of a handler or an instance where they are given."""
        __tracebackhide__ = True
        found = [
            job
            for job in list_jobs(self.engine, machine)
            if src in (None, job.src) and instance in (None, job.instance)
        ]
        if found:
            raise AssertionError(f"expected no such job of {machine}, found:\n{format_jobs(found)}")

    def _get(self, machine: str, id: str) -> Instance:
        """Read an instance, or fail with what there is."""
        __tracebackhide__ = True
        from machines.engine import LookupFailed

        try:
            return self.engine.get(machine, id)
        except LookupFailed:
            raise AssertionError(describe_instance(self.engine, machine, id)) from None

    def _fail(self, machine: str, id: str, head: str) -> None:
        __tracebackhide__ = True
        raise AssertionError(f"{head}\n{describe_instance(self.engine, machine, id)}")
