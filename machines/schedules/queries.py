"""Reads schedules for an actor, and checks the rights on them. What is sensitive in what they send is masked."""

import time
from dataclasses import replace

from machines.connections import get_engine
from machines.engine.records import PartialList
from machines.instances.queries import demand_findable
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.redaction import redactor_of

from . import (
    BackfillRefused,
    Finding,
    InvalidSchedule,
    Row,
    Schedule,
    Schedules,
    UnknownSchedule,
    authors,
    read,
    targets,
)
from .occurrences import describe, read_moment
from .planning import Run
from .schedules import list_backfill

SHOWN = 5  # next runs


def list_schedules(actor: Actor, *, machine: str | None = None) -> PartialList[Row]:
    """Return the schedules of the machines that the actor sees, by name, with what is sensitive masked; ``missing``:
    partitions that did not answer."""
    scope = actor.scope("view")
    rows = Schedules(get_engine()).find(None if machine is None else [machine])
    return PartialList([mask(actor, row) for row in rows if row.schedule.machine in scope], missing=rows.missing)


def get(actor: Actor, name: str) -> Row:
    """Return a schedule. Raises Forbidden, UnknownSchedule."""
    return mask(actor, find_known(actor, name, "view"))


def list_next(actor: Actor, name: str, count: int = SHOWN) -> list[int]:
    """Return the next planned times, seconds; none while it is paused. Raises Forbidden, UnknownSchedule."""
    row = find_known(actor, name, "view")
    return row.schedule.list_next(row.next - 1, count) if row.state == "active" and row.next is not None else []


def history(actor: Actor, name: str, limit: int = 100) -> list[Run]:
    """Return the runs, newest first; ``machines.schedules.describe_run`` says what is in them. Raises Forbidden,
    UnknownSchedule."""
    find_known(actor, name, "view")
    return Schedules(get_engine()).history(name, limit)


def may(actor: Actor, row: Row, verb: str) -> bool:
    """Tell whether an action is for this person: put, take_over, pause, resume, run, backfill or remove."""
    if verb in ("put", "remove", "take_over") and row.order.is_declared:
        return False
    return all(actor.may(right, row.schedule.machine) for right in list_rights(row.schedule, verb))


def preview(actor: Actor, document: object, *, count: int = SHOWN) -> tuple[Schedule, list[int]]:
    """Check a schedule without storing it; return it with its next planned times from now on, seconds. Raises
    InvalidSchedule with all findings, Forbidden."""
    schedule = check_document(actor, document)
    return schedule, schedule.list_next(read_clock(), count)


def preview_backfill(actor: Actor, name: str, start: str, end: str) -> list[str]:
    """List the occurrences of a backfill, ISO 8601 in the zone of the schedule. Raises Forbidden, UnknownSchedule,
    BackfillRefused."""
    row = find_known(actor, name, "view")
    begin, stop = read_range(row.schedule, start, end)
    found = list_backfill(row.schedule, begin, stop, read_clock() * 1000)
    return [describe(at, row.schedule.zone) for at in found]


def read_range(schedule: Schedule, start: str, end: str) -> tuple[int, int]:
    """Read two times in ISO 8601, in the zone of the schedule where they have no offset. Raises BackfillRefused."""
    found = [read_moment(name, given, schedule.zone) for name, given in (("start", start), ("end", end))]
    if findings := [str(finding) for _, findings in found for finding in findings]:
        raise BackfillRefused("; ".join(findings))
    begin, stop = (at or 0 for at, _ in found)
    return begin, stop


# For actions


def find_known(actor: Actor, name: str, right: str, action: str = "") -> Row:
    """Find a schedule. An account without the right on every machine does not learn which schedules exist. ``action``:
    of the audit entry of a refusal."""
    try:
        row = Schedules(get_engine()).get(name)
    except UnknownSchedule:
        actor.demand(right, action=action, target=name)
        raise
    if not actor.may("view", row.schedule.machine):
        actor.demand(right, action=action, target=name)
        raise Forbidden("view")
    return row


def check_document(actor: Actor, document: object) -> Schedule:
    """Read a schedule, and check what it names as far as the actor sees it."""
    schedule = read(document, anchor=read_clock())
    demand_rights(actor, schedule, "put")
    engine = get_engine()
    scope = actor.scope("view")
    if findings := targets.check(engine, schedule, among=[name for name in engine.machines() if name in scope]):
        raise InvalidSchedule(schedule.name, findings)
    if schedule.does == "fire_all":
        demand_findable(False, schedule.machine, dict(schedule.what["filter"]))
    if schedule.next(read_clock()) is None:
        raise InvalidSchedule(schedule.name, [Finding("when", "has no occurrence from now on", "a later moment")])
    return schedule


def demand_rights(actor: Actor, schedule: Schedule, verb: str) -> None:
    actor.demand_discreetly(schedule.machine, *list_rights(schedule, verb))


def list_rights(schedule: Schedule, verb: str) -> tuple[str, ...]:
    return ("operate",) if verb in ("pause", "resume", "remove") else authors.list_rights(schedule)


def mask(actor: Actor, row: Row) -> Row:
    """Redact values of sensitive fields in what it sends, where they are hidden from the actor."""
    redactor = redactor_of(actor, row.schedule.machine)
    if redactor.open:
        return row
    what = redactor.value(dict(row.schedule.what))
    masked = replace(row.schedule, what=what, given={**row.schedule.given, "what": what})
    return replace(row, order=replace(row.order, schedule=masked))


def read_clock() -> int:
    """Return seconds of this process's clock: for what is shown and checked, not for what is due."""
    return int(time.time())
