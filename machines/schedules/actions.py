"""Changes schedules for an actor: each asks for the rights, and leaves an entry in the audit."""

from typing import Any

from machines.audit.entries import AuditRecord
from machines.catalog import rules
from machines.catalog.queries import every_outline
from machines.connections import get_engine
from machines.instances import guesses
from machines.people import transition_groups
from machines.people.actor import Actor

from . import AuthorLost, Finding, InvalidSchedule, Row, Schedule, Schedules, authors
from .document import Store
from .queries import check_document, demand_rights, find_known, mask, read_range

EVENTS = ("fire", "fire_all")


def put(actor: Actor, document: object, *, reason: str = "") -> Row:
    """Make a schedule, or change the one of its name. Raises Forbidden, InvalidSchedule, DeclaredSchedule."""
    name = document.get("name") if isinstance(document, dict) else None
    with actor.records("schedule.put", target=name if isinstance(name, str) else "", reason=reason) as entry:
        schedule = check_document(actor, document)
        entry.name(machine=schedule.machine)
        before = Store(get_engine()).find(schedule.name)
        if before is not None:
            demand_rights(actor, before.schedule, "put")
            entry.note(was=before.schedule.as_dict())
        entry.note(given=schedule.as_dict())
        _check_rules(actor, schedule)
        if schedule.does in EVENTS:
            what = schedule.what
            guesses.spend_guess(actor, schedule.machine, what.get("instance", ""), what["event"], action="schedule.put")
        row = _put(actor, document, reason)
    return mask(actor, row)


def pause(actor: Actor, name: str, *, reason: str = "") -> Row:
    """Pause a schedule: nothing is due until it is resumed. Raises Forbidden, UnknownSchedule."""
    return _act(actor, name, "pause", reason)


def resume(actor: Actor, name: str, *, reason: str = "") -> Row:
    """Go on from now. Raises Forbidden, UnknownSchedule."""
    return _act(actor, name, "resume", reason)


def take_over(actor: Actor, name: str, *, reason: str = "") -> Row:
    """Have it run in the actor's name from now on, and go on where it was paused. Raises Forbidden, UnknownSchedule,
    InvalidSchedule, DeclaredSchedule."""
    row = find_known(actor, name, "operate", "schedule.take_over")
    with actor.records("schedule.take_over", machine=row.schedule.machine, target=name, reason=reason) as entry:
        demand_rights(actor, row.schedule, "take_over")
        entry.note(was=row.order.author, given=actor.name)
        _check_rules(actor, row.schedule)
        _put(actor, row.schedule.as_dict(), reason)
        after = Schedules(get_engine()).resume(name, by=actor.name, reason=reason)
        _note_change(entry, row, after)
    return mask(actor, after)


def run(actor: Actor, name: str, *, reason: str = "", key: str | None = None) -> Row:
    """Run it once now; the same ``key`` again is the same run. Raises Forbidden, UnknownSchedule."""
    return _act(actor, name, "run", reason, key=key)


def backfill(actor: Actor, name: str, start: str, end: str, *, reason: str = "", key: str | None = None) -> int:
    """Run each occurrence from ``start`` to before ``end``, as ``read_range`` reads them; return how many there are.
    Raises Forbidden, UnknownSchedule, BackfillRefused."""
    row = find_known(actor, name, "operate", "schedule.backfill")
    with actor.records("schedule.backfill", machine=row.schedule.machine, target=name, reason=reason) as entry:
        demand_rights(actor, row.schedule, "backfill")
        _demand_author(row)
        entry.note(start=start, end=end)
        begin, stop = read_range(row.schedule, start, end)
        count = Schedules(get_engine()).backfill(name, begin, stop, by=actor.name, reason=reason, key=key)
        entry.note(count=count)
    return count


def remove(actor: Actor, name: str, *, reason: str = "", declared: bool = False) -> None:
    """Remove it with its history. ``declared``: also one that a module or a definition declares. Raises Forbidden,
    UnknownSchedule, DeclaredSchedule."""
    row = find_known(actor, name, "operate", "schedule.remove")
    with actor.records("schedule.remove", machine=row.schedule.machine, target=name, reason=reason) as entry:
        demand_rights(actor, row.schedule, "remove")
        entry.note(was=row.schedule.as_dict())
        source = {"source": row.source} if declared else {}
        Schedules(get_engine()).remove(name, by=actor.name, reason=reason, **source)


def _put(actor: Actor, document: object, reason: str) -> Row:
    person: dict[str, Any] = (
        {"person": True, "groups": transition_groups.groups_of(actor.user)} if actor.is_person else {}
    )
    return Schedules(get_engine()).put(document, author=actor.name, reason=reason, **person)


def _act(actor: Actor, name: str, verb: str, reason: str, **more: Any) -> Row:
    row = find_known(actor, name, "operate", f"schedule.{verb}")
    with actor.records(f"schedule.{verb}", machine=row.schedule.machine, target=name, reason=reason) as entry:
        demand_rights(actor, row.schedule, verb)
        if verb != "pause":
            _demand_author(row)
        after: Row = getattr(Schedules(get_engine()), verb)(name, by=actor.name, reason=reason, **more)
        _note_change(entry, row, after)
    return mask(actor, after)


def _demand_author(row: Row) -> None:
    """Raise AuthorLost: in whose name should it run?"""
    if lost := authors.find_lost_right(row.order):
        raise AuthorLost(row.name, lost)


def _note_change(entry: AuditRecord, before: Row, after: Row) -> None:
    entry.note(before=before.state, after=after.state, revision=after.revision)


def _check_rules(actor: Actor, schedule: Schedule) -> None:
    """Refuse what takes a second person each time: it is not for a schedule."""
    if schedule.does not in EVENTS or not actor.is_person:
        return
    action = f"fire:{schedule.what['event']}"
    if rules.needs_approval(every_outline(schedule.machine), action):
        hint = "an event that needs none, or a schedule declared in code"
        raise InvalidSchedule(schedule.name, [Finding("what.event", f"{action} needs approval each time", hint)])
