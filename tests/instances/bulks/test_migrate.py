"""A migration as a bulk action: frozen and previewed by the dry run, each instance moved once, what failed named."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest

from machines.catalog import builtin_machines
from machines.engine import errors
from machines.instances.bulks import BULK, Bulk, Order, migration
from machines.worker.job import Job
from machines.worker.registry import discover
from tests.installation.processes import eventually
from tests.instances.bulks.test_twice import start  # noqa: F401
from tests.worker.builders import Running

from .builders import step, work_off

PARCEL = {
    "id": "parcel",
    "initial": "open",
    "context": {"type": "object", "properties": {"weight": {"type": "integer", "default": 1}}},
    "states": {
        "open": {"on": {"send": "sent", "hold": "held", "label": {"actions": {"set": {"weight": "weight + 1"}}}}},
        "sent": {"on": {"back": "open"}},
        "held": {"on": {"back": "open"}},
    },
}
SECOND = PARCEL | {
    "states": {
        "open": {"on": {"send": "travelling"}},
        "travelling": {"on": {"back": "open"}},
    }
}


def parcels(engine, count, held=0):
    """So many open parcels of the first version, of which the first ones are held; their ids."""
    engine.publish(PARCEL)
    ids = [f"p{number:04}" for number in range(count)]
    for id in ids:
        engine.create("parcel", id)
    for id in ids[:held]:
        engine.fire("parcel", id, "hold")
    engine.publish(SECOND)
    return ids


def plan(engine):
    return engine.plan("parcel", 2, states={"sent": "travelling"})


def order(engine, **given):
    terms = {"machine": "parcel", "action": "migrate", "actor": "ann", "reason": "states were renamed"}
    return Order(**terms | {"plan": plan(engine).as_dict()} | given)


def previewed(engine, **given):
    bulk = Bulk.start(engine, order(engine, **given))
    work_off(engine)
    assert bulk.get().state == "previewed", bulk.get().data
    return bulk


def finished(engine, **given):
    bulk = previewed(engine, **given)
    bulk.run("ann")
    work_off(engine)
    assert bulk.get().state == "done", bulk.get().data
    return bulk


def versions(engine, ids):
    return Counter(found.version for found in engine.get_many("parcel", ids))


def words(bulk, what):
    notes = [getattr(row, what) for page in bulk.pages() for row in page]
    return dict(Counter(note.word if note else "none" for note in notes))


def counted(bulk, what):
    return {word: count for word, count in bulk.get().data[what].items() if count}


def moves(engine, id):
    """The steps of its history that moved it."""
    return [one for one in engine.history("parcel", id) if one.event == "(migrate)"]


def test_every_instance_is_frozen_previewed_and_moved(engine):
    ids = parcels(engine, 250)
    bulk = previewed(engine)
    assert (bulk.get().data["found"], bulk.get().data["checked"]) == (250, 250)
    assert counted(bulk, "verdicts") == {"taken": 250}
    assert versions(engine, ids) == {1: 250}, "a preview changes nothing"
    bulk.run("bob")
    work_off(engine)
    assert counted(bulk, "outcomes") == {"done": 250}
    assert versions(engine, ids) == {2: 250}
    assert words(bulk, "verdict") == {"taken": 250}
    assert words(bulk, "outcome") == {"done": 250}
    (moved,) = moves(engine, ids[0])
    assert (moved.actor, moved.reason) == ("ann", f"states were renamed [bulk {bulk.id}]")


def test_the_order_names_version_and_plan(engine):
    parcels(engine, 1)
    bulk = previewed(engine)
    assert bulk.get().data["target"] == f"to version 2 by plan {plan(engine).id}"
    assert bulk.order().migration == plan(engine)


def test_its_classes_are_kept_with_it(engine):
    parcels(engine, 20, held=5)
    found = previewed(engine).dry_run()
    assert found.total == 20
    assert {each.configuration: each.count for each in found.classes} == {("open",): 15, ("held",): 5}
    assert found.refused_count == 5


def test_what_is_refused_says_why_and_is_tried_again(engine):
    ids = parcels(engine, 120, held=3)
    bulk = finished(engine)
    assert counted(bulk, "verdicts") == {"taken": 117, "refused": 3}
    assert counted(bulk, "outcomes") == {"done": 117, "refused": 3}
    refused = [row for page in bulk.pages() for row in page if row.outcome.word == "refused"]
    assert sorted(row.item.id for row in refused) == ids[:3]
    assert all("held" in row.outcome.why and "SB6" in row.outcome.why for row in refused)
    assert all(row.verdict.why == row.outcome.why for row in refused)
    for id in ids[:2]:
        engine.fire("parcel", id, "back")
    again = bulk.again("bob", "they are open now")
    work_off(engine)
    assert again.get().data["found"] == 3
    again.run("bob")
    work_off(engine)
    assert counted(again, "outcomes") == {"done": 2, "refused": 1}
    assert versions(engine, ids) == {2: 119, 1: 1}


def test_one_that_took_steps_since_is_moved_from_where_it_stands(engine):
    ids = parcels(engine, 3)
    bulk = previewed(engine)
    engine.fire("parcel", ids[0], "send")
    engine.fire("parcel", ids[1], "hold")
    bulk.run("ann")
    work_off(engine)
    assert counted(bulk, "outcomes") == {"done": 2, "refused": 1}
    assert [found.state for found in engine.get_many("parcel", ids)] == ["travelling", "held", "open"]


def test_those_that_others_moved_or_deleted_are_named(engine):
    ids = parcels(engine, 4)
    bulk = previewed(engine)
    finished(engine, filter={"id_prefix": ids[0], "state": "open"})
    engine.delete("parcel", ids[1])
    bulk.run("ann")
    work_off(engine)
    assert counted(bulk, "outcomes") == {"done": 2, "already": 1, "gone": 1}
    assert len(moves(engine, ids[0])) == 1


def test_a_filter_narrows_it(engine):
    ids = parcels(engine, 150, held=20)
    for id in ids[20:60]:
        engine.fire("parcel", id, "send")
    bulk = finished(engine, filter={"state": "sent"})
    assert bulk.get().data["found"] == 40
    assert bulk.dry_run() is None
    assert versions(engine, ids) == {2: 40, 1: 110}


def test_a_version_that_the_plan_is_not_for_is_left_out(engine):
    ids = parcels(engine, 5)
    engine.create("parcel", "new")
    assert previewed(engine).get().data["found"] == 5
    assert previewed(engine, filter={"version": 1}).get().data["found"] == 5
    assert previewed(engine, filter={"version": 2}).get().data["found"] == 0
    assert versions(engine, [*ids, "new"]) == {1: 5, 2: 1}


def test_pausing_and_stopping_keep_what_is_left(engine, monkeypatch):
    monkeypatch.setattr(migration, "TURN", 100)
    ids = parcels(engine, 350)
    bulk = previewed(engine)
    bulk.run("ann")
    step(engine, "act")
    bulk.pause("bob")
    work_off(engine)
    assert (bulk.get().state, versions(engine, ids)) == ("paused", {2: 100, 1: 250})
    bulk.resume("bob")
    step(engine, "act")
    bulk.stop("bob")
    work_off(engine)
    assert (bulk.get().state, versions(engine, ids)) == ("stopped", {2: 200, 1: 150})
    assert words(bulk, "outcome") == {"done": 200, "none": 150}


def test_a_rate_is_kept_by_waiting_between_turns(engine):
    parcels(engine, 25)
    bulk = previewed(engine, rate=10)
    bulk.run("ann")
    step(engine, "act")
    assert (bulk.get().data["tried"], bulk.get().data["rest"]) == (10, 1000)


def test_a_batch_that_is_run_twice_moves_each_once(engine):
    """It dies after everything is moved, and before it could say so."""
    ids = parcels(engine, 30, held=2)
    bulk = previewed(engine)
    bulk.run("ann")
    (taken,) = engine.take(BULK, "act", "w")
    results = [discover().get(taken.src).function(Job(taken)) for _ in range(2)]
    assert {word: count for word, count in results[1]["outcomes"].items() if count} == {"done": 28, "refused": 2}
    engine.complete(taken, results[1])
    assert bulk.get().state == "done"
    assert all(len(moves(engine, id)) == 1 for id in ids[2:])


@pytest.mark.parametrize(
    "given",
    [
        {"plan": {}},
        {"plan": {"format": 1, "machine": "parcel"}},
        {"unchanged": True},
        {"machine": "other"},
        {"reason": " "},
    ],
)
def test_an_order_that_makes_no_sense_makes_no_bulk(engine, given):
    parcels(engine, 1)
    engine.publish(PARCEL | {"id": "other"})
    with pytest.raises(errors.BadInput):
        Bulk.start(engine, order(engine, **given))


@pytest.mark.faults
def test_a_worker_that_is_killed_costs_nothing_but_time(engine, start):  # noqa: F811
    definition = builtin_machines.definition(BULK)
    definition["states"]["running"]["invoke"] |= {"lease": "1s", "retry": {"attempts": 9, "backoff": "10ms"}}
    ids = parcels(engine, 6000)
    engine.publish(definition)
    bulk = previewed(engine)
    process = start("--concurrency", "2")
    bulk.run("ann")
    eventually(lambda: versions(engine, ids[:1000])[2] > 0, "some are moved")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with Running(engine, discover()):
        eventually(lambda: bulk.get().state == "done", "another worker goes on")
    assert counted(bulk, "outcomes") == {"done": 6000}
    assert versions(engine, ids) == {2: 6000}
    assert {found.revision for found in engine.get_many("parcel", ids)} == {2}
