"""Transitions for certain groups: people without one are refused, which is recorded; programs are no people."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from machines.models import AuditEntry
from tests.pages.reading import read

ORDER = {
    "id": "order",
    "initial": "Open",
    "context": {"amount": 5},
    "states": {
        "Open": {
            "on": {
                "refund": [
                    {"target": "Refunded", "guard": "amount < 10"},
                    {"target": "Refunded", "allow": ["treasury", "board"]},
                ],
                "close": {"target": "Closed", "allow": ["treasury"]},
            }
        },
        "Refunded": {"type": "final"},
        "Closed": {"type": "final"},
    },
}
PAGE = "/machines/order/instances/o-1/"


@pytest.fixture
def order(engine, db):
    engine.publish(ORDER)
    return engine.create("order", "o-1")


def fire(client, event, **more):
    return client.post(f"{PAGE}fire/", {"event": event, "expect": "1", "reason": "asked for"} | more)


def member(as_, name, *groups):
    client = as_("operator", name)
    user = get_user_model().objects.get(username=name)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    return client


def test_who_is_in_no_such_group_is_refused_and_that_is_recorded(as_, engine, order):
    client = member(as_, "oscar", "warehouse")
    answer = fire(client, "close")
    assert answer.status_code == 422
    notice = read(answer).one("section", id="refused").text
    assert "Allowed only for members of treasury" in notice
    assert "SB433" in notice
    assert engine.get("order", "o-1").revision == 1
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.outcome, entry.target) == ("oscar", "fire", "refused", "close")
    assert entry.detail["code"] == "SB433"


def test_a_look_ahead_says_it_too(as_, order):
    answer = fire(as_("operator"), "close", check="1")
    assert "Allowed only for members of treasury" in read(answer).text
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("group", ["treasury", "board"])
def test_a_member_of_one_of_them_may(as_, engine, order, group):
    engine.edit("order", "o-1", {"amount": 50}, actor="test", reason="a test")
    assert fire(member(as_, "tina", group), "refund", expect="2").status_code == 302
    assert engine.get("order", "o-1").state == "Refunded"


def test_it_is_asked_of_the_transition_that_would_be_taken(as_, engine, order):
    client = as_("operator")
    assert fire(client, "refund").status_code == 302
    engine.create("order", "o-2", {"amount": 50})
    answer = client.post("/machines/order/instances/o-2/fire/", {"event": "refund", "expect": "1"})
    assert "Allowed only for members of treasury or board" in read(answer).text


def test_programs_are_no_people(engine, order):
    assert engine.fire("order", "o-1", "close").state == "Closed"


def test_the_explanation_says_who_may(engine, order):
    (candidate,) = engine.explain("order", "o-1", "close").candidates
    assert candidate.allow == ["treasury"]
    assert [one.allow for one in engine.explain("order", "o-1", "refund").candidates] == [[], ["treasury", "board"]]


def test_what_is_refused_anyway_says_why_in_the_engines_words(as_, order):
    assert "SB431" in read(fire(as_("operator"), "clsoe")).text


def actions_of(client) -> dict:
    context = client.get(PAGE).context
    return {action.event: action for action in (*context["open_actions"], *context["idle_actions"])}


def test_an_action_for_other_groups_is_shown_as_blocked_with_the_group_that_it_needs(as_, order):
    client = member(as_, "oscar", "warehouse")
    shown = actions_of(client)["close"]
    assert (shown.verdict, shown.routes[0].kind) == ("refused", "denied")
    assert shown.routes[0].why == ["needs the group treasury"]
    answer = client.get(PAGE)
    assert "needs the group treasury" in read(answer).one("section", **{"aria-labelledby": "actions"}).text
    close = answer.context["view"].outline.states[0].transitions[-1].id
    part = answer.context["view"].index["transitions"][close]
    assert not re.search(rf'class="[^"]*possible[^"]*"[^>]*id="{part}"', str(answer.context["drawing"]))


def test_an_action_is_available_to_members_and_to_superusers(as_, order):
    assert actions_of(member(as_, "tess", "treasury"))["close"].verdict == "open"
    client = as_("operator", "root")
    get_user_model().objects.filter(username="root").update(is_superuser=True)
    assert actions_of(client)["close"].verdict == "open"


def test_a_transition_for_others_behind_one_for_all_does_not_block_the_action(as_, order, engine):
    client = member(as_, "oscar", "warehouse")
    refund = actions_of(client)["refund"]
    assert (refund.verdict, [route.kind for route in refund.routes]) == ("open", ["holds", "denied"])
    engine.edit("order", "o-1", {"amount": 50}, actor="t", reason="t")
    assert actions_of(client)["refund"].verdict == "refused"


def test_an_action_with_a_required_payload_is_blocked_for_others_too(as_, engine, db):
    events = {"pay": {"payload": {"sum": {"type": "integer", "required": True}}}}
    states = {"A": {"on": {"pay": {"target": "B", "allow": ["treasury"], "guard": "event.sum > 3"}}}, "B": {}}
    engine.publish({"id": "order", "initial": "A", "events": events, "states": states})
    engine.create("order", "o-1")
    shown = actions_of(member(as_, "oscar", "warehouse"))["pay"]
    assert (shown.verdict, shown.refusal) == ("refused", "Blocked: needs the group treasury.")
    assert actions_of(member(as_, "tess", "treasury"))["pay"].verdict == "depends"
