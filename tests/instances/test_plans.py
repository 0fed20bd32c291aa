"""Stored plans: who may, the dry run, the move and its way back, and a second person for exactly this one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from machines.approvals import actions as approvals
from machines.audit.redaction import MASK
from machines.catalog import publishing
from machines.catalog.errors import ApprovalNeeded, NotMigrated, PlanInUse
from machines.catalog.versions import comparison, drafts
from machines.engine import BadInput, Engine
from machines.engine.errors import PlanError
from machines.instances import plans
from machines.instances.bulks import Bulk
from machines.instances.bulks import actions as bulks
from machines.models import AuditEntry, StoredPlan
from machines.people.errors import Forbidden
from tests.configuration import configure
from tests.instances.bulks.builders import work_off
from tests.people.orders import ORDER

WHY = "charges are a state of their own"
STATES = {**ORDER["states"], "Sent": ORDER["states"]["Shipped"]}
STATES.pop("Shipped")
STATES["Open"] = {"on": {**ORDER["states"]["Open"]["on"], "ship": "Sent"}}
SECOND = ORDER | {"states": STATES}
MAPPED = {"Shipped": "Sent"}


@pytest.fixture
def orders(order: Engine) -> Engine:
    """Four orders of version 1, one of them shipped; and version 2."""
    for number in range(2, 5):
        order.create("order", f"o-{number}", {"card": f"4711-{number}"})
    order.fire("order", "o-4", "ship")
    publishing.publish(SECOND)
    return order


def stored(actor: Any, **terms: Any) -> StoredPlan:
    plan = plans.make(actor, "order", 2, **{"states": MAPPED} | terms)
    return plans.store(actor, plan, note="why not")


def versions(engine: Engine) -> list[int]:
    return [engine.get("order", f"o-{number}").version for number in range(1, 5)]


def entries() -> list[tuple[str, str, str]]:
    found = AuditEntry.objects.filter(machine="order").order_by("id")
    return [(entry.action, entry.target, entry.outcome) for entry in found]


def test_a_plan_is_stored_tried_carried_out_and_taken_back(orders, actor):
    ann = actor("ann", "view", "operate")
    row = stored(ann)
    assert (row.machine, row.to, row.author, row.note) == ("order", 2, "ann", "why not")
    tried = plans.try_out(ann, row.pk)
    assert (tried.dry_run["total"], tried.dry_run["refused"]) == (4, [])
    assert sum(one["count"] for one in tried.dry_run["classes"]) == 4
    assert versions(orders) == [1, 1, 1, 1]
    moved = plans.move(ann, row.pk, reason=WHY)
    work_off(orders)
    assert plans.progress(ann, moved).bulk.state == plans.status(moved) == "previewed"
    assert plans.preview(ann, moved).total == 4
    with pytest.raises(PlanInUse):
        plans.move(ann, row.pk, reason=WHY)
    assert plans.keep_outcomes() == 0
    bulks.run(ann, moved.bulk)
    work_off(orders)
    assert versions(orders) == [2, 2, 2, 2]
    assert orders.get("order", "o-4").state == "Sent"
    assert plans.keep_outcomes() == 1
    assert plans.get(ann, row.pk).outcome["outcomes"]["done"] == 4
    assert plans.status(plans.get(ann, row.pk)) == "done"
    back = plans.move_back(ann, row.pk, reason="the bank does not know it")
    work_off(orders)
    bulks.run(ann, back.back)
    work_off(orders)
    assert versions(orders) == [1, 1, 1, 1]
    assert orders.get("order", "o-4").state == "Shipped"
    assert entries() == [
        ("plan.store", f"plan {row.pk}", "done"),
        ("plan.try", f"plan {row.pk}", "done"),
        ("bulk.start", moved.bulk, "done"),
        ("bulk.start", f"plan {row.pk}", "refused"),
        ("bulk.run", moved.bulk, "done"),
        ("bulk.start", back.back, "done"),
        ("bulk.run", back.back, "done"),
    ]
    begun = AuditEntry.objects.filter(machine="order", action="bulk.start", outcome="done")
    assert [entry.detail["stored_plan"] for entry in begun] == [row.pk, row.pk]


def test_who_may_look_and_who_may_act(orders, actor):
    ann, vera = actor("ann", "view", "operate"), actor("vera", "view", "fire", "publish")
    row = stored(ann)
    plan = plans.make(vera, "order", 2, states=MAPPED)
    assert [found.pk for found in plans.list_plans(vera, "order")] == [row.pk]
    assert plans.get(vera, row.pk).plan_id == plan.id
    for one in (
        lambda: plans.store(vera, plan),
        lambda: plans.try_out(vera, row.pk),
        lambda: plans.move(vera, row.pk, reason=WHY),
        lambda: plans.move_back(vera, row.pk, reason=WHY),
        lambda: comparison.replay(vera, "order", 2),
    ):
        with pytest.raises(Forbidden):
            one()
    stranger = actor("stranger", "fire")
    for one in (lambda: plans.get(stranger, row.pk), lambda: plans.get(stranger, 4711)):
        with pytest.raises(Forbidden) as found:
            one()
        assert found.value.machine == ""


def test_what_does_not_fit_is_not_stored(orders, actor):
    ann = actor("ann")
    with pytest.raises(PlanError):
        plans.make(ann, "order", 2, states={"Shipped": "Nowhere"})
    document = plans.make(ann, "order", 2, states=MAPPED).as_dict()
    with pytest.raises(PlanError):
        plans.read(ann, "order", document | {"unmapped": "keep"})  # the id is of other content
    with pytest.raises(BadInput, match="for the machine"):
        plans.read(ann, "other", document)
    assert plans.read(ann, "order", json.loads(json.dumps(document))).id == document["id"]
    with pytest.raises(NotMigrated):
        plans.move_back(ann, stored(ann).pk, reason=WHY)


@pytest.mark.parametrize("everywhere", [False, True], ids=["definition", "setting"])
def test_a_second_person_approves_this_very_plan(orders, actor, settings, everywhere):
    if everywhere:
        configure(settings, APPROVAL=["migrate"])
    else:
        publishing.publish(SECOND | {"approval": [*ORDER["approval"], "migrate"]})
    ann, bob = actor("ann", "view", "operate"), actor("bob", "view", "operate")
    to = 2 if everywhere else 3
    row = plans.store(ann, plans.make(ann, "order", to, states=MAPPED, from_versions=[1]))
    assert plans.progress(ann, row).needs_second
    row = plans.move(ann, row.pk, reason=WHY)
    work_off(orders)
    with pytest.raises(ApprovalNeeded) as needed:
        bulks.run(ann, row.bulk)
    request = approvals.ask(ann, needed.value)
    assert (request.action, request.right, row.plan_id in request.target) == ("migrate", "operate", True)
    assert approvals.approve(bob, request.pk).state == "done"
    work_off(orders)
    assert versions(orders) == [to] * 4
    assert plans.keep_outcomes() == 1
    kept = plans.get(ann, row.pk)
    assert (kept.approved_by, kept.dry_run["total"], kept.dry_run_at is None) == ("bob", 4, False)
    second = plans.store(ann, plans.make(ann, "order", to, states=MAPPED, from_versions=[1]))
    second = plans.move(ann, second.pk, reason=WHY)
    work_off(orders)
    with pytest.raises(ApprovalNeeded):  # the approval was of the other bulk action
        bulks.run(ann, second.bulk)


def test_people_without_the_right_to_reveal_see_no_values(orders, actor):
    blind, ann = actor("vera", "view", "operate", "publish"), actor("ann")
    row = stored(ann, data={"card": "'4711-0'", "amount": "1 / (amount - 5)"})
    tried = plans.try_out(ann, row.pk)
    assert tried.dry_run["refused"]
    assert all(one["reason"] not in ("", MASK) for one in tried.dry_run["refused"])
    for seen in (plans.get(blind, row.pk), plans.try_out(blind, row.pk)):
        assert {one["reason"] for one in seen.dry_run["refused"]} == {MASK}
        assert {one["reason"] for one in seen.dry_run["classes"]} <= {"", MASK}
        assert {one["code"] for one in seen.dry_run["refused"]} == {one["code"] for one in tried.dry_run["refused"]}
    assert "4711" not in json.dumps(comparison.hide_document(blind, row.plan))
    assert "4711" in json.dumps(comparison.hide_document(ann, row.plan))
    moved = plans.move(ann, row.pk, reason=WHY)
    work_off(orders)
    assert {one.reason for one in plans.preview(blind, moved).refused} == {MASK}
    assert "division" not in str(bulks.rows(blind, moved.bulk))


def test_a_replay_shows_values_to_those_who_may_see_them(orders, actor):
    blind, ann = actor("vera", "view", "operate", "publish"), actor("ann")
    ship = {"target": "Shipped", "actions": {"set": {"amount": "amount + 2"}}}
    open_state = {"on": {**ORDER["states"]["Open"]["on"], "ship": ship}}
    draft = drafts.save(ann, "order", json.dumps(ORDER | {"states": {**ORDER["states"], "Open": open_state}}))
    (found,) = comparison.replay_draft(ann, draft.pk).divergences
    assert (found.expected.data, found.actual.data) == ({"amount": 5}, {"amount": 7})
    (seen,) = comparison.replay_draft(blind, draft.pk).divergences
    assert (seen.expected.data, seen.actual.data) == ({"amount": MASK}, {"amount": MASK})
    assert comparison.replay(blind, "order", 1).divergences == []


def test_a_draft_is_compared_with_what_is_current(orders, actor):
    ann = actor("ann", "view", "publish")
    draft = drafts.save(ann, "order", json.dumps(SECOND | {"description": "another word"}), base=1)
    found = comparison.diff_draft(ann, draft.pk)
    assert (found.a, found.b) == (2, None)
    assert "another word" in found.text
    assert comparison.diff(actor("vera", "view"), "order", 1, 2).changes


def test_a_bulk_action_that_is_gone_is_said_so(orders, actor):
    ann = actor("ann")
    row = plans.move(ann, stored(ann).pk, reason=WHY)
    Bulk(orders, row.bulk).stop("ann")
    Bulk(orders, row.bulk).remove("ann")
    work_off(orders)
    assert plans.progress(ann, row).bulk is None
    assert plans.move(ann, row.pk, reason=WHY).bulk


def test_the_way_back_makes_the_older_version_current_for_those_who_may_publish(orders, actor):
    ann, owen = actor("ann"), actor("owen", "view", "operate")
    row = stored(ann)
    plans.move(ann, row.pk, reason=WHY)
    row.refresh_from_db()
    work_off(orders)
    bulks.run(ann, row.bulk)
    work_off(orders)
    orders.create("order", "born", {"card": "4711"})
    with pytest.raises(Forbidden):
        plans.move_back(owen, row.pk, reason=WHY, make_current=True)
    row.refresh_from_db()
    assert row.back == ""
    back = plans.move_back(ann, row.pk, reason=WHY, make_current=True)
    assert orders.create("order", "later", {"card": "4711"}).version == 1
    work_off(orders)
    bulks.run(ann, back.back)
    work_off(orders)
    bulk = Bulk(orders, back.back)
    assert {word: n for word, n in bulk.get().data["outcomes"].items() if n} == {"done": 4, "kept": 1}
    assert [(row.item.id, row.outcome.word) for row in bulk.rows() if row.outcome.word == "kept"] == [("born", "kept")]
    assert {one.id: one.version for one in orders.find("order").instances} == {
        **dict.fromkeys(("o-1", "o-2", "o-3", "o-4", "later"), 1), "born": 2,
    }  # fmt: skip
    pins = AuditEntry.objects.filter(action="version.pin", outcome="done").values_list("actor", "target", "reason")
    assert list(pins) == [("ann", "v1", WHY)]
