"""The room calls the methods of a row: locked, under their own permission, with who and why."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import transaction
from django.urls import reverse

from machines.engine import BadInput, Conflict, UnknownInstance
from machines.instances import actions as instances
from machines.instances.bulks import Bulk, Order
from machines.instances.bulks import actions as bulks
from machines.integrations.attached import calls
from machines.models import AuditEntry
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.mirrors import MethodFailed, MethodRefused
from machines.schedules import InvalidSchedule
from machines.schedules import actions as schedules
from machines.testing.job_runner import JobRunner
from machines.worker.registry import discover


@pytest.fixture
def purchase(mirrored):
    from .store.models import Purchase

    return Purchase.objects.create()


@pytest.fixture
def operator(db):
    """May fire in the room; has no permission of the shop."""
    user = get_user_model().objects.create_user("ann")
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_machine", "fire_machine"]))
    return user


def test_a_person_calls_a_method_and_row_instance_history_and_audit_say_so(admin_user, engine, mirrored, purchase):
    after = instances.fire(
        Actor(admin_user, "page"), mirrored.machine, str(purchase.pk), "assign", {"carrier": "nobody"}, reason="phoned"
    )
    purchase.refresh_from_db()
    assert (purchase.state, purchase.paid) == ("confirmed", False)
    assert (after.state, after.outcome.before) == ("confirmed", ["new"])
    step = engine.history(mirrored.machine, str(purchase.pk))[0]
    assert (step.event, step.actor, step.reason) == ("assign", "admin", "phoned")
    entry = AuditEntry.objects.get(action="fire")
    assert (entry.machine, entry.target, entry.outcome) == (mirrored.machine, "assign", "done")


def test_the_permission_and_the_conditions_of_the_method_decide(operator, admin_user, engine, mirrored, purchase):
    actor, id = Actor(operator, "page"), str(purchase.pk)
    with pytest.raises(MethodRefused, match=r"the permission auth.view_user is missing"):
        instances.fire(actor, mirrored.machine, id, "confirm")
    purchase.paid = False
    purchase.save()
    with pytest.raises(MethodRefused, match="the condition is_paid is not met"):
        instances.fire(Actor(admin_user, "page"), mirrored.machine, id, "confirm")
    with pytest.raises(MethodRefused, match="no user"):
        instances.fire(Actor("cron", "command line"), mirrored.machine, id, "confirm")
    assert engine.get(mirrored.machine, id).state == "new"
    assert calls.find_refusals(mirrored.machine, id, ["assign", "retry"], operator) == {
        "assign": "", "retry": "the row is in new, and retry starts from failed",
    }  # fmt: skip


def test_the_room_still_asks_for_its_own_right(mirrored, purchase):
    nobody = get_user_model().objects.create_user("bob")
    with pytest.raises(Forbidden):
        instances.fire(Actor(nobody, "page"), mirrored.machine, str(purchase.pk), "ship")


def test_a_method_that_raises_is_taken_back_or_goes_to_its_error_state(admin_user, engine, mirrored, purchase):
    actor, id = Actor(admin_user, "page"), str(purchase.pk)
    with pytest.raises(
        MethodFailed, match=r"assign\(\) of store.Purchase raised ValueError: boxes are counted. The row stays in new"
    ):
        instances.fire(actor, mirrored.machine, id, "assign", {"carrier": "ups", "boxes": -1})
    assert engine.get(mirrored.machine, id).revision == 1
    with pytest.raises(MethodFailed, match="no carrier. The row is in failed now"):
        instances.fire(actor, mirrored.machine, id, "ship", {"raises": True})
    purchase.refresh_from_db()
    assert (purchase.state, engine.get(mirrored.machine, id).state) == ("failed", "failed")


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({}, "missing a required argument: 'carrier'"),
        ({"carrier": "ups", "by": "eve"}, "by is who calls"),
        ({"carrier": "ups", "crates": 1}, "unexpected keyword argument 'crates'"),
    ],
)
def test_arguments_that_the_method_does_not_take_are_named(admin_user, mirrored, purchase, payload, said):
    with pytest.raises(BadInput, match=said):
        instances.fire(Actor(admin_user, "page"), mirrored.machine, str(purchase.pk), "assign", payload)


def test_a_revision_that_moved_on_and_a_row_that_is_gone_are_told(admin_user, engine, mirrored, purchase):
    actor, id = Actor(admin_user, "page"), str(purchase.pk)
    purchase.cancel()
    purchase.save()
    with pytest.raises(Conflict):
        instances.fire(actor, mirrored.machine, id, "ship", expect=1)
    type(purchase).objects.filter(pk=purchase.pk).update(state="shipped")
    with pytest.raises(MethodRefused, match="the row is in shipped"):  # the room does not know it yet
        instances.fire(actor, mirrored.machine, id, "ship")
    engine.create(mirrored.machine, "99999")
    with pytest.raises(UnknownInstance):
        instances.fire(actor, mirrored.machine, "99999", "ship")


def test_within_a_transaction_of_the_caller_the_answer_is_the_row(admin_user, engine, mirrored, purchase):
    with transaction.atomic():
        after = instances.fire(Actor(admin_user, "page"), mirrored.machine, str(purchase.pk), "cancel")
        assert (after.state, engine.get(mirrored.machine, str(purchase.pk)).state) == ("canceled", "new")
    assert engine.get(mirrored.machine, str(purchase.pk)).state == "canceled"


def test_a_bulk_action_calls_the_method_of_each_row_for_who_ordered_it(admin_user, engine, mirrored, purchase):
    from .store.models import Purchase

    rows = [purchase, Purchase.objects.create(paid=False), Purchase.objects.create()]
    actor = Actor(admin_user, "page")
    bulk = bulks.start(actor, Order(mirrored.machine, "fire", actor.name, "paid by post", event="confirm"))
    discover()
    run = JobRunner(engine, None).run
    run(["bulk"], None, 20, False)
    assert Bulk(engine, bulk.id).get().data["verdicts"]["refused"] == 1
    bulks.run(actor, bulk.id)
    run(["bulk"], None, 20, False)
    assert [type(row).objects.get(pk=row.pk).state for row in rows] == ["confirmed", "new", "confirmed"]
    step = engine.history(mirrored.machine, str(purchase.pk))[0]
    assert (step.event, step.actor) == ("confirm", "admin")
    assert step.reason.startswith("paid by post [bulk ")


def test_pages_offer_methods_and_call_them(admin_client, engine, mirrored, purchase):
    address = reverse("signalbox:instance", args=[mirrored.machine, str(purchase.pk)])
    page = admin_client.get(address).content.decode()
    assert "Call assign" in page
    assert 'name="payload-boxes"' in page
    assert "Repairs" not in page
    sent = {"event": "assign", "payload-carrier": "ups", "expect": "1", "version": "1", "key": "k-1"}
    refused = admin_client.post(reverse("signalbox:fire", args=[mirrored.machine, str(purchase.pk)]), sent)
    assert refused.status_code == 302, refused.content.decode()[:3000]
    assert engine.get(mirrored.machine, str(purchase.pk)).state == "confirmed"
    sent |= {"event": "confirm", "expect": "2"}
    refused = admin_client.post(reverse("signalbox:fire", args=[mirrored.machine, str(purchase.pk)]), sent)
    assert refused.status_code == 422
    assert "and confirm starts from new" in refused.content.decode()


def test_the_api_calls_a_method_and_explains_a_refusal(admin_client, engine, mirrored, purchase):
    address = f"/api/v1/machines/{mirrored.machine}/instances/{purchase.pk}/events"
    done = admin_client.post(address, {"event": "cancel"}, content_type="application/json")
    assert (done.status_code, done.json()["state"]) == (200, "canceled")
    refused = admin_client.post(address, {"event": "confirm"}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (422, "SB494")
    made = admin_client.post(f"/api/v1/machines/{mirrored.machine}/instances", {}, content_type="application/json")
    assert (made.status_code, "create the row" in made.json()["detail"]) == (400, True)


def test_a_schedule_calls_methods_by_a_search_and_no_event_of_one_instance(admin_user, engine, mirrored, purchase):
    discover()
    actor, filter = Actor(admin_user, "page"), {"state": "new"}
    what = {"machine": mirrored.machine, "event": "confirm"}
    nightly = {"name": "nightly", "when": {"cron": "0 2 * * *"}, "what": what | {"do": "fire_all", "filter": filter}}
    with pytest.raises(InvalidSchedule, match="mirrors rows of a table.*fire_all"):
        schedules.put(actor, nightly | {"what": what | {"do": "fire", "instance": str(purchase.pk)}})
    schedules.put(actor, nightly)
    schedules.run(actor, "nightly", reason="now")
    run = JobRunner(engine, None).run
    run(["schedules", "bulk"], None, 40, False)
    purchase.refresh_from_db()
    assert purchase.state == "confirmed"
    assert engine.history(mirrored.machine, str(purchase.pk))[0].actor == "admin"
