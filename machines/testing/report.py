"""Instances, histories and jobs as text, for the messages of assertions."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from machines.engine import Engine, Instance, Job, SignalboxError, Step
from machines.engine.definitions import Outline, outline

from .django_binding import list_entries

PLACES = ("ready", "leased", "delayed", "dead", "handled")
LONGEST = 200  # characters of one value
STEPS = 20  # the latest steps that a message shows
JOBS = 50  # of each place of a queue


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
    lines += [_format_timer(timer) for timer in instance.timers]
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


def _format_timer(timer: Any) -> str:
    what = f"after in {timer.state}" if timer.state else f"sends {timer.event}"
    return f"  timer: {what}, due {format_moment(timer.due)}"


def _list_known(engine: Engine, machine: str) -> list[str]:
    """Say which instances or machines there are, where one was not found."""
    machines = engine.machines()
    if machine not in machines:
        return [f"machines published in this test: {', '.join(sorted(machines)) or 'none'}"]
    instances: list[Instance] = list(engine.find(machine, limit=10))
    return [f"instances of {machine}: {', '.join(f'{one.id} in {one.state}' for one in instances) or 'none'}"]
