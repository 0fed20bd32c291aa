"""Carries out one occurrence. Each effect may be asked for twice and happens once: it carries a key of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from machines.bulks import Bulk
from machines.bulks import Order as BulkOrder
from machines.bulks.bulk import LIVE
from machines.bulks.order import read_filter
from machines.catalog import builtin_machines
from machines.engine import Engine, errors, limits

from .document import Schedule
from .occurrences import compact, describe
from .planning import Entry
from .store import Order

REMEMBERED = 20 * 3_600_000
"""ms for which a claim may be tried again: the engine remembers keys for a day, and the rest is for slow calls."""
BY_ID = frozenset(["create", "fire_all"])
"""What needs no memory of keys: the id of what it makes says whether it happened."""
OPEN_PLACES = frozenset(["ready", "leased", "delayed"])

Led = dict[str, str]
"""What an occurrence led to: ``kind`` job, instance, event or bulk, with ``machine`` and ``id``."""


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
        what["machine"], "fire", order.author or "schedule", explain(order, entry), read_filter(what["filter"]),
        event=what["event"], payload=dict(what.get("payload") or {}), rate=what.get("rate", 0), person=order.person,
        groups=order.groups, unattended=True,
    )  # fmt: skip
    mark = compact(entry["p"]) if entry["k"].isdigit() else entry["k"].replace(":", "-")
    bulk = Bulk.start(engine, ordered, id=f"{order.schedule.name}-{mark}")
    return {"kind": "bulk", "machine": what["machine"], "id": bulk.id}
