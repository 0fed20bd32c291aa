"""The assertions of the test kit: a failure prints the explanation, the instance and its history.

Instances, histories and jobs are formatted as text here.
"""

import difflib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from machines.engine import Engine, Explanation, Instance, Job, LookupFailed, SignalboxError, Step
from machines.engine.definitions import Outline, outline

from .django_binding import list_entries

_ANY: Any = object()
PLACES = ("ready", "leased", "delayed", "dead", "handled")
LONGEST = 200  # characters of one value
STEPS = 20  # the latest steps that a message shows
JOBS = 50  # of each place of a queue


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
        try:
            return self.engine.get(machine, id)
        except LookupFailed:
            raise AssertionError(describe_instance(self.engine, machine, id)) from None

    def _fail(self, machine: str, id: str, head: str) -> None:
        __tracebackhide__ = True
        raise AssertionError(f"{head}\n{describe_instance(self.engine, machine, id)}")


def format_moment(ms: int) -> str:
    """Format ms since the epoch as ``2026-11-22 17:05:00.250`` in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")


def format_value(value: Any) -> str:
    """Format a value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


def describe_instance(engine: Engine, machine: str, id: str) -> str:
    """Describe an instance with its data, timers, jobs, problems and history; where there is none, what there is."""
    try:
        instance = engine.get(machine, id)
    except SignalboxError as error:
        return "\n".join([str(error), *describe_outbox(machine, id), *_list_known(engine, machine)])
    lines = [
        f"{machine} {id} is in {instance.state} (revision {instance.revision}), data {format_value(instance.data)}"
    ]
    for timer in instance.timers:
        what = f"after in {timer.state}" if timer.state else f"sends {timer.event}"
        lines.append(f"  timer: {what}, due {format_moment(timer.due)}")
    if instance.suspended is not None:
        lines.append(f"  suspended since {format_moment(instance.suspended)}")
    for problem in engine.problems(machine, [id]).get(id, []):
        lines.append(f"  problem: {problem.kind}: {problem.text}")
    jobs = [job for job in list_jobs(engine, machine) if job.instance == id]
    lines += [f"  {line}" for job in jobs for line in format_job(job).splitlines()]
    lines += [f"  {line}" for line in describe_outbox(machine, id)]
    return "\n".join([*lines, "history, oldest first:", describe_history(engine, machine, id)])


def describe_outbox(machine: str, id: str) -> list[str]:
    """Describe the entries of the outbox that wait or failed, of an instance of a row; none without Django or where
    this test may not use the database."""
    entries = list_entries(machine, id)
    waiting = sum(entry.waits for entry in entries)
    verb = "1 entry waits" if waiting == 1 else f"{waiting} entries wait"
    lines = [f"{verb} in the outbox; call signalbox.update_rows()"] if waiting else []
    return lines + [
        f"outbox: {f'{entry.kind} {entry.event}'.strip()} {'waits' if entry.waits else 'failed'}: {entry.message}"
        for entry in entries
        if entry.message or not entry.waits
    ]


def explain_waiting(state: Any) -> list[str]:
    """Say what a row's state waits for in a test whose transaction is never committed; empty where it waits for
    nothing."""
    entries = [] if state.row.pk is None else list_entries(state.field.machine, state.id)
    waiting = ", ".join(f"{entry.kind} {entry.event}".strip() for entry in entries if entry.waits)
    if not waiting:
        return []
    return [
        f"the outbox has: {waiting}. It is sent after the commit, and this test runs in a transaction that has none:",
        "use the fixture `signalbox`, which sends at once, or mark the test with django_db(transaction=True)",
    ]


def list_active(configuration: Iterable[str], outline: Outline) -> set[str]:
    """List the names and paths of the active states: the leaves of a configuration, and the states around them."""
    active = [state for leaf in configuration for state in outline.lineage(leaf)]
    return {name for state in active for name in (state.name, state.path)}


def explain_unknown_state(engine: Engine, machine: str, state: str) -> str:
    """Say that a machine has no such state, with the nearest one; empty where it has it."""
    states = outline(engine.definition(machine)).states
    known = [one.name for one in states]
    if state in known or any(one.path == state for one in states):
        return ""
    close = difflib.get_close_matches(state, known, 1)
    return f"; {machine} has no state {state!r}, " + (
        f"did you mean {close[0]!r}?" if close else f"its states are {', '.join(known)}"
    )


def describe_history(engine: Engine, machine: str, id: str, limit: int = STEPS) -> str:
    """Describe the latest steps of an instance, one for each line, oldest first."""
    steps = engine.history(machine, id, limit=limit)
    return "\n".join(f"  {_format_step(step)}" for step in reversed(steps)) or "  (no steps)"


def list_jobs(engine: Engine, machine: str) -> list[Job]:
    """List the jobs of a machine in all queues: by queue, then by place."""
    queues = sorted(queue for _, queue in engine.queue_names([machine]))
    return [job for queue in queues for place in PLACES for job in engine.jobs(machine, queue, place=place, limit=JOBS)]


def format_jobs(jobs: Iterable[Job]) -> str:
    """Format jobs, one for each line."""
    return "\n".join(f"  {format_job(job)}" for job in jobs) or "  (no jobs)"


def format_job(job: Job) -> str:
    """Format a job with its latest error, and where it is dead with its traceback."""
    whose = f" of {job.instance}" if job.instance else ""
    line = f"job {job.src}{whose} on {job.machine}/{job.queue}: {job.place}, attempt {job.attempt} of {job.attempts}"
    if job.input is not None:
        line += f", input {format_value(job.input)}"
    if job.place == "delayed":
        line += f", due {format_moment(job.due)}"
    if job.error:
        line += f"; {job.kind}: {job.error}" if job.kind else f"; {job.error}"
    if job.place == "dead" and job.trace:
        line += "\n" + "\n".join(f"    {part}" for part in job.trace.strip().splitlines())
    return line


def _format_step(step: Step) -> str:
    source = ", ".join(step.source or [])
    parts = [f"{step.revision:>3}  {format_moment(step.at)}  {step.event}"]
    if step.payload:
        parts.append(format_value(step.payload))
    parts.append(f"{source} → {', '.join(step.configuration)}" if source else ", ".join(step.configuration))
    if step.changes:
        parts.append(", ".join(f"{name} = {format_value(value)}" for name, value in sorted(step.changes.items())))
    if step.actor:
        parts.append(f"by {step.actor}")
    if step.reason:
        parts.append(f"because {step.reason}")
    return "  ".join(parts)


def _list_known(engine: Engine, machine: str) -> list[str]:
    """Say which instances or machines there are, where one was not found."""
    machines = engine.machines()
    if machine not in machines:
        return [f"machines published in this test: {', '.join(sorted(machines)) or 'none'}"]
    instances: list[Instance] = list(engine.find(machine, limit=10))
    return [f"instances of {machine}: {', '.join(f'{one.id} in {one.state}' for one in instances) or 'none'}"]
