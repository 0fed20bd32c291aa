"""Who approves: members of a group, several of them, in time; by the definition and by the setting."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.contrib.auth.models import Group
from django.db import connections
from django.urls import reverse
from django.utils import timezone

from machines.approvals import actions as approvals
from machines.approvals import queries as approval_queries
from machines.approvals.errors import NotApprover, NotOpen, OwnRequest
from machines.catalog import publishing
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.version_rules import OPERATIONS, find_rule
from machines.catalog.versions import rollouts
from machines.conf.kinds import Unfit
from machines.conf.table import SETTINGS
from machines.engine import BadInput
from machines.engine.definitions.approval_terms import ApprovalTerms
from machines.models import Approval, AuditEntry, Machine
from tests.configuration import configure
from tests.people.orders import ORDER

from .test_approvals import WHY, asked

TERMS = {"fire:refund": {"group": "treasury", "quorum": 2, "expires": "4h"}}


@pytest.fixture
def shop(engine, db):
    publishing.publish(ORDER | {"approvers": TERMS})
    engine.create("order", "o-1")
    return engine


def test_a_group_and_a_quorum_decide_each_once_and_never_who_asked(shop, actor):
    ann = actor("ann", "view", "fire", group="treasury")
    request = asked(ann)
    assert (request.groups, request.quorum) == (["treasury"], 2)
    assert request.expires_at - request.asked_at == timedelta(hours=4)
    outsider, boss = actor("out", "view", "fire"), actor("boss", boss=True)
    for other in (outsider, boss):
        for decide in (approvals.approve, approvals.decline):
            with pytest.raises(NotApprover, match="members of the group treasury"):
                decide(other, request.pk, note="no")
    with pytest.raises(OwnRequest):
        approvals.approve(ann, request.pk)
    bob, cat = (actor(name, "view", "fire", group="treasury") for name in ("bob", "cat"))
    assert approvals.approve(bob, request.pk, note="seen").state == "open"
    with pytest.raises(NotOpen, match="you have approved it; 2 people have to"):
        approvals.approve(bob, request.pk)
    assert shop.get("order", "o-1").state == "Open"
    after = approvals.approve(cat, request.pk)
    assert (after.state, after.decider) == ("done", "cat")
    (step,) = shop.history("order", "o-1", limit=1)
    assert (step.actor, step.reason) == ("ann", f"{WHY} [approved by bob, cat]")
    found = AuditEntry.objects.filter(action="approval.approve", outcome="done").order_by("id")
    assert [entry.detail["approvers"] for entry in found] == [["bob"], ["bob", "cat"]]


def test_who_left_the_group_or_is_deactivated_or_deleted_does_not_count_any_more(shop, actor):
    request = asked(actor("ann", "view", "fire"))
    bob, cat, dan = (actor(name, "view", "fire", group="treasury") for name in ("bob", "cat", "dan"))
    approvals.approve(bob, request.pk)
    bob.user.groups.clear()
    assert approvals.approve(cat, request.pk).state == "open"
    assert [(vote.voter, counts) for vote, counts in approval_queries.list_votes(request)] == [
        ("bob", False), ("cat", True),
    ]  # fmt: skip
    cat.user.is_active = False
    cat.user.save()
    assert approvals.approve(dan, request.pk).state == "open"
    dan.user.delete()
    bob.user.groups.set([Group.objects.get(name="treasury")])
    assert [vote.voter for vote, counts in approval_queries.list_votes(request) if counts] == ["bob"]
    eve = actor("eve", "view", "fire", group="treasury")
    assert approvals.approve(eve, request.pk).state == "done"


def test_a_group_without_members_or_that_is_gone_is_named_where_the_request_is(shop, actor, client):
    ann = actor("ann", "view", "fire", group="treasury")  # who asks does not decide
    request = asked(ann)
    eve = actor("eve", "view", "fire")
    client.force_login(eve.user)
    address = f"/api/v1/approvals/{request.pk}"
    for change in (lambda: None, lambda: Group.objects.get(name="treasury").delete()):
        change()
        page = client.get(reverse("signalbox:approval", args=[request.pk])).content.decode()
        assert "nobody else is a member of\n    treasury" in page
        assert client.get(address).json()["empty_groups"] == ["treasury"]
        with pytest.raises(NotApprover, match="nobody is one: add members, or withdraw it"):
            approvals.approve(eve, request.pk)
    actor("bob", "view", "fire", group="treasury")
    assert client.get(address).json()["empty_groups"] == []
    assert "nobody else is" not in client.get(reverse("signalbox:approval", args=[request.pk])).content.decode()


def test_a_request_that_is_too_old_is_refused_with_a_word(shop, actor):
    request = asked(actor("ann", "view", "fire"))
    bob = actor("bob", "view", "fire", group="treasury")
    Approval.objects.filter(pk=request.pk).update(expires_at=timezone.now())
    assert Approval.objects.get(pk=request.pk).state == "expired"
    with pytest.raises(NotOpen, match="is expired"):
        approvals.approve(bob, request.pk)
    assert request.votes.count() == 0


@pytest.mark.django_db(transaction=True)
def test_two_who_approve_at_the_same_time_do_it_once(shop, actor):
    request = asked(actor("ann", "view", "fire"))
    people = [actor(name, "view", "fire", group="treasury") for name in ("bob", "cat")]
    at_once = Barrier(2)

    def approve(person):
        at_once.wait()
        try:
            return approvals.approve(person, request.pk)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(approve, people))
    assert Approval.objects.get(pk=request.pk).state == "done"
    assert len([step for step in shop.history("order", "o-1", limit=9) if step.event == "refund"]) == 1


def test_the_setting_adds_to_what_the_definition_asks_for(shop, actor, settings):
    terms = {"*": {"*": {"expires": "1h"}}, "order": {"fire:refund": {"group": "audit", "quorum": 3}}}
    configure(settings, APPROVERS=terms)
    request = asked(actor("ann", "view", "fire"))
    assert (sorted(request.groups), request.quorum) == (["audit", "treasury"], 3)
    assert request.expires_at - request.asked_at == timedelta(hours=1)
    repair = asked(actor("bea", "view", "operate"), "delete")
    assert (repair.groups, repair.quorum) == ([], 1)
    assert repair.expires_at - repair.asked_at == timedelta(hours=1)


@pytest.mark.parametrize(
    "given",
    [
        [],
        {"*": 1},
        {"*": {"erase": {}}},
        {"*": {"delete": {"quorum": 0}}},
        {"*": {"delete": {"groups": "x"}}},
        {"*": {"delete": {"expires": "soon"}}},
    ],
)
def test_a_setting_that_does_not_fit_is_refused(given):
    with pytest.raises(Unfit, match="APPROVERS"):
        SETTINGS["APPROVERS"].kind.read("APPROVERS", given)


def test_a_change_of_versions_takes_the_terms_of_every_rule(engine, db, actor, settings):
    publishing.publish(ORDER | {"approval": ["publish"], "approvers": {"publish": {"quorum": 2}}})
    configure(settings, APPROVERS={"order": {"publish": {"group": "release"}}}, APPROVAL=["publish"])
    rule = find_rule("version.pin", "order")
    assert (rule.source, rule.terms) == ("the setting APPROVAL", ApprovalTerms((), 2))
    ann = actor("ann", "view", "publish")
    with pytest.raises(ApprovalNeeded) as needed:
        rollouts.pin(ann, "order", 1, reason=WHY)
    request = approvals.ask(ann, needed.value)
    assert (request.groups, request.quorum) == (["release"], 2)
    people = [actor(name, "view", "publish", group="release") for name in ("bob", "cat")]
    assert [approvals.approve(one, request.pk).state for one in people] == ["open", "done"]
    assert engine.version_choice("order").pin.version == 1


def test_the_terms_hold_for_each_operation_that_changes_what_versions_count(engine, db, settings):
    publishing.publish(
        ORDER | {"approval": ["publish", "migrate"], "approvers": {"*": {"quorum": 2, "group": "release"}}}
    )
    for operation, actions in OPERATIONS.items():
        rule = find_rule(operation, "order")
        assert (rule and rule.terms) == (ApprovalTerms(("release",), 2) if actions else None), operation


def test_moving_to_a_version_that_asks_for_fewer_people_takes_the_terms_of_the_old_one(engine, db):
    publishing.publish(ORDER | {"approvers": TERMS})
    publishing.publish(ORDER | {"approvers": {"fire:refund": {"group": "treasury"}}})
    rule = find_rule("migrate", "order", moves=[(1, 2)])
    assert "version 2 does not ask for" in rule.source
    assert rule.terms.quorum == 2
    assert find_rule("migrate", "order", moves=[(2, 1)]) is None


def test_the_policy_of_a_machine_names_groups_a_quorum_and_a_time(engine, db, actor, settings):
    publishing.publish(ORDER | {"approval": ["publish"], "approvers": {"publish": {"quorum": 2, "expires": "2h"}}})
    configure(settings, APPROVAL=["publish"])
    Machine.objects.filter(name="order").update(version_policy=["migrate"])  # as former releases stored it
    boss, people = actor("boss", boss=True), [actor(name, boss=True, group="release") for name in ("bob", "cat", "dan")]
    terms = {"publish": {"group": "release", "quorum": 3, "expires": "4h"}}
    with pytest.raises(ApprovalNeeded) as needed:
        rollouts.set_policy(boss, "order", ["publish"], approvers=terms, reason=WHY)
    request = approvals.ask(boss, needed.value)
    assert (request.groups, request.quorum) == ([], 2)
    assert [approvals.approve(one, request.pk).state for one in people[:2]] == ["open", "done"]
    assert find_rule("version.pin", "order").terms == ApprovalTerms(("release",), 3, 2 * 3_600_000)
    with pytest.raises(ApprovalNeeded) as needed:
        rollouts.set_policy(boss, "order", [], reason=WHY)
    request = approvals.ask(boss, needed.value)
    assert (request.groups, request.quorum) == (["release"], 3)
    assert [approvals.approve(one, request.pk).state for one in people] == ["open", "open", "done"]
    assert Machine.objects.get(name="order").version_policy == {}


@pytest.mark.parametrize(
    ("actions", "terms", "word"),
    [
        (["erase"], {}, "not 'erase'"),
        (["publish"], {"migrate": {"quorum": 2}}, "not among the actions"),
        (["publish"], {"publish": {"quorum": 0}}, "approvers.publish.quorum"),
        (["publish"], {"publish": {"quorum": "two"}}, "approvers.publish.quorum"),
        (["publish"], {"publish": {"expires": "soon"}}, "not a duration"),
        (["publish"], {"publish": {"people": 2}}, "people"),
        (["publish"], {"publish": {"group": "ghosts"}}, "nobody is in the group 'ghosts'"),
        (["publish"], {"publish": {"expires": "4m"}}, "5 minutes or more"),
        (["publish"], {"publish": {"quorum": 4}}, "beside you, 2 of this site"),
        (["publish"], {"publish": {"group": "release", "quorum": 2}}, "beside you, 1 of release"),
    ],
)
def test_a_policy_that_nobody_could_fulfil_is_refused(engine, db, actor, actions, terms, word):
    publishing.publish(ORDER)
    Group.objects.create(name="ghosts")
    boss = actor("boss", boss=True, group="release")
    actor("bob", "view", "publish", group="release")
    actor("cat", "view", group="release")
    gone = actor("dan", "publish", group="release").user
    gone.is_active = False
    gone.save()
    with pytest.raises(BadInput, match=word):
        rollouts.set_policy(boss, "order", actions, approvers=terms, reason=WHY)
    assert Machine.objects.get(name="order").version_policy == []


def test_page_and_api_set_who_approves_changes_of_versions(engine, db, actor, client):
    publishing.publish(ORDER)
    for name in ("bob", "cat"):
        actor(name, "view", "publish", group="release")
    client.force_login(actor("boss", boss=True).user)
    sent = {
        "actions": ["publish"],
        "publish-group": "release",
        "publish-quorum": "2",
        "migrate-group": "x",
        "reason": WHY,
    }
    client.post(reverse("signalbox:version-policy", args=["order"]), sent)
    terms = {"group": "release", "quorum": 2}
    assert Machine.objects.get(name="order").version_policy == {"publish": terms}
    found = client.get("/api/v1/machines/order/rollout").json()
    assert (found["policy"], found["approvers"]) == (["publish"], {"publish": terms})
    page = client.get(reverse("signalbox:versions", args=["order"])).content.decode()
    assert 'name="publish-quorum" type="number"' in page
    assert 'value="release"' in page
    body = {"actions": ["publish"], "approvers": {"publish": {"group": "nobody"}}, "reason": WHY}
    answer = client.put("/api/v1/machines/order/version-policy", body, content_type="application/json")
    assert answer.status_code == 400, answer.content
    assert "nobody is in the group" in answer.json()["detail"]


def test_page_and_api_say_who_decides_and_who_has(shop, actor, client):
    request = asked(actor("ann", "view", "fire"))
    bob = actor("bob", "view", "fire", group="treasury")
    client.force_login(bob.user)
    address = reverse("signalbox:approval", args=[request.pk])
    assert "2 people have to approve" in client.get(address).content.decode()
    page = client.post(f"{address}approve/", {"note": ""}, follow=True).content.decode()
    assert "it runs once 2 people have" in page
    found = client.get(f"/api/v1/approvals/{request.pk}").json()
    assert (found["groups"], found["quorum"], found["approvers"]) == (["treasury"], 2, ["bob"])
    client.force_login(actor("out", "view", "fire").user)
    assert "a member of <b>treasury</b>" in client.get(address).content.decode()
    page = client.post(f"{address}approve/", {"note": ""}, follow=True).content.decode()
    assert "SB452" in page
    assert shop.get("order", "o-1").state == "Open"
