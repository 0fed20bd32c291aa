"""Schedules as callers use them: put, read, pause, run, backfill and remove. Callers check permissions."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from machines.catalog import builtin_machines
from machines.engine import Engine, Instance, errors
from machines.engine.records import PartialList
from machines.engine.search.page_merge import find_pages
from machines.instances.bulks.order import encrypt_filter
from machines.people.transition_groups import Groups

from . import document as documents
from . import planning, targets
from .document import PEOPLE, SCHEDULES, Order, Schedule, Store
from .errors import BackfillRefused, DeclaredSchedule, Finding, InvalidSchedule, UnknownSchedule
from .occurrences import describe
from .planning import Run

MAX_BACKFILL = 10_000  # occurrences of one backfill
MAX_REQUESTS = 50  # runs and backfills of one schedule that wait
MAX_LISTED = 1000  # schedules
MAX_RUNS = 1000
VALUES = ("input", "payload", "data")
"""What of a schedule may hold values of encrypted fields, beside its filter."""
STEPS = 300  # of the history of an instance, which the definition keeps
STATES = {"waiting": "active", "working": "active", "paused": "paused", "ended": "ended"}


@dataclass(frozen=True, slots=True)
class Row:
    """A schedule as it stands. ``state``: active, paused or ended; ``next``: planned time of the next occurrence and
    ``due`` the same with its jitter, seconds; ``count``: runs so far; ``last``: the last run; ``pending``: occurrences
    that are being carried out; ``waiting``: those that wait, for the run before or in a backfill. ``error``: why a
    worker could not work on it. ``entered``: ms since when it is in its state."""

    order: Order
    state: str
    next: int | None
    due: int | None
    count: int = 0
    last: Run | None = None
    pending: int = 0
    waiting: int = 0
    error: str = ""
    revision: int = 0
    entered: int = 0

    @property
    def schedule(self) -> Schedule:
        return self.order.schedule

    @property
    def name(self) -> str:
        return self.order.schedule.name

    @property
    def source(self) -> str:
        return self.order.source

    def as_dict(self) -> dict[str, Any]:
        """Return what the command line and the API print; times are ISO 8601."""
        zone = self.schedule.zone
        last = None if self.last is None else describe_run(self.last, zone)
        facts = {name: getattr(self, name) for name in ("name", "source", "state", "count", "pending", "waiting")}
        times = {
            name: None if at is None else describe(at, zone) for name, at in (("next", self.next), ("due", self.due))
        }
        return {
            **facts, **times, "last": last, "error": self.error or None, "author": self.order.author,
            "schedule": self.schedule.as_dict(),
        }  # fmt: skip


def describe_run(run: Run, zone: str = "UTC") -> dict[str, Any]:
    """Return a run with names for people. ``why``: due, catch_up, run or backfill; ``outcome``: done, failed, skipped,
    missed (with ``count``) or unknown; ``led``: kind, machine and id of what it led to."""
    return {
        "planned": describe(run["p"], zone),
        "at": describe(run["at"] // 1000, zone),
        "why": run["w"],
        "outcome": run["o"],
        "count": run.get("n", 1),
        "led": run.get("led"),
        "by": run.get("by", ""),
        "error": run.get("e", ""),
    }


class Schedules:
    """The schedules of an engine. ``clock``: returns ms in place of the server's clock."""

    def __init__(self, engine: Engine, clock: Callable[[], int] | None = None) -> None:
        self._engine = engine
        self._clock = clock
        self._store = Store(engine)

    # Reading

    def get(self, name: str) -> Row:
        """Return a schedule. Raises UnknownSchedule."""
        order = self._store.get(name)
        try:
            return _read_row(order, self._engine.get(SCHEDULES, name))
        except errors.LookupFailed:
            raise UnknownSchedule(name) from None

    def find(self, machines: Collection[str] | None = None, *, partial: bool = True) -> PartialList[Row]:
        """Return the schedules, by name; ``machines``: of these alone. At most a thousand. The attribute ``missing`` of
        the result lists the roots of partitions that did not answer; with ``partial=False`` such a one raises
        EngineUnavailable."""
        if SCHEDULES not in self._engine.recent_versions():
            return PartialList()
        found: dict[str, Instance] = {}
        missing: dict[str, None] = {}
        for page in find_pages(self._engine, SCHEDULES, limit=200, partial=partial):
            found |= {instance.id: instance for instance in page.instances}
            missing |= dict.fromkeys(page.missing)
            if len(found) >= MAX_LISTED:
                break
        orders = self._store.read(sorted(found))
        rows = [_read_row(order, found[name]) for name, order in orders.items()]
        shown = [row for row in rows if machines is None or row.schedule.machine in machines]
        return PartialList(shown, missing=missing)

    def find_paused(self) -> list[Row]:
        """Return the paused schedules, those paused for longest first; at most a thousand."""
        found = self._engine.find(SCHEDULES, state="paused", limit=MAX_LISTED).instances
        orders = self._store.read([instance.id for instance in found])
        return [_read_row(orders[instance.id], instance) for instance in found if instance.id in orders]

    def history(self, name: str, limit: int = 100) -> list[Run]:
        """Return the runs, newest first: as many as the steps of its history hold. Raises UnknownSchedule."""
        try:
            steps = self._engine.history(SCHEDULES, name, limit=STEPS)
        except errors.LookupFailed:
            raise UnknownSchedule(name) from None
        runs = (run for step in steps for run in reversed(step.changes.get("ran") or []))
        return list(islice(runs, min(limit, MAX_RUNS)))

    # Changing

    def put(
        self, document: object, *, author: str = "", source: str = PEOPLE, person: bool = False, groups: Groups = None,
        reason: str = "",
    ) -> Row:  # fmt: skip
        """Make a schedule, or change the one of its name; what is running goes on. A paused one stays paused.

        Raises InvalidSchedule with all findings, DeclaredSchedule where another source declares it.
        """
        builtin_machines.publish(self._engine, SCHEDULES)
        name = document.get("name") if isinstance(document, Mapping) else None
        before = self._store.find(name) if isinstance(name, str) and documents.NAME.fullmatch(name) else None
        clock = self._read_time(name)
        made = clock if before is None else before.made
        schedule = documents.read(document, anchor=made // 1000 if before is None else before.schedule.anchor)
        if before is not None and before.source != source:
            raise DeclaredSchedule(schedule.name, before.source, "change")
        if findings := targets.check(self._engine, schedule):
            raise InvalidSchedule(schedule.name, findings)
        schedule = self._encrypt(schedule)
        if source == PEOPLE and schedule.next(clock // 1000) is None:
            raise InvalidSchedule(schedule.name, [Finding("when", "has no occurrence from now on", "a later moment")])
        order = Order(schedule, source, author, person, groups, made=made, changed=clock)
        if before is not None and _is_same(before, order):
            with suppress(UnknownSchedule):
                return self.get(schedule.name)
        self._store.put(order)
        self._start(order, clock, reason)
        return self.get(schedule.name)

    def _encrypt(self, schedule: Schedule) -> Schedule:
        """Return a schedule that is stored without the plain values of encrypted fields."""
        what = {
            name: self._engine.encrypt(schedule.machine, value) if name in VALUES else value
            for name, value in schedule.what.items()
        }
        if what.get("filter"):
            what["filter"] = encrypt_filter(self._engine, schedule.machine, what["filter"])
        return (
            schedule if what == schedule.what else replace(schedule, what=what, given={**schedule.given, "what": what})
        )

    def pause(self, name: str, *, by: str = "", reason: str = "") -> Row:
        """Pause a schedule: nothing is due until it is resumed; what is under way ends. Raises UnknownSchedule."""
        if self.get(name).state != "paused":
            self._fire(name, "pause", {}, by, reason)
        return self.get(name)

    def resume(self, name: str, *, by: str = "", reason: str = "") -> Row:
        """Go on from now: what was planned meanwhile is not made up. Raises UnknownSchedule."""
        row = self.get(name)
        if row.state == "paused":
            self._fire(name, "resume", _plan(row.schedule, self._read_time(name)), by, reason)
        return self.get(name)

    def run(self, name: str, *, by: str = "", reason: str = "", key: str | None = None) -> Row:
        """Run it once now, whatever its overlap policy, also while it is paused. The same ``key`` again is the same
        run. Raises UnknownSchedule, BadInput where too many runs wait."""
        at = self._read_time(name) // 1000
        self._ask(name, {"kind": "run", "times": [at], "by": by}, by, reason, key)
        return self.get(name)

    def backfill(
        self, name: str, start: int, end: int, *, by: str = "", reason: str = "", key: str | None = None
    ) -> int:
        """Run each occurrence from ``start`` to before ``end``, seconds, in order, also those that have run; return how
        many. Raises UnknownSchedule, BackfillRefused."""
        schedule, clock = self._store.get(name).schedule, self._read_time(name)
        count = len(list_backfill(schedule, start, end, clock))
        self._ask(name, {"kind": "backfill", "from": start, "to": end, "by": by}, by, reason, key)
        return count

    def remove(self, name: str, *, by: str = "", reason: str = "", source: str = PEOPLE) -> None:
        """Remove it with its history. What its runs led to goes on. Raises UnknownSchedule, DeclaredSchedule."""
        order = self._store.get(name)
        if order.source != source:
            raise DeclaredSchedule(name, order.source, "remove")
        with suppress(errors.LookupFailed):
            self._engine.delete(SCHEDULES, name, actor=by, reason=reason or "the schedule was removed")
        self._store.remove(name)

    # Within

    def _start(self, order: Order, clock: int, reason: str) -> None:
        name, planned = order.schedule.name, _plan(order.schedule, clock)
        who: dict[str, Any] = {"actor": order.author, "reason": reason, "now": self._now}
        try:
            self._engine.create(SCHEDULES, name, planned, **who)
        except errors.InstanceExists:
            with suppress(errors.Refused):  # a paused one is planned when it is resumed
                self._engine.fire(SCHEDULES, name, "plan", planned, **who)

    def _ask(self, name: str, request: dict[str, Any], by: str, reason: str, key: str | None) -> None:
        if self.get(name).waiting > MAX_REQUESTS:
            raise errors.BadInput(f"{MAX_REQUESTS} runs of {name!r} wait already: wait for them")
        id = hashlib.sha256(key.encode()).hexdigest()[:16] if key else self._engine.new_id()
        self._fire(name, "ask", {"request": {"id": id, **request}}, by, reason, key)

    def _fire(
        self, name: str, event: str, payload: Mapping[str, Any], by: str, reason: str, key: str | None = None
    ) -> None:
        try:
            self._engine.fire(SCHEDULES, name, event, payload, actor=by, reason=reason, now=self._now, key=key)
        except errors.LookupFailed:
            raise UnknownSchedule(name) from None

    @property
    def _now(self) -> int | None:
        return None if self._clock is None else self._clock()

    def _read_time(self, name: object) -> int:
        return self._store.read_time(str(name)) if self._clock is None else self._clock()


def list_backfill(schedule: Schedule, start: int, end: int, clock: int) -> list[int]:
    """List the occurrences of a backfill, seconds. Raises BackfillRefused."""
    if end <= start:
        raise BackfillRefused("the range of a backfill ends after it starts")
    if end > clock // 1000 + 1:
        raise BackfillRefused(f"a backfill is for the past: end at {describe(clock // 1000, schedule.zone)} or before")
    found: list[int] = []
    for at in schedule.iterate(start - 1):
        if at >= end:
            break
        found.append(at)
        if len(found) > MAX_BACKFILL:
            raise BackfillRefused(
                f"the range has more than {MAX_BACKFILL:,} occurrences, the last that fits is before"
                f" {describe(at, schedule.zone)}: backfill it in parts"
            )
    if not found:
        raise BackfillRefused("the range has no occurrence of the schedule")
    return found


def _plan(schedule: Schedule, clock: int) -> dict[str, Any]:
    planned = schedule.next(clock // 1000)
    due = None if planned is None else schedule.due(planned)
    return {"next": planned, "due": due, "wait": planning.wait_for(schedule, planned, clock)}


def _is_same(before: Order, after: Order) -> bool:
    return replace(before, made=0, changed=0) == replace(after, made=0, changed=0)


def _read_row(order: Order, instance: Instance) -> Row:
    data = instance.data
    paused = data["paused"] or instance.state == "paused"
    return Row(
        order,
        "paused" if paused else STATES[instance.state],
        None if paused else data["next"],
        None if paused else data["due"],
        count=data["count"],
        last=data["last"],
        pending=len(data["pending"]),
        waiting=len(data["held"]) + len(data["requests"]),
        error=data["error"] or "",
        revision=instance.revision,
        entered=instance.entered,
    )
