"""A second person: who may be one, what is done once they approve, and what becomes of a request otherwise."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from machines.approvals import actions as approvals
from machines.approvals import queries as approval_queries
from machines.approvals.errors import NotOpen, OwnRequest
from machines.catalog import publishing
from machines.catalog.errors import ApprovalNeeded
from machines.engine import BadInput, Conflict, Refused
from machines.engine.errors import UnknownInstance
from machines.instances import actions as instances
from machines.jobs import actions as jobs
from machines.jobs import queue_actions as queues
from machines.models import Approval, AuditEntry
from machines.people import tokens
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.permissions import EVERYTHING, NOTHING, Scope
from tests.people.orders import ORDER

WHY = "the customer asked"


def asked(actor: Actor, name: str = "fire", **what) -> Approval:
    """A request on o-1: to refund it, or for a repair."""
    try:
        if name == "fire":
            instances.fire(actor, "order", "o-1", "refund", what or None, reason=WHY)
        else:
            instances.repair(actor, name, "order", "o-1", reason=WHY, **what)
    except ApprovalNeeded as needed:
        return approvals.ask(actor, needed)
    raise AssertionError("it was done at once")


def entries() -> list[tuple[str, str, str]]:
    found = AuditEntry.objects.filter(machine="order").order_by("id")
    return [(entry.action, entry.actor, entry.outcome) for entry in found]


def test_it_is_done_as_it_was_asked_for_in_the_name_of_who_asked(order, actor):
    ann, bob = actor("ann", "view", "fire"), actor("bob", "view", "fire")
    request = asked(ann, card="4711-1")
    assert order.get("order", "o-1").state == "Open"
    after = approvals.approve(bob, request.pk, note="seen the letter")
    assert (after.state, after.decider, after.note, after.asked) == ("done", "bob", "seen the letter", {})
    (step,) = order.history("order", "o-1", limit=1)
    assert (step.actor, step.reason, step.payload) == ("ann", f"{WHY} [approved by bob]", {"card": "4711-1"})
    assert entries() == [("approval.ask", "ann", "done"), ("fire", "ann", "done"), ("approval.approve", "bob", "done")]
    assert AuditEntry.objects.get(action="fire").detail["approved_by"] == "bob"


@pytest.mark.parametrize("boss", [False, True], ids=["person", "superuser"])
def test_nobody_decides_what_they_asked_for(order, actor, boss):
    ann = actor("ann", boss=boss)
    request = asked(ann)
    by_token = Actor(ann.user, "another token of hers")
    for decide in (approvals.approve, approvals.decline):
        with pytest.raises(OwnRequest):
            decide(by_token, request.pk, note="why not")
    assert not approval_queries.may_decide(ann, request)
    assert order.get("order", "o-1").revision == 1
    assert entries()[1:] == [("approval.approve", "ann", "refused"), ("approval.decline", "ann", "refused")]


@pytest.mark.parametrize(
    ("name", "what", "rights"), [("fire", {}, ("view",)), ("delete", {}, ("view", "fire"))], ids=["event", "repair"]
)
def test_who_decides_holds_the_right_of_the_action(order, actor, name, what, rights):
    request = asked(actor("ann"), name, **what)
    vera = actor("vera", *rights)
    for decide in (approvals.approve, approvals.decline):
        with pytest.raises(Forbidden):
            decide(vera, request.pk, note="why not")
    request.refresh_from_db()
    assert request.is_open
    assert not approval_queries.may_decide(vera, request)


def test_a_repair_that_is_approved_is_done(order, actor):
    approvals.approve(actor("bob"), asked(actor("ann"), "force", state=["Shipped"], data={"amount": 7}).pk)
    assert order.get("order", "o-1").state == "Shipped"
    request = asked(Actor(actor("eve").user, "test"), "delete")
    assert approvals.approve(actor("dan"), request.pk).outcome == "deleted"
    with pytest.raises(UnknownInstance):
        order.get("order", "o-1")


def test_what_moved_meanwhile_fails_and_says_so(order, actor):
    request = asked(actor("ann"))
    order.fire("order", "o-1", "ship")
    order.fire("order", "o-1", "back")
    after = approvals.approve(actor("bob"), request.pk)
    assert (after.state, after.code, after.asked) == ("failed", Conflict.code, {})
    assert "is at revision 3, not 1" in after.outcome
    assert ("fire", "ann", "refused") in entries()


def test_who_asked_has_to_hold_the_right_still(order, actor):
    ann = actor("ann")
    request = asked(ann)
    ann.user.user_permissions.clear()
    after = approvals.approve(actor("bob"), request.pk)
    assert (after.state, after.code) == ("failed", Forbidden.code)
    gone = asked(Actor(actor("gil").user, "test"))
    type(ann.user).objects.filter(username="gil").update(is_active=False)
    assert approvals.approve(actor("dan"), gone.pk).outcome == "the account gil no longer exists"
    assert order.get("order", "o-1").revision == 1


def test_what_the_engine_would_refuse_nobody_is_asked_about(order, actor):
    ann = actor("ann")
    order.edit("order", "o-1", {"amount": 50}, actor="test", reason="a test")
    order.create("order", "o-2")
    with pytest.raises(Refused):
        instances.fire(ann, "order", "o-1", "refund", reason=WHY)
    with pytest.raises(UnknownInstance):
        instances.repair(ann, "delete", "order", "o-3", reason=WHY)
    with pytest.raises(Conflict):
        instances.repair(ann, "delete", "order", "o-1", reason=WHY, expect=1)
    with pytest.raises(BadInput, match="give a reason"):
        instances.fire(ann, "order", "o-2", "refund", reason=" ")
    assert not Approval.objects.exists()


def test_asked_twice_it_is_one_request(order, actor):
    ann = actor("ann")
    assert asked(ann).pk == asked(ann).pk
    assert asked(Actor(actor("eve").user, "test")).pk != asked(ann).pk
    assert Approval.objects.count() == 2


def test_declining_takes_a_word_and_ends_it(order, actor):
    request, bob = asked(actor("ann"), card="4711-1"), actor("bob")
    with pytest.raises(BadInput, match="a reason is required"):
        approvals.decline(bob, request.pk, note=" ")
    after = approvals.decline(bob, request.pk, note="no letter came")
    assert (after.state, after.note, after.asked) == ("declined", "no letter came", {})
    with pytest.raises(NotOpen, match="is declined"):
        approvals.approve(bob, request.pk)
    assert order.get("order", "o-1").revision == 1


def test_only_who_asked_withdraws(order, actor):
    ann = actor("ann")
    request = asked(ann)
    with pytest.raises(Forbidden):
        approvals.withdraw(actor("bob"), request.pk)
    assert approvals.withdraw(ann, request.pk).state == "withdrawn"
    with pytest.raises(NotOpen):
        approvals.withdraw(ann, request.pk)


def test_after_a_day_it_expires_and_cannot_be_approved(order, actor):
    request, bob = asked(actor("ann"), card="4711-1"), actor("bob")
    assert approval_queries.find_open().count() == 1
    assert [approval_queries.count_open(scope) for scope in (EVERYTHING, NOTHING)] == [1, 0]
    assert approvals.expire(timezone.now() + timedelta(hours=23)) == 0
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert approval_queries.find_open().count() == 0
    assert approval_queries.count_open(EVERYTHING) == 0
    with pytest.raises(NotOpen, match="is expired"):
        approvals.approve(bob, request.pk)
    request.refresh_from_db()
    assert (request.state, request.asked) == ("expired", {})
    assert ("approval.expire", "signalbox", "done") in entries()
    assert approvals.expire() == 0


def test_what_was_cut_off_while_it_was_done_is_told(order, actor):
    request = asked(actor("ann"))
    Approval.objects.update(state="running", decided_at=timezone.now() - timedelta(minutes=6))
    assert approvals.expire() == 1
    request.refresh_from_db()
    assert (request.state, request.word, request.asked) == ("failed", "not known", {})
    assert "the result is unknown" in request.outcome


def test_who_did_it_says_so_though_it_was_given_up_meanwhile(order, actor, monkeypatch):
    request, real = asked(actor("ann")), approvals.perform

    def slowly(*given, **more):
        Approval.objects.update(decided_at=timezone.now() - timedelta(minutes=6))
        assert approvals.expire() == 1
        return real(*given, **more)

    monkeypatch.setattr(approvals, "perform", slowly)
    approvals.approve(actor("bob"), request.pk)
    request.refresh_from_db()
    assert (request.state, request.word, request.outcome) == ("done", "done", "now in Refunded, revision 2")


@pytest.mark.parametrize("rights", [("view", "fire"), ("view", "fire", "reveal")], ids=["masked", "clear"])
def test_what_is_sensitive_is_shown_to_those_alone_who_may_see_it(order, actor, rights):
    request, bob = asked(actor("ann"), card="4711-1"), actor("bob", *rights)
    client = Client()
    client.force_login(bob.user)
    page = client.get(reverse("signalbox:approval", args=[request.pk])).content.decode()
    assert ("4711-1" in page) == ("reveal" in rights)
    assert approval_queries.show_asked(bob, request)["payload"]["card"] == ("4711-1" if "reveal" in rights else "•••")
    told = [str(entry.detail) for entry in AuditEntry.objects.all()]
    assert "4711-1" not in "".join(told)


def test_the_version_an_instance_lives_by_decides(order, actor):
    publishing.publish(ORDER | {"approval": ["fire:ship"]})
    order.create("order", "o-2")
    ann = actor("ann")
    assert instances.fire(ann, "order", "o-2", "refund", reason=WHY).state == "Refunded"
    assert instances.fire(ann, "order", "o-1", "ship", reason=WHY).state == "Shipped"


def test_programs_are_no_people(order):
    assert instances.fire(Actor("batch", "command line"), "order", "o-1", "refund").state == "Refunded"


@pytest.mark.django_db(transaction=True)
def test_however_many_approve_at_the_same_time_it_is_done_once(order, actor):
    request = asked(actor("ann"), "force", state=["Shipped"])
    people = [actor(f"p{number}") for number in range(4)]
    start = Barrier(len(people))

    def approve(one: Actor) -> str:
        start.wait(60)
        try:
            return approvals.approve(one, request.pk).state
        except NotOpen:
            return "too late"
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(people)) as pool:
        results = list(pool.map(approve, people))
    assert sorted(results) == ["done", "too late", "too late", "too late"]
    assert order.get("order", "o-1").revision == 2


PAGE = "/approvals/"


def test_the_list_shows_what_waits_and_what_was_decided(order, actor):
    ann, bob = actor("ann"), actor("bob")
    first, second = asked(ann), asked(ann, "delete")
    approvals.decline(bob, first.pk, note="no")
    client = Client()
    client.force_login(bob.user)
    assert [f'data-approval="{one.pk}"' in client.get(PAGE).content.decode() for one in (first, second)] == [
        False,
        True,
    ]
    decided = client.get(f"{PAGE}?state=decided").content.decode()
    assert [f'data-approval="{one.pk}"' in decided for one in (first, second)] == [True, False]
    assert "Send the event refund" in decided
    assert "Delete instance" in client.get(PAGE).content.decode()
    assert "data-approval" not in client.get(f"{PAGE}?state=&machine=other").content.decode()
    assert client.get(f"{PAGE}?state=odd").status_code == 404
    assert "data-approval" not in client.get(f"{PAGE}?state=&before=1").content.decode()


def test_the_page_of_a_request_has_what_each_may_do(order, actor):
    ann = actor("ann")
    request = asked(ann)
    address = reverse("signalbox:approval", args=[request.pk])
    wanted = {
        ann: ("Withdraw", "Approve and run"),
        actor("bob"): ("Approve and run", "Withdraw"),
        actor("vera", "view"): ("Needs a decision by someone with the permission", "Approve and run"),
    }
    for one, (there, absent) in wanted.items():
        client = Client()
        client.force_login(one.user)
        page = client.get(address).content.decode()
        assert WHY in page
        assert "<h1>Send the event refund" in page
        assert "Refunded" in page  # what it would do now
        assert (there in page, absent in page) == (True, False), one.name


def test_an_instance_says_what_takes_a_second_person_and_what_waits(order, actor):
    ann = actor("ann")
    client = Client()
    client.force_login(ann.user)
    page = client.get("/machines/order/instances/o-1/").content.decode()
    assert "Needs approval" in page
    request = asked(ann)
    page = client.get("/machines/order/instances/o-1/").content.decode()
    assert reverse("signalbox:approval", args=[request.pk]) in page
    assert "Needs approval" in client.get("/machines/order/instances/o-1/delete/").content.decode()


def test_no_action_on_jobs_does_alone_what_takes_a_second_person_on_the_instance(engine, actor):
    invoke = {"id": "charge", "src": "charge", "queue": "cards"}
    publishing.publish(
        {"id": "shop", "initial": "Paying", "approval": ["cancel", "retry"], "states": {"Paying": {"invoke": invoke}}}
    )
    engine.create("shop", "s-1")
    (job,) = engine.jobs("shop", "cards", place="ready")
    sue = actor("sue")
    for action in (jobs.withdraw, jobs.move, jobs.redrive):
        with pytest.raises(BadInput, match="approv"):
            action(sue, "shop", job.id, reason=WHY)
    for action, more in ((queues.purge, {"place": "ready", "expect": 1}), (queues.redrive, {}), (queues.move, {})):
        with pytest.raises(BadInput, match="approv"):
            action(sue, "shop", "cards", reason=WHY, **more)
    assert len(engine.jobs("shop", "cards", place="ready")) == 1
    assert {entry.outcome for entry in AuditEntry.objects.filter(machine="shop", actor="sue")} == {"refused"}


def test_a_token_that_only_looks_withdraws_nothing(order, person):
    sue = person("sue", "view", "fire")
    approval = asked(Actor(sue, "test"))
    looking = Actor(sue, "api", tokens.Reach(frozenset({"view"}), Scope(True)))
    assert not approval_queries.may_withdraw(looking, approval)
    with pytest.raises(Forbidden):
        approvals.withdraw(looking, approval.pk)
    assert approvals.withdraw(Actor(sue, "test"), approval.pk).state == "withdrawn"


def test_what_people_write_is_kept_as_any_database_takes_it(actor, order):
    approval = asked(actor("sue"))
    assert approvals.decline(actor("ann"), approval.pk, note="no\0pe").note == "no\\0pe"


def test_a_request_on_a_machine_that_is_not_visible_says_no_more_than_one_that_is_not_there(actor, order):
    approval, nobody = asked(actor("sue")), actor("nobody", "fire")
    for id in (approval.pk, approval.pk + 1):
        with pytest.raises(Forbidden) as refused:
            approvals.approve(nobody, id)
        assert "order" not in str(refused.value.facts())
    told = AuditEntry.objects.filter(action="approval.approve", actor="nobody")
    assert [(entry.outcome, entry.machine) for entry in told.order_by("id")] == [("refused", "order"), ("refused", "")]


@pytest.mark.parametrize("rights", [("view", "fire"), ("view", "fire", "reveal")], ids=["masked", "clear"])
def test_the_page_shows_the_instance_that_the_request_is_about(order, actor, rights):
    order.edit("order", "o-1", {"card": "4711-2"}, actor="ann", reason=WHY)
    request = asked(actor("ann"))
    client = Client()
    client.force_login(actor("bob", *rights).user)
    page = client.get(reverse("signalbox:approval", args=[request.pk])).content.decode()
    drawing, data = page.partition("data-diagram")[2].partition('aria-labelledby="data"')[::2]
    assert re.findall(r'class="[^"]* current" data-state="(\w+)"', drawing) == ["Open"]
    assert ("4711-2" in data, "•••" in data) == ("reveal" in rights, "reveal" not in rights)
    assert "fire:refund" not in page.partition("<main")[2]
    order.delete("order", "o-1", actor="ann", reason=WHY)
    page = client.get(reverse("signalbox:approval", args=[request.pk])).content.decode()
    assert ("data-diagram" in page, "would be refused now" in page) == (False, True)
