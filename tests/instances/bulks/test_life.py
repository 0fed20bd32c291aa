"""A bulk from its order to its results: frozen, asked, run, paused, stopped, done again for what failed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

import pytest

from machines.catalog import builtin_machines
from machines.engine import Engine, errors
from machines.engine.definitions import check
from machines.instances.bulks import BULK, Bulk, NotNow, Order
from machines.instances.bulks.store import Store
from tests.cases import for_each
from tests.installation.processes import ROOT
from tests.worker.builders import errand, places

from .builders import (
    PARCEL,
    finished,
    fire_all,
    order,
    parcels,
    previewed,
    sent,
    states,
    step,
    step_failing,
    words,
    work_off,
)


@pytest.mark.pure
def test_what_is_shipped_has_no_findings():
    assert [str(finding) for finding in check(builtin_machines.definition(BULK))] == []
    assert builtin_machines.definition(BULK)["id"] == BULK
    assert builtin_machines.definition("map_reduce")["id"] != BULK


def test_an_event_is_sent_to_everything_a_filter_finds(engine):
    ids = parcels(engine, 250)
    bulk = previewed(engine, payload={"by": "van"})
    assert states(engine) == {"open": 250}, "a dry run changes nothing"
    bulk.run("bob")
    work_off(engine)
    found = bulk.get()
    assert (found.state, found.data["found"], found.data["tried"]) == ("done", 250, 250)
    assert found.data["verdicts"]["taken"] == found.data["outcomes"]["done"] == 250
    assert states(engine) == {"sent": 250}
    history = engine.history("parcel", ids[0])[0]
    assert (history.actor, history.reason) == ("ann", f"the van is late [bulk {bulk.id}]")
    assert history.payload == {"by": "van"}


def test_each_verdict_and_outcome_says_why(engine):
    ids = parcels(engine, 3)
    engine.create("parcel", "heavy", {"weight": 50})
    engine.suspend("parcel", ids[0], actor="ann", reason="a test")
    bulk = Bulk.start(engine, order())
    step(engine, "collect")
    engine.delete("parcel", ids[1])
    work_off(engine)
    assert bulk.get().data["verdicts"] == {"taken": 1, "refused": 2, "gone": 1, "changed": 0, "failed": 0}
    why = {row.item.id: row.verdict.why for row in bulk.rows()}
    assert "weight" in why["heavy"]
    assert "suspended" in why[ids[0]]
    bulk.run("ann")
    work_off(engine)
    assert bulk.get().data["outcomes"] == {"done": 1, "refused": 2, "gone": 1, "changed": 0, "failed": 0}
    assert words(bulk, "outcome") == {"done": 1, "refused": 2, "gone": 1}
    assert "weight" in next(row.outcome.why for row in bulk.rows() if row.item.id == "heavy")


def test_who_enters_the_state_later_is_not_touched(engine):
    parcels(engine, 5)
    bulk = previewed(engine)
    engine.create("parcel", "late")
    bulk.run("ann")
    work_off(engine)
    assert engine.get("parcel", "late").state == "open"
    assert states(engine) == {"open": 1, "sent": 5}


def test_who_enters_between_the_order_and_the_search_is_not_touched(engine):
    parcels(engine, 2)
    bulk = Bulk.start(engine, order())
    while engine.live("parcel").now <= bulk.get().created:
        pass
    engine.create("parcel", "late")
    work_off(engine)
    assert bulk.get().data["found"] == 2


def test_what_an_indexed_field_finds_is_frozen_as_it_was(engine):
    engine.publish(PARCEL | {"index": ["weight"]})
    for number in range(250):
        engine.create("parcel", f"q{number}", {"weight": number % 5})
    bulk = Bulk.start(engine, order(filter={"where": {"weight": {"ge": 1, "lt": 3}}}))
    while engine.live("parcel").now <= bulk.get().created:
        pass
    engine.create("parcel", "late", {"weight": 2})
    work_off(engine)
    bulk.run("ann")
    work_off(engine)
    assert bulk.get().data["outcomes"]["done"] == 100
    assert states(engine) == {"open": 151, "sent": 100}


def test_only_unchanged_ones_leaves_out_what_has_moved_since(engine):
    ids = parcels(engine, 4)
    bulk = Bulk.start(engine, order(unchanged=True))
    step(engine, "collect")
    fire_all(engine, ids[:1], "label")
    work_off(engine)
    assert bulk.get().data["verdicts"]["changed"] == 1
    fire_all(engine, ids[1:2], "label")
    bulk.run("ann")
    work_off(engine)
    assert bulk.get().data["outcomes"] == {"done": 2, "changed": 2, "refused": 0, "gone": 0, "failed": 0}
    assert states(engine) == {"open": 2, "sent": 2}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"action": "force", "states": ("lost",)}, {"lost": 3}),
        ({"action": "reset"}, {"open": 3}),
        ({"action": "delete"}, {}),
    ],
)
def test_a_repair_is_made_on_each(engine, given, left):
    parcels(engine, 3)
    bulk = finished(engine, event="", **given)
    assert bulk.get().data["outcomes"]["done"] == 3
    assert states(engine) == left


def test_all_are_suspended_and_resumed(engine):
    ids = parcels(engine, 3)
    finished(engine, action="suspend")
    assert all(found.suspended for found in engine.get_many("parcel", ids))
    finished(engine, action="resume")
    assert not any(found.suspended for found in engine.get_many("parcel", ids))


def test_a_state_that_there_is_none_of_is_told_in_the_dry_run(engine):
    parcels(engine, 2)
    bulk = previewed(engine, action="force", states=("nowhere",))
    assert [row.verdict.why for row in bulk.rows()] == ["the definition has no state 'nowhere'"] * 2


def test_dead_jobs_are_tried_again_and_open_ones_skipped(engine):
    doing = errand()
    del doing["states"]["doing"]["invoke"]["onError"]
    engine.publish(doing)
    for number in range(130):
        engine.create("errand", f"e{number}")
    for job in [job for _ in range(2) for job in engine.take("errand", "errands", "w", count=100)]:
        engine.fail(job, "no", retry=False)
    about = {"machine": "errand", "invoke": "doing", "filter": {"state": "doing"}}
    assert finished(engine, action="retry", **about).get().data["outcomes"]["done"] == 130
    assert places(engine) == {"ready": 130}
    assert previewed(engine, action="retry", **about).get().data["verdicts"]["refused"] == 130
    finished(engine, action="skip", **about)
    assert engine.counts("errand")["done"] == 130


def test_pausing_keeps_what_is_left_for_later(engine):
    parcels(engine, 250)
    bulk = previewed(engine)
    bulk.run("ann")
    step(engine, "act")
    bulk.pause("bob")
    work_off(engine)
    assert (bulk.get().state, states(engine)) == ("paused", {"open": 150, "sent": 100})
    bulk.resume("bob")
    work_off(engine)
    assert (bulk.get().state, states(engine)) == ("done", {"sent": 250})


def test_stopping_leaves_the_rest_untouched_for_good(engine):
    parcels(engine, 150)
    bulk = previewed(engine)
    bulk.run("ann")
    step(engine, "act")
    bulk.stop("bob")
    work_off(engine)
    assert (bulk.get().state, states(engine)) == ("stopped", {"open": 50, "sent": 100})
    assert words(bulk, "outcome") == {"done": 100, "none": 50}
    with pytest.raises(NotNow, match="stopped: cannot resume"):
        bulk.resume("ann")


def test_what_failed_is_done_again_by_a_bulk_of_its_own(engine):
    parcels(engine, 120)
    engine.create("parcel", "heavy", {"weight": 50})
    first = finished(engine)
    assert first.get().data["outcomes"]["refused"] == 1
    engine.force("parcel", "heavy", "open", data={"weight": 1}, actor="ann", reason="weighed anew")
    second = first.again("bob", "weighed anew")
    work_off(engine)
    assert [row.item.id for row in second.rows()] == ["heavy"]
    second.run("bob")
    work_off(engine)
    assert states(engine) == {"sent": 121}
    assert engine.history("parcel", "heavy")[0].actor == "bob"


def test_a_rate_is_kept_by_waiting_between_turns(engine):
    parcels(engine, 25)
    bulk = previewed(engine, rate=10)
    bulk.run("ann")
    step(engine, "act")
    found = bulk.get()
    assert (found.data["tried"], found.data["rest"]) == (10, 1000)
    (job,) = (engine.job(BULK, id) for id in found.jobs)
    assert (job.place, job.due - job.created) == ("delayed", 1000)
    engine.tick(BULK, now=job.due)
    step(engine, "act")
    assert bulk.get().data["tried"] == 20


def test_nothing_found_is_previewed_and_run_all_the_same(engine):
    parcels(engine, 0)
    assert finished(engine).get().state == "done"


def test_said_twice_it_is_one_bulk_and_runs_once(engine):
    ids = parcels(engine, 3)
    for _ in range(2):
        bulk = Bulk.start(engine, order(), id="same")
    work_off(engine)
    bulk.run("ann")
    bulk.run("ann")
    work_off(engine)
    assert sent(engine, ids) == {1: 3}
    assert sum(engine.counts(BULK).values()) == 1


def test_it_is_removed_with_all_that_belongs_to_it(engine, prefix):
    parcels(engine, 3)
    bulk = finished(engine)
    bulk.remove("ann")
    work_off(engine)
    with pytest.raises(errors.UnknownInstance):
        bulk.get()
    assert [key for key in engine.client.scan_iter(f"{prefix}*") if ":bk:" in key] == []


@for_each(
    "given",
    [
        {"action": "explode"},
        {"reason": "  "},
        {"reason": "x" * 901},
        {"event": "no such name"},
        {"action": "force"},
        {"action": "retry"},
        {"filter": {"state": "nowhere"}},
        {"filter": {"colour": "red"}},
        {"rate": -1},
        {"machine": BULK},
        {"payload": {"by": float("nan")}},
    ],
)
def test_an_order_that_makes_no_sense_makes_no_bulk(engine, given):
    engine.publish(PARCEL)
    with pytest.raises(errors.BadInput):
        Bulk.start(engine, order(**given))
    assert BULK not in engine.machines()


def test_a_bulk_on_a_machine_that_is_not_there(engine):
    with pytest.raises(errors.UnknownMachine):
        Bulk.start(engine, Order("nothing", "delete", "ann", "a test"))


def test_an_instance_made_by_hand_moves_nothing(engine):
    """The right to create instances and to fire events is not the right to have others moved."""
    parcels(engine, 2)
    builtin_machines.publish(engine, BULK)
    engine.create(BULK, "forged", order().facts())
    assert "not found, or expired" in step_failing(engine, "collect")
    assert states(engine) == {"open": 2}
    bulk = previewed(engine)
    engine.fire(BULK, bulk.id, "run")
    assert "run it from its page" in step_failing(engine, "act")
    assert states(engine) == {"open": 2}


def test_a_pause_takes_the_leave_to_run_back(engine):
    parcels(engine, 150)
    bulk = previewed(engine)
    bulk.run("ann")
    step(engine, "act")
    bulk.pause("ann")
    engine.fire(BULK, bulk.id, "resume")
    step_failing(engine, "act")
    assert states(engine) == {"open": 50, "sent": 100}
    assert not Store(engine, bulk.id).is_released(bulk.get().data["selection"])


def test_a_machine_in_several_partitions(redis_url, prefix):
    spread = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    with closing(spread.client):
        parcels(spread, 130)
        bulk = finished(spread)
        assert bulk.get().data["outcomes"]["done"] == 130
        assert sorted(row.item.id for page in bulk.pages() for row in page) == sorted(f"p{n}" for n in range(130))


PROGRAM = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("django", "channels", "dashboard"):
            raise ImportError(f"{name} is not there")
sys.meta_path.insert(0, Missing())
from machines.instances.bulks import Bulk, Order
from machines.engine import Engine
engine = Engine.from_url(sys.argv[1], prefix=sys.argv[2])
order = Order("parcel", "fire", "ann", "a test", event="send", payload={"by": "ann"})
print(Bulk.start(engine, order, id="b1").get().state)
"""


def test_a_bulk_is_started_without_django(engine, redis_url, prefix):
    parcels(engine, 1)
    command = [sys.executable, "-c", PROGRAM, redis_url, prefix]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("collecting", 0), done.stderr
    assert Bulk(engine, "b1").order().payload == {"by": "ann"}


def test_what_was_ordered_first_is_what_is_done(engine):
    parcels(engine, 1)
    first = Bulk.start(engine, order(action="suspend", event=""), id="b1")
    Bulk.start(engine, order(action="delete", event=""), id="b1")
    assert (first.order().action, first.get().data["action"]) == ("suspend", "suspend")
