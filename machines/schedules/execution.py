"""The work of a schedule: claims what is due, carries it out, and reports it with the end of the job.

Three steps, so that a worker may die between any two of them. The *claim* is one event of the schedule's instance, on
the revision that was read: it writes the next planned time and what is pending from then on. The *effects* carry keys
of their occurrences. The *end* of the job takes the pending ones away and tells their runs. The worker that gets the
job next finds what is pending, carries it out again, which changes nothing where it had happened, and then goes on.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from machines.audit.redaction import without_values
from machines.catalog import builtin_machines
from machines.connections import get_engine
from machines.engine import Engine, errors, limits
from machines.instances.bulks import Bulk
from machines.instances.bulks import Order as BulkOrder
from machines.instances.bulks.bulk import LIVE
from machines.worker import Job, handler

from . import authors, planning
from .document import SCHEDULES, Order, Schedule, Store
from .errors import UnknownSchedule
from .occurrences import compact, describe
from .planning import Claim, Entry, Run

PLANNED = ("due", "catch_up")  # what the overlap policy is for: runs by hand and backfills are let through
TRIES = 20  # claims, where people change the schedule all the time
MAX_HELD = 100
MAX_OPEN = 100
LOOK = 5_000  # ms after which a held occurrence asks again whether the run before it is over
SAID = 300  # characters of an error
UNKNOWN = (
    "its worker died, and whether it took effect was not known for so long that it is not tried again: look, and run it"
)
REMEMBERED = 20 * 3_600_000
"""ms for which a claim may be tried again: the engine remembers keys for a day, and the rest is for slow calls."""
BY_ID = frozenset(["create", "fire_all"])
"""What needs no memory of keys: the id of what it makes says whether it happened."""
OPEN_PLACES = frozenset(["ready", "leased", "delayed"])

Led = dict[str, str]
"""What an occurrence led to: ``kind`` job, instance, event or bulk, with ``machine`` and ``id``."""


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


def key_of(schedule: Schedule, entry: Entry) -> str:
    """Return the idempotency key of an occurrence."""
    key = f"schedule:{schedule.name}:{entry['k']}"
    return key if len(key) <= limits.MAX_IDEMPOTENCY_KEY else f"schedule:{hashlib.sha256(key.encode()).hexdigest()}"


def carry_out(engine: Engine, order: Order, entry: Entry, now: int | None = None) -> Led:
    """Do what the schedule does. Raises the engine's errors; EngineUnavailable where it is not known whether it
    happened."""
    if order.schedule.machine in builtin_machines.NAMES:  # of an older release: a new one is refused when it is made
        raise errors.BadInput(f"{order.schedule.machine} is a machine of the product, which no schedule moves")
    does = {"enqueue": _enqueue, "fire": _fire, "fire_all": _fire_all, "create": _create}
    return does[order.schedule.does](engine, order, entry, now)


def is_running(engine: Engine, led: Mapping[str, str]) -> bool:
    """Tell whether what an occurrence led to is still going on: its job is open, its instance not final, its bulk
    action not over. An event at one instance is over at once."""
    try:
        if led["kind"] == "job":
            return engine.job(led["machine"], led["id"]).place in OPEN_PLACES
        if led["kind"] == "instance":
            return not engine.get(led["machine"], led["id"]).done
        return led["kind"] == "bulk" and Bulk(engine, led["id"]).get().state in LIVE
    except errors.LookupFailed:
        return False


def explain(order: Order, entry: Entry) -> str:
    """Return the reason that histories say."""
    return f"schedule {order.schedule.name}, planned for {describe(entry['p'], order.schedule.zone)}"


def _enqueue(engine: Engine, order: Order, entry: Entry, now: int | None) -> Led:
    what = order.schedule.what
    options = {name: what[name] for name in ("queue", "priority", "attempts") if name in what}
    key = key_of(order.schedule, entry)
    job = engine.enqueue(order.schedule.machine, what["src"], what.get("input"), key=key, now=now, **options)
    return {"kind": "job", "machine": job.machine, "id": job.id}


def _fire(engine: Engine, order: Order, entry: Entry, now: int | None) -> Led:
    what = order.schedule.what
    engine.fire(
        what["machine"], what["instance"], what["event"], what.get("payload"), key=key_of(order.schedule, entry),
        actor=order.author, reason=explain(order, entry), permit=order.permit(), now=now,
    )  # fmt: skip
    return {"kind": "event", "machine": what["machine"], "id": what["instance"]}


def _create(engine: Engine, order: Order, entry: Entry, now: int | None) -> Led:
    what = order.schedule.what
    mark = "" if entry["k"].isdigit() else f"-{entry['k'].partition(':')[0]}"
    id = order.schedule.instance_id(entry["p"], mark)
    engine.create(
        what["machine"], id, what.get("data"), key=key_of(order.schedule, entry), actor=order.author,
        reason=explain(order, entry), now=now,
    )  # fmt: skip
    return {"kind": "instance", "machine": what["machine"], "id": id}


def _fire_all(engine: Engine, order: Order, entry: Entry, _: int | None) -> Led:
    what = order.schedule.what
    ordered = BulkOrder(
        what["machine"], "fire", order.author or "schedule", explain(order, entry), dict(what["filter"]),
        event=what["event"], payload=dict(what.get("payload") or {}), rate=what.get("rate", 0), person=order.person,
        groups=order.groups, unattended=True,
    )  # fmt: skip
    mark = compact(entry["p"]) if entry["k"].isdigit() else entry["k"].replace(":", "-")
    bulk = Bulk.start(engine, ordered, id=f"{order.schedule.name}-{mark}")
    return {"kind": "bulk", "machine": what["machine"], "id": bulk.id}


@handler("schedules.work", machine=SCHEDULES, queue=False)  # the definition names its queue
def work_on_schedule(job: Job) -> dict[str, Any]:
    """Claim what is due and carry it out."""
    engine = get_engine()
    result = work(engine, job.instance, check=job.check)
    if result is None:
        engine.hand_back(job.taken, delay=LOOK)
        raise errors.LeaseLost(job.id, why="an earlier run is still going on")
    return result
