"""The work of a schedule: claims what is due, carries it out, and reports it with the end of the job.

Three steps, so that a worker may die between any two of them. The *claim* is one event of the schedule's instance, on
the revision that was read: it writes the next planned time and what is pending from then on. The *effects* carry keys
of their occurrences. The *end* of the job takes the pending ones away and tells their runs. The worker that gets the
job next finds what is pending, carries it out again, which changes nothing where it had happened, and then goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from machines.catalog.redaction import without_values
from machines.engine import Engine, errors

from . import authors, planning
from .builtin_machine import SCHEDULES
from .effects import BY_ID, REMEMBERED, Led, carry_out, is_running
from .errors import UnknownSchedule
from .planning import Claim, Entry, Run
from .store import Order, Store

PLANNED = ("due", "catch_up")  # what the overlap policy is for: runs by hand and backfills are let through
TRIES = 20  # claims, where people change the schedule all the time
MAX_HELD = 100
MAX_OPEN = 100
LOOK = 5_000  # ms after which a held occurrence asks again whether the run before it is over
SAID = 300  # characters of an error
UNKNOWN = (
    "its worker died, and whether it took effect was not known for so long that it is not tried again: look, and run it"
)


def work(
    engine: Engine, name: str, *, now: int | None = None, check: Callable[[], None] = lambda: None
) -> dict[str, Any] | None:
    """Claim and carry out what is due; return the result of the job, or None where all that there is waits for an
    earlier run: the job is to be handed back for ``LOOK`` ms then, which costs no step. A schedule whose author lost
    the right is paused, and what was due is recorded as failed. ``now``: ms in place of the server's clock. ``check``:
    raises where the job is lost.

    Raises UnknownSchedule, EngineUnavailable.
    """
    order, clock = Store(engine).get_with_time(name)
    at = clock if now is None else now
    data = _claim(engine, order, name, at, now, check)
    if data["held"] and not data["pending"] and not data["requests"]:
        return None
    runs: list[Run] = []
    opened, held = list(data["open"]), list(data["held"])
    if lost := authors.find_lost_right(order):
        runs = [_make_run(entry, at, o="failed", e=f"not run: {lost}"[:SAID]) for entry in data["pending"]]
        data["pending"] = []
        engine.fire(SCHEDULES, name, "pause", reason=lost, now=now)
    for entry in data["pending"]:
        check()
        if _has_to_wait(engine, order, entry, opened, held):
            if len(held) < MAX_HELD:
                held.append(entry)
                continue
            runs.append(_make_run(entry, at, o="skipped", e=f"{MAX_HELD} occurrences wait already"))
        else:
            runs.append(_run(engine, order, entry, opened, at, now))
    wait = 0 if held else planning.wait_for(order.schedule, data["next"], at)
    count = sum(run["o"] in ("done", "failed", "unknown") for run in runs)
    last = runs[-1] if runs else data["last"]
    return {"ran": runs, "last": last, "open": opened, "held": held, "wait": wait, "count": count}


def _claim(
    engine: Engine, order: Order, name: str, at: int, now: int | None, check: Callable[[], None]
) -> dict[str, Any]:
    """Write what is due as pending; return the instance's data from then on."""
    for _ in range(TRIES):
        try:
            instance = engine.get(SCHEDULES, name)
        except errors.UnknownInstance:
            raise UnknownSchedule(name) from None
        data = dict(instance.data)
        if data["pending"]:
            return data  # of a worker that died: first these
        claim = planning.plan(order.schedule, data, at, check)
        held = _release(engine, data, claim, at)
        if not claim.pending and claim.next == data["next"] and claim.requests == data["requests"]:
            return data
        written = {
            "next": claim.next,
            "due": None if claim.next is None else order.schedule.due(claim.next),
            "pending": claim.pending,
            "requests": claim.requests,
            "held": held,
            "open": [led for led in data["open"] if order.schedule.overlap != "allow"],
            "ran": claim.runs,
        }
        check()
        try:
            after = engine.fire(SCHEDULES, name, "claim", written, expect=instance.revision, now=now)
        except errors.Conflict:
            continue
        return dict(after.data)
    raise errors.EngineFault(f"the schedule {name!r} changed {TRIES} times while it was claimed")


def _release(engine: Engine, data: dict[str, Any], claim: Claim, at: int) -> list[Entry]:
    """Have the first held occurrence run where the run before it is over; return those that stay held."""
    held = list(data["held"])
    if held and not any(is_running(engine, led) for led in data["open"]):
        claim.pending.insert(0, {**held.pop(0), "c": at, "h": True})
    return held


def _has_to_wait(engine: Engine, order: Order, entry: Entry, opened: list[Led], held: list[Entry]) -> bool:
    """Tell whether an occurrence waits for the run before it, or for others that wait. Brings ``opened`` up to date."""
    if order.schedule.overlap == "allow":
        return False
    opened[:] = [led for led in opened if is_running(engine, led)]
    if order.schedule.overlap != "queue" or entry["w"] not in PLANNED or entry.get("h"):
        return False
    return bool(opened or held)


def _run(engine: Engine, order: Order, entry: Entry, opened: list[Led], at: int, now: int | None) -> Run:
    """Carry out one occurrence. What it led to is added to ``opened``."""
    overlap = order.schedule.overlap
    if overlap == "skip" and opened and entry["w"] in PLANNED:
        return _make_run(entry, at, o="skipped", e=f"{opened[0]['kind']} {opened[0]['id']} is still running")
    if at - entry["c"] > REMEMBERED and order.schedule.does not in BY_ID:
        return _make_run(entry, at, o="unknown", e=UNKNOWN)
    try:
        led = carry_out(engine, order, entry, now)
    except errors.EngineUnavailable:
        raise
    except errors.SignalboxError as error:
        return _make_run(entry, at, o="failed", e=f"{without_values(error)} ({error.code})"[:SAID])
    if overlap != "allow" and led["kind"] != "event":
        opened.append(led)
        del opened[:-MAX_OPEN]
    return _make_run(entry, at, o="done", led=led)


def _make_run(entry: Entry, at: int, **outcome: Any) -> Run:
    return {name: entry[name] for name in ("k", "p", "w", "by") if name in entry} | {"at": at} | outcome
