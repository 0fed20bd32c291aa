"""What takes a second person takes one in the very call that commits, and what is done is what was approved."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from machines.approvals import actions as approvals
from machines.catalog import publishing
from machines.catalog.errors import ApprovalNeeded
from machines.engine import BadInput, Engine, Refused
from machines.instances import actions as instances
from machines.instances.bulks import Order
from machines.instances.bulks import actions as bulks
from machines.jobs import actions as jobs
from machines.jobs import queue_actions as queues
from machines.models import Approval, AuditEntry
from machines.people.actor import Actor
from machines.worker.registry import discover
from tests.engine.dumps import unchanged
from tests.instances.bulks.builders import step, work_off
from tests.instances.test_doors import browser
from tests.security.between import Between

from .test_permitted_transitions import EVEN, ODD, WHY, flat, published

TWO = {"approval": ["fire:refund"]}
SHUT = flat({"target": "Large", "guard": "now % 2 == 1"}, **TWO)
FORKED = flat({"target": "Small", "guard": "now % 2 == 0"}, {"target": "Large"}, **TWO)
WARNING = "The event would now take a different transition than the requested"
REPAIRS = ("force", "edit", "reset", "retry", "skip", "cancel", "suspend", "resume", "delete")
ASKED: dict[str, dict[str, Any]] = {
    "force": {"state": ["Done"]},
    "edit": {"changes": {"n": 2}},
    "retry": {"invoke": "Work"},
    "cancel": {"invoke": "Work"},
    "skip": {"invoke": "Work", "result": 1},
}


def working(*asks: str) -> dict[str, Any]:
    """It waits for a job that is delayed."""
    work = {"src": "work", "delay": "1h", "onDone": "Done"}
    states = {"Work": {"invoke": work}, "Done": {}}
    return {"id": "order", "initial": "Work", "context": {"n": 1}, "states": states, "approval": list(asks)}


def remade(url: str, prefix: str, definition: dict[str, Any], *, held: bool = False) -> Any:
    """Another connection puts an instance of another version under the same name."""

    def meanwhile() -> None:
        other = Engine.from_url(url, prefix=prefix)
        other.publish(definition)
        other.delete("order", "o-1")
        other.create("order", "o-1")
        if held:
            other.suspend("order", "o-1", actor="other", reason=WHY)

    return meanwhile


def asked(actor: Actor, event: str = "refund") -> Approval:
    with pytest.raises(ApprovalNeeded) as needed:
        instances.fire(actor, "order", "o-1", event, reason=WHY)
    return approvals.ask(actor, needed.value)


def page_of(actor: Actor, request: Approval, between: Between, now: int) -> str:
    between.clock["sb_explain"] = now
    return browser(actor.user).get(reverse("signalbox:approval", args=[request.pk])).content.decode()


def test_an_event_that_a_look_found_refused_is_not_taken_alone_either(engine, actor, between):
    published(SHUT, engine)
    between.clock |= {"sb_explain": EVEN, "sb_fire": ODD}
    ann = actor("ann", "view", "fire")
    with unchanged(engine), pytest.raises(ApprovalNeeded) as needed:
        instances.fire(ann, "order", "o-1", "refund", reason=WHY)
    assert (needed.value.code, needed.value.action, needed.value.expect) == ("SB435", "fire:refund", 1)
    assert needed.value.asked == {"event": "refund", "payload": {}, "definition": 1, "transitions": ["t1"]}
    assert not AuditEntry.objects.filter(action="fire").exists()
    between.clock["sb_fire"] = EVEN
    with pytest.raises(Refused):
        instances.fire(ann, "order", "o-1", "refund", reason=WHY)


def test_an_instance_that_is_made_anew_in_between_asks_by_its_own_definition(engine, actor, between, redis_url, prefix):
    published(flat({"target": "Small"}), engine)
    between.before["sb_fire"] = remade(redis_url, prefix, flat({"target": "Large"}, **TWO))
    with pytest.raises(ApprovalNeeded):
        instances.fire(actor("ann", "view", "fire"), "order", "o-1", "refund", reason=WHY)
    assert engine.get("order", "o-1").state == "Open"


@pytest.mark.parametrize("name", REPAIRS)
def test_so_does_every_repair(engine, actor, between, redis_url, prefix, name):
    published(working(), engine)
    held = name == "resume"
    if held:
        engine.suspend("order", "o-1", actor="test", reason=WHY)
    function = f"sb_{name}" if name not in ("retry", "skip", "cancel") else "sb_unblock"
    before = ("sb_delete", "sb_suspend") if name in ("delete", "suspend") else ()
    change = remade(redis_url, prefix, working(name), held=held)
    between.before[function] = (lambda: (between.before.clear(), change())) if before else change
    with pytest.raises(ApprovalNeeded) as needed:
        instances.repair(actor("ann"), name, "order", "o-1", reason=WHY, **ASKED.get(name, {}))
    assert (needed.value.action, needed.value.asked) == (name, ASKED.get(name, {}))
    now = engine.get("order", "o-1")
    assert (now.revision, now.state, now.data, len(now.jobs)) == (2 if held else 1, "Work", {"n": 1}, 1)


def test_what_was_approved_is_done_and_nothing_else(engine, actor, between):
    published(FORKED, engine)
    ann, bob = actor("ann", "view", "fire"), actor("bob", "view", "fire")
    between.clock["sb_fire"] = EVEN
    request = asked(ann)
    assert request.asked["transitions"] == ["t1"]
    assert WARNING not in page_of(bob, request, between, EVEN)
    assert WARNING in page_of(bob, request, between, ODD)
    between.clock["sb_fire"] = ODD
    after = approvals.approve(bob, request.pk)
    assert (after.state, after.code, engine.get("order", "o-1").revision) == ("failed", "SB435", 1)
    assert "would take t2 of version 1 now: that is not what was approved (t1)" in after.outcome
    entry = AuditEntry.objects.get(action="fire")
    assert (entry.actor, entry.outcome, entry.detail["approved_by"]) == ("ann", "refused", "bob")
    again = asked(ann)
    assert again.asked["transitions"] == ["t2"]
    assert approvals.approve(bob, again.pk).state == "done"
    assert engine.get("order", "o-1").state == "Large"


def test_an_approval_does_not_reach_another_definition_under_the_same_name(engine, actor, between, redis_url, prefix):
    published(FORKED, engine)
    between.clock["sb_fire"] = EVEN
    request = asked(actor("ann", "view", "fire"))
    remade(redis_url, prefix, flat({"target": "Large"}, {"target": "Small"}, **TWO))()
    after = approvals.approve(actor("bob", "view", "fire"), request.pk)
    assert (after.state, after.code, engine.get("order", "o-1").state) == ("failed", "SB435", "Open")


def test_the_groups_of_who_asked_hold_when_it_is_done(engine, actor, between):
    published(
        flat({"target": "Small", "guard": "now % 2 == 0"}, {"target": "Large", "allow": ["treasury"]}, **TWO), engine
    )
    between.clock["sb_fire"] = EVEN
    request = asked(actor("ann", "view", "fire"))
    Approval.objects.filter(pk=request.pk).update(asked={"event": "refund", "payload": {}})  # filed by an older release
    between.clock["sb_fire"] = ODD
    after = approvals.approve(actor("bob", "view", "fire", group="treasury"), request.pk)
    assert (after.state, after.code, engine.get("order", "o-1").state) == ("failed", "SB433", "Open")


def test_a_request_of_an_older_release_names_no_transition_and_is_done(engine, actor, between):
    published(FORKED, engine)
    request = asked(actor("ann", "view", "fire"))
    Approval.objects.filter(pk=request.pk).update(asked={"event": "refund", "payload": {}})
    assert approvals.approve(actor("bob", "view", "fire"), request.pk).state == "done"


@pytest.mark.parametrize("action", ["fire", "delete", "edit", "suspend"])
def test_a_bulk_that_nobody_approved_moves_nothing_that_asks_for_it_meanwhile(engine, actor, redis_url, prefix, action):
    discover()
    published(flat({"target": "Small"}, context={"n": 1}), engine)
    sue = actor("sue", "view", "fire", "operate")
    what: dict[str, Any] = {"fire": {"event": "refund"}, "edit": {"changes": {"n": 2}}}.get(action, {})
    made = bulks.start(sue, Order("order", action, sue.name, WHY, {"state": "Open"}, **what))
    work_off(engine)
    bulks.run(sue, made.id)
    asks = "fire:refund" if action == "fire" else action
    remade(redis_url, prefix, flat({"target": "Small"}, context={"n": 1}, approval=[asks]))()
    step(engine, "act")
    (row,) = made.rows()
    assert (row.outcome.word, "SB435" in row.outcome.why) == ("refused", True)
    assert (engine.get("order", "o-1").revision, engine.get("order", "o-1").data) == (1, {"n": 1})


@pytest.mark.parametrize("action", ["fire", "delete", "edit", "suspend"])
def test_a_bulk_that_was_approved_moves_them_at_once(engine, actor, action):
    discover()
    asks = "fire:refund" if action == "fire" else action
    published(flat({"target": "Small"}, context={"n": 1}, approval=[asks]), engine)
    sue = actor("sue", "view", "fire", "operate")
    what: dict[str, Any] = {"fire": {"event": "refund"}, "edit": {"changes": {"n": 2}}}.get(action, {})
    made = bulks.start(sue, Order("order", action, sue.name, WHY, {"state": "Open"}, **what))
    work_off(engine)
    with pytest.raises(ApprovalNeeded) as needed:
        bulks.run(sue, made.id)
    approvals.approve(actor("bob", "view", "fire", "operate"), approvals.ask(sue, needed.value).pk)
    work_off(engine)
    assert made.rows()[0].outcome.word == "done"


def two_versions(engine, **first):
    """A machine in two versions, the plan to the second, and one instance of the first."""
    published(flat({"target": "Small"}, context={"n": 1}, **first), engine)
    published(flat({"target": "Small"}, context={"n": 2}), engine, "o-2")
    return engine.plan("order", 2).as_dict()


def test_a_migration_runs_once_a_second_person_approves(engine, actor):
    discover()
    plan = two_versions(engine, approval=["migrate"])
    sue = actor("sue", "view", "operate")
    made = bulks.start(sue, Order("order", "migrate", sue.name, WHY, plan=plan))
    work_off(engine)
    with pytest.raises(ApprovalNeeded) as needed:
        bulks.run(sue, made.id)
    assert engine.get("order", "o-1").version == 1
    approvals.approve(actor("bob", "view", "operate"), approvals.ask(sue, needed.value).pk)
    work_off(engine)
    assert made.rows()[0].outcome.word == "done"
    assert engine.get("order", "o-1").version == 2


def test_a_migration_that_nobody_approved_moves_nothing_that_asks_for_it_meanwhile(engine, actor):
    discover()
    plan = two_versions(engine)
    sue = actor("sue", "view", "operate")
    made = bulks.start(sue, Order("order", "migrate", sue.name, WHY, plan=plan))
    work_off(engine)
    bulks.run(sue, made.id)
    engine.publish(flat({"target": "Small"}, context={"n": 3}, approval=["migrate"]))  # by a script, into Redis alone
    step(engine, "act")
    (row,) = made.rows()
    assert (row.outcome.word, "SB435" in row.outcome.why) == ("refused", True)
    assert engine.get("order", "o-1").version == 1


ACTIONS = {
    "withdraw": lambda actor, job: jobs.withdraw(actor, "order", job, reason=WHY),
    "move": lambda actor, job: jobs.move(actor, "order", job, reason=WHY),
    "move all": lambda actor, job: queues.move(actor, "order", "work", reason=WHY),
    "purge": lambda actor, job: queues.purge(actor, "order", "work", reason=WHY, place="delayed", expect=1),
    "redrive": lambda actor, job: jobs.redrive(actor, "order", job, reason=WHY),
    "redrive all": lambda actor, job: queues.redrive(actor, "order", "work", reason=WHY),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_actions_on_jobs_do_nothing_of_it_to_a_version_that_the_site_has_not_read_yet(engine, actor, name):
    publishing.publish(working())
    engine.publish(working("retry", "cancel"))  # by a script, straight into Redis
    engine.create("order", "o-1")
    (job,) = engine.get("order", "o-1").jobs
    if "redrive" in name:
        engine.move_now("order", "work", job, actor="test", reason=WHY)
        (taken,) = engine.take("order", "work", "w")
        engine.fail(taken, "no", retry=False)
    place = engine.job("order", job).place
    if name in ("move all", "redrive all"):
        assert ACTIONS[name](actor("ann"), job) == 0
    else:
        with pytest.raises(BadInput, match="needs approval") as caught:
            ACTIONS[name](actor("ann"), job)
        assert caught.value.code == "SB435"
    assert (engine.job("order", job).place, engine.get("order", "o-1").revision) == (place, 1 + ("redrive" in name) * 0)
