"""The same rules at every door: pages, admin, API and bulk. What they turn away is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from machines.approvals import actions as approvals
from machines.engine import BadInput, Engine
from machines.instances import actions as instances
from machines.instances.bulks import Bulk, NotNow
from machines.instances.bulks import actions as bulks
from machines.models import Approval, AuditEntry, Machine
from machines.people import tokens
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.permissions import RIGHTS
from machines.worker.registry import discover
from tests.instances.bulks.builders import step, step_failing, work_off

INSTANCE = {"machine": "order", "id": "o-1"}
WHY = "they asked for it"


def by_page(user: Any, event: str) -> int:
    sent = {"event": event, "expect": "1", "reason": WHY}
    return browser(user).post(reverse("signalbox:fire", kwargs=INSTANCE), sent).status_code


def by_admin(user: Any, event: str) -> int:
    number = Machine.objects.get(name="order").pk
    address = f"{reverse('admin:machines_machine_instance', args=[number])}?id=o-1"
    return browser(user).post(address, {"event": event, "expect": "1", "reason": WHY}).status_code


def by_api(user: Any, event: str) -> int:
    _, secret = tokens.make(user, "a test", tuple(RIGHTS))
    body = json.dumps({"event": event, "payload": {}, "reason": WHY})
    headers = {"Authorization": f"Bearer {secret}"}
    address = "/api/v1/machines/order/instances/o-1/events"
    return Client().post(address, body, content_type="application/json", headers=headers).status_code


def browser(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


DOORS: dict[str, Callable[[Any, str], int]] = {"page": by_page, "admin": by_admin, "api": by_api}


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest, order: Engine) -> str:
    return request.param


@pytest.mark.parametrize(
    ("rights", "event", "codes", "code"),
    [
        (("view",), "ship", (403,), {"SB434"}),
        (("view", "fire"), "close", (403, 422), {"SB433"}),
        (("view", "fire"), "back", (409, 422), {"SB430"}),
    ],
    ids=["right", "group", "engine"],
)
def test_what_is_refused_is_recorded_with_who_and_why(order, person, door, rights, event, codes, code):
    status = DOORS[door](person("oscar", *rights), event)
    assert status in codes
    assert order.get("order", "o-1").revision == 1
    (entry,) = AuditEntry.objects.filter(action="fire")
    assert (entry.actor, entry.outcome, entry.machine, entry.instance) == ("oscar", "refused", "order", "o-1")
    assert entry.detail["code"] in code
    assert entry.source.startswith(door)


def test_what_takes_a_second_person_is_filed_and_not_done(order, person, door):
    status = DOORS[door](person("ann", "view", "fire"), "refund")
    assert status in (302, 202)
    assert order.get("order", "o-1").revision == 1
    filed = Approval.objects.get()
    assert (filed.asker, filed.action, filed.expect, filed.reason) == ("ann", "fire:refund", 1, WHY)
    assert [entry.action for entry in AuditEntry.objects.filter(machine="order")] == ["approval.ask"]


def test_a_superuser_asks_as_well(order, person, door):
    DOORS[door](person("root", boss=True), "refund")
    assert Approval.objects.get().asker == "root"
    assert order.get("order", "o-1").revision == 1


def test_what_no_rule_is_about_is_done(order, person, door):
    assert DOORS[door](person("oscar", "view", "fire"), "ship") in (302, 200)
    assert order.get("order", "o-1").state == "Shipped"
    assert AuditEntry.objects.get(action="fire").outcome == "done"


REPAIRS = ("force", "edit", "reset", "retry", "skip", "cancel", "suspend", "resume", "delete")


@pytest.mark.parametrize("name", REPAIRS)
def test_each_repair_takes_its_right_and_who_tries_without_is_recorded(order, person, name):
    client = browser(person("oscar", "view", "fire"))
    address = reverse(f"signalbox:{name}", kwargs=INSTANCE)
    assert client.get(address).status_code == 403
    assert not AuditEntry.objects.filter(action=name).exists()
    assert client.post(address, {"reason": WHY, "expect": "1"}).status_code == 403
    entry = AuditEntry.objects.get(action=name)
    assert (entry.actor, entry.outcome, entry.instance, entry.reason) == ("oscar", "refused", "o-1", WHY)
    assert entry.detail["code"] == "SB434"
    assert order.get("order", "o-1").revision == 1


ACTIONS = [
    ("create", {"machine": "order"}, "create"),
    ("queue-pause", {"machine": "order", "queue": "x"}, "queue.pause"),
    ("queue-purge", {"machine": "order", "queue": "x"}, "queue.purge"),
    ("job-withdraw", {"machine": "order", "id": "0-1"}, "job.withdraw"),
    ("direct", {"worker": "w"}, "worker.quiet"),
    ("bulk-new", {"machine": "order"}, "bulk.start"),
    ("bulk-run", {"id": "b"}, "bulk.run"),
    ("bulk-rate", {"id": "b"}, "bulk.rate"),
    ("sm-force", {"key": "k"}, "force"),
]


@pytest.mark.parametrize(("name", "arguments", "action"), ACTIONS, ids=[name for name, *_ in ACTIONS])
def test_every_other_action_records_who_may_not_take_it(order, person, name, arguments, action):
    client = browser(person("vera", "view"))
    assert client.post(reverse(f"signalbox:{name}", kwargs=arguments), {"reason": WHY}).status_code == 403
    entry = AuditEntry.objects.get(action=action)
    assert (entry.actor, entry.outcome, entry.reason) == ("vera", "refused", WHY)


def bulk(user: Any, **what: str) -> str:
    """The id of a bulk on all that is open, asked already."""
    address = f"{reverse('signalbox:bulk-new', args=['order'])}?" + "&".join(
        f"{name}={text}" for name, text in what.items()
    )
    answer = browser(user).post(address, {"reason": WHY, "key": "k"})
    assert answer.status_code == 302, answer.content
    return answer.url.strip("/").split("/")[1]


def test_a_bulk_moves_only_what_the_groups_of_its_person_may(order, person):
    discover()
    id = bulk(person("sue", "view", "fire", "operate"), state="Open", do="fire", event="close")
    work_off(order)
    (row,) = Bulk(order, id).rows()
    assert (row.verdict.word, "SB433" in row.verdict.why) == ("refused", True)
    Bulk(order, id).run("sue")
    work_off(order)
    assert Bulk(order, id).rows()[0].outcome.word == "refused"
    assert order.get("order", "o-1").state == "Open"
    of_treasury = bulk(
        person("tina", "view", "fire", "operate", group="treasury"), state="Open", do="fire", event="close"
    )
    work_off(order)
    Bulk(order, of_treasury).run("tina")
    work_off(order)
    assert order.get("order", "o-1").state == "Closed"


def test_a_bulk_runs_once_a_second_person_approves(order, person):
    discover()
    sue, ann = person("sue", "view", "fire", "operate"), person("ann", "view", "fire", "operate")
    id = bulk(sue, state="Open", do="delete")
    work_off(order)
    answer = browser(sue).post(reverse("signalbox:bulk-run", args=[id]))
    filed = Approval.objects.get()
    assert (answer.url, filed.bulk, filed.action) == (reverse("signalbox:approval", args=[filed.pk]), id, "delete")
    assert Bulk(order, id).get().state == "previewed"
    assert "Request approval" not in browser(sue).get(reverse("signalbox:bulk", args=[id])).content.decode()
    browser(ann).post(reverse("signalbox:approval-approve", args=[filed.pk]))
    work_off(order)
    filed.refresh_from_db()
    assert (filed.state, filed.decider) == ("done", "ann")
    assert order.counts("order")["Open"] == 0
    (entry,) = AuditEntry.objects.filter(action="bulk.run")
    assert (entry.actor, entry.detail["approved_by"]) == ("sue", "ann")


@pytest.mark.parametrize("rights", [("view", "operate"), ("view", "fire")])
def test_who_approves_a_bulk_of_events_may_fire_them_and_operate(order, person, rights):
    discover()
    sue, odd = person("sue", "view", "fire", "operate"), person("odd", *rights)
    id = bulk(sue, state="Open", do="fire", event="refund")
    work_off(order)
    browser(sue).post(reverse("signalbox:bulk-run", args=[id]))
    filed = Approval.objects.get()
    assert (filed.bulk, filed.action, filed.right) == (id, "fire:refund", "operate")
    with pytest.raises(Forbidden) as refused:
        approvals.approve(Actor(odd, "test"), filed.pk)
    assert {refused.value.right, *rights} == {"view", "fire", "operate"}
    work_off(order)
    filed.refresh_from_db()
    assert (filed.state, order.get("order", "o-1").state) == ("open", "Open")
    approvals.approve(Actor(person("ann", "view", "fire", "operate"), "test"), filed.pk)
    work_off(order)
    assert order.get("order", "o-1").state == "Refunded"


@pytest.mark.parametrize(("state", "action"), [("paused", "resume"), ("failed", "retry")])
def test_no_way_around_the_second_person_leads_through_the_machine_of_the_bulk(order, person, state, action):
    discover()
    sue, ann = person("sue", "view", "fire", "operate"), person("ann", "view", "fire", "operate")
    id = bulk(sue, state="Open", do="delete")
    work_off(order)
    order.edit("bulk", id, {"stage": "running"}, actor="sue", reason=WHY)
    order.force("bulk", id, state, actor="sue", reason=WHY)
    answer = browser(sue).post(reverse(f"signalbox:bulk-{action}", args=[id]))
    work_off(order)
    filed = Approval.objects.get()
    assert (answer.url, filed.bulk) == (reverse("signalbox:approval", args=[filed.pk]), id)
    assert (Bulk(order, id).get().state, order.counts("order")["Open"]) == (state, 1)
    browser(ann).post(reverse("signalbox:approval-approve", args=[filed.pk]))
    work_off(order)
    assert order.counts("order")["Open"] == 0


def test_who_approves_a_bulk_approves_what_it_found_then(order, person):
    """Forced back to where it collects, it freezes another selection under the same order."""
    discover()
    sue, ann = person("sue", "view", "fire", "operate"), person("ann", "view", "fire", "operate")
    id = bulk(sue, state="Open", do="delete")
    work_off(order)
    browser(sue).post(reverse("signalbox:bulk-run", args=[id]))
    filed = Approval.objects.get()
    assert filed.expect == Bulk(order, id).get().revision
    assert "would be refused" not in browser(ann).get(reverse("signalbox:approval", args=[filed.pk])).content.decode()
    order.force("bulk", id, "collecting", actor="sue", reason=WHY)
    work_off(order)
    assert "would be refused" in browser(ann).get(reverse("signalbox:approval", args=[filed.pk])).content.decode()
    browser(ann).post(reverse("signalbox:approval-approve", args=[filed.pk]))
    work_off(order)
    filed.refresh_from_db()
    assert (filed.state, filed.code, order.counts("order")["Open"]) == ("failed", "SB440", 1)
    for one in (sue, ann):
        assert (
            "the instance changed" in browser(one).get(reverse("signalbox:approval", args=[filed.pk])).content.decode()
        )
    assert not Bulk(order, id).is_approved()


def test_an_approval_does_not_reach_what_is_frozen_after_it(order, person):
    discover()
    for number in range(5):
        order.create("order", f"n-{number}")
    sue, ann = person("sue", "view", "fire", "operate"), person("ann", "view", "fire", "operate")
    id = bulk(sue, state="Open", do="delete")
    work_off(order)
    bulks.rate(Actor(sue, "test"), id, 1)
    browser(sue).post(reverse("signalbox:bulk-run", args=[id]))
    browser(ann).post(reverse("signalbox:approval-approve", args=[Approval.objects.get().pk]))
    assert step(order, "act") is not None
    made = Bulk(order, id)
    assert made.is_approved()
    order.force("bulk", id, "collecting", actor="sue", reason=WHY)
    work_off(order)
    assert not made.is_approved()
    order.edit("bulk", id, {"rest": 0, "stage": "running"}, actor="sue", reason=WHY)
    order.force("bulk", id, "running", actor="sue", reason=WHY)
    assert "not started by a person with the operate permission" in step_failing(order, "act")
    browser(sue).post(reverse("signalbox:bulk-retry", args=[id]))
    assert Approval.objects.filter(state="open", bulk=id).exists()
    assert order.counts("order")["Open"] == 5


def test_a_bulk_that_is_not_asked_yet_does_not_slip_past_the_second_person(order, person):
    id = bulk(person("sue", "view", "fire", "operate"), state="Open", do="delete")
    with pytest.raises(NotNow):
        bulks.run(Actor(get_user_model().objects.get(username="sue")), id)


def test_the_pace_of_a_bulk_is_changed_while_it_runs(order, person):
    discover()
    for number in range(5):
        order.create("order", f"n-{number}")
    sue = person("sue", "view", "fire", "operate")
    id = bulk(sue, state="Open", do="suspend")
    work_off(order)
    made, pace = Bulk(order, id), reverse("signalbox:bulk-rate", args=[id])
    browser(sue).post(pace, {"rate": "2"})
    made.run("sue")
    assert step(order, "act") is not None
    assert (made.get().data["tried"], made.get().data["rest"]) == (2, 1000)
    browser(sue).post(pace, {"rate": ""})
    order.advance("bulk", now=made.get().entered + 2000)
    work_off(order)
    assert (made.get().state, made.get().data["tried"]) == ("done", 6)
    assert [entry.detail for entry in AuditEntry.objects.filter(action="bulk.rate").order_by("id")] == [
        {"was": 0, "given": 2},
        {"was": 2, "given": 0},
    ]
    assert browser(sue).post(pace, {"rate": "many"}).status_code == 400
    assert "SB480" in browser(sue).post(pace, {"rate": "5"}, follow=True).content.decode()


def test_a_bulk_edits_fields_by_their_types(order, person):
    discover()
    sue = person("sue", "view", "fire", "operate", "reveal")
    address = f"{reverse('signalbox:bulk-new', args=['order'])}?state=Open&do=edit"
    client = browser(sue)
    assert "Change at least one field" in client.post(address, {"reason": WHY}).content.decode()
    both = {"reason": WHY, "data-amount": "7", "unset": "amount"}
    assert "amount has both" in client.post(address, both).content.decode()
    id = client.post(address, {"reason": WHY, "data-amount": "7", "unset": "card"}).url.strip("/").split("/")[1]
    work_off(order)
    Bulk(order, id).run("sue")
    work_off(order)
    assert order.get("order", "o-1").data == {"amount": 7}
    assert Bulk(order, id).order().target == "amount, card"


@pytest.mark.parametrize("name", REPAIRS)
def test_no_repair_is_made_without_a_reason(order, actor, name):
    asked = {"force": {"state": ["Shipped"]}, "edit": {"changes": {"amount": 7}}}.get(name, {})
    asked |= {"invoke": "x"} if name in ("retry", "skip", "cancel") else {}
    with pytest.raises(BadInput) as refused:
        instances.repair(actor("sue"), name, "order", "o-1", reason=" ", **asked)
    assert refused.value.code == "SB404"
    assert order.get("order", "o-1").revision == 1
    assert AuditEntry.objects.get(action=name).outcome == "refused"
