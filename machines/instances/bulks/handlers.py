"""Job handlers of a bulk action. A job may run twice, or in two workers at a time."""

from collections import Counter
from functools import partial
from math import ceil
from typing import Any, NoReturn

from machines.connections import get_engine
from machines.engine import Engine, errors
from machines.worker import Job, handler

from . import execution, migration
from . import selection as previewing
from . import selection as selecting
from .order import BULK, MIGRATE
from .store import PAGE, Store

PREVIEWED = 5 * PAGE  # instances asked in one job
TURN = 100  # instances moved in one job at most
LATER = 5_000  # ms a job is set aside whose bulk is suspended


class NotReleased(Exception):
    """Nobody who may has let it run."""


@handler("bulk.collect", machine=BULK)
def collect(job: Job) -> dict[str, Any]:
    """Freeze and preview in one walk over the fleet."""
    engine = get_engine()
    store, selection, total = Store(engine, job.instance), f"{job.id}.{job.attempt}", 0
    made, order = engine.get(BULK, job.instance).created, store.order()
    if order.action == MIGRATE:
        freezer = migration.collect(engine, store, selection, order, made, partial(_report, job))
        return {"selection": selection, "found": freezer.total, "verdicts": dict(freezer.counts)}
    for number, page in enumerate(selecting.split_pages(selecting.find(engine, order, made))):
        store.put_page(selection, number, page)
        total += len(page)
        _report(job, total)
    return {"selection": selection, "found": total, "verdicts": dict.fromkeys(previewing.RESULTS, 0)}


@handler("bulk.preview", machine=BULK)
def preview(job: Job) -> dict[str, Any]:
    """Ask the next few hundred instances what would come of it."""
    engine, data = get_engine(), job.data
    store = Store(engine, job.instance)
    order, counts = store.order(), Counter(data["verdicts"])
    if order.action == MIGRATE:  # it was previewed while it was frozen
        return {"checked": data["found"], "verdicts": data["verdicts"]}
    order.demand_readable()
    checked = data["checked"]
    until = min(checked + PREVIEWED, data["found"])
    while checked < until:
        job.check()
        items = store.items(data["selection"], checked, min(checked + PAGE, until))
        notes = previewing.preview_items(engine, order, items)
        store.put_previews(notes)
        counts.update(notes[item.id].word for item in items)
        checked += len(items)
    goes = order.unattended and checked >= data["found"]
    if goes:
        store.release(order.actor, data["selection"])
    return {"checked": checked, "verdicts": dict(counts), "run": goes}


@handler("bulk.act", machine=BULK)
def act(job: Job) -> dict[str, Any]:
    """Move the next instances: no more than a second's worth of the rate."""
    engine, data = get_engine(), job.data
    store = Store(engine, job.instance)
    if not store.is_released(data["selection"]):
        raise NotReleased("not started by a person with the operate permission: run it from its page")
    order, start, rate = store.order(), data["tried"], store.rate()
    order.demand_readable()
    permit = order.permit(store.read_approver(data["selection"]))
    turn, together = TURN, execution.TOGETHER
    if order.action == MIGRATE:
        turn, together = migration.TURN, migration.TOGETHER
    items = store.items(data["selection"], start, min(start + (min(turn, rate) if rate else turn), data["found"]))
    for begin in range(0, len(items), together):
        some = items[begin : begin + together]
        left = [
            item for item, note in zip(some, store.outcomes([item.id for item in some]), strict=True) if note is None
        ]
        if left:
            _check(engine, job, start)
            execution.act(engine, store, job.instance, order, permit, left)
        job.progress(start + begin + len(some), data["found"], "instances")
    counts = Counter(data["outcomes"] or dict.fromkeys(execution.OUTCOMES, 0))
    notes = [note for note in store.outcomes([item.id for item in items]) if note]
    counts.update(note.word for note in notes)
    if order.action == MIGRATE:  # it stores no outcome of those that were moved
        counts["done"] += len(items) - len(notes)
    rest = ceil(len(items) * 1000 / rate) if rate else 0
    return {"tried": start + len(items), "outcomes": dict(counts), "rest": rest}


@handler("bulk.remove", machine=BULK)
def remove(job: Job) -> None:
    """Take selection and results away, and the bulk last: should this worker die, another goes on."""
    engine = get_engine()
    Store(engine, job.instance).remove()
    try:
        engine.delete(BULK, job.instance, actor=job.actor, reason="the bulk action was removed")
    except errors.UnknownInstance:
        return


def _report(job: Job, total: int) -> None:
    job.check()
    job.progress(total, None, "instances found")


def _check(engine: Engine, job: Job, start: int) -> None:
    """Go on only while the bulk runs and these instances are its next."""
    job.check()
    bulk = engine.get(BULK, job.instance)
    if bulk.suspended:
        engine.hand_back(job.taken, delay=LATER)
        _leave(job, "the bulk is suspended")
    if bulk.state != "running" or bulk.data["tried"] != start:
        _leave(job, f"the bulk is {bulk.state}")


def _leave(job: Job, why: str) -> NoReturn:
    raise errors.LeaseLost(job.id, why=why)
