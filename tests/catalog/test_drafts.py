"""Drafts of definitions: who may, what they are compared with, and that what was approved is what is published."""

from __future__ import annotations

import json
from threading import Barrier, Thread

import pytest
from django.db import connections
from django.test import Client
from django.urls import reverse

from machines.approvals import actions as approvals
from machines.catalog import publishing
from machines.catalog.errors import ApprovalNeeded, DraftChanged, DraftClosed, DraftConflict, DraftNeeded
from machines.catalog.versions import drafts
from machines.catalog.versions import publication as definitions
from machines.engine import BadInput, DefinitionError
from machines.models import AuditEntry, Draft, MachineVersion
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from tests.configuration import configure
from tests.people.orders import ORDER

LATER = ORDER | {"description": "with a description"}
TWO = ORDER | {"approval": [*ORDER["approval"], "publish"]}


def text(definition=LATER) -> str:
    return json.dumps(definition)


def entries(action: str = "") -> list[tuple[str, str, str, str]]:
    found = AuditEntry.objects.filter(machine="order", action__startswith=action).order_by("id")
    return [(entry.action, entry.actor, entry.target, entry.outcome) for entry in found]


def test_a_draft_is_kept_checked_and_published(order, actor):
    ann = actor("ann", "view", "publish")
    draft = drafts.save(ann, "order", text(), note="describe it")
    assert (draft.base, draft.revision, draft.author, draft.state) == (1, 1, "ann", "open")
    seen = drafts.check(ann, draft.pk)
    assert (seen.publishable, seen.current, seen.is_stale, seen.needs_second) == (True, 1, False, False)
    version = drafts.publish(ann, draft.pk)
    assert (version.number, version.notes, version.published_by.username) == (2, "describe it", "ann")
    draft.refresh_from_db()
    assert (draft.state, draft.published, draft.closed_by) == ("published", 2, "ann")
    assert entries() == [
        ("draft.save", "ann", f"draft {draft.pk}", "done"),
        ("publish", "ann", "v2", "done"),
    ]
    assert AuditEntry.objects.get(action="publish").detail["draft"] == draft.pk
    with pytest.raises(DraftClosed, match="published"):
        drafts.publish(ann, draft.pk)


def test_each_action_takes_the_right_to_publish(order, actor):
    ann, vera = actor("ann", "view", "publish"), actor("vera", "view", "fire", "operate")
    draft = drafts.save(ann, "order", text())
    tries = [
        lambda: drafts.list_drafts(vera, "order"),
        lambda: drafts.get(vera, draft.pk),
        lambda: drafts.save(vera, "order", text()),
        lambda: drafts.save(vera, "order", text(), id=draft.pk),
        lambda: drafts.check(vera, draft.pk),
        lambda: drafts.rebase(vera, draft.pk, onto=1),
        lambda: drafts.discard(vera, draft.pk),
        lambda: drafts.publish(vera, draft.pk),
    ]
    for one in tries:
        with pytest.raises(Forbidden):
            one()
    assert list(drafts.list_drafts(vera)) == []
    assert [draft.pk for draft in drafts.list_drafts(ann)] == [draft.pk]
    draft.refresh_from_db()
    assert (draft.state, draft.revision) == ("open", 1)
    assert [entry for entry in entries() if entry[1] == "vera"] == [
        ("draft.save", "vera", "", "refused"),
        ("draft.save", "vera", f"draft {draft.pk}", "refused"),
        ("draft.rebase", "vera", f"draft {draft.pk}", "refused"),
        ("draft.discard", "vera", f"draft {draft.pk}", "refused"),
        ("publish", "vera", f"draft {draft.pk}", "refused"),
    ]


def test_a_draft_whose_base_is_no_longer_current_is_a_conflict_until_it_is_rebased(order, actor):
    ann = actor("ann", "view", "publish")
    draft = drafts.save(ann, "order", text())
    publishing.publish(ORDER | {"description": "another one was faster"})
    assert drafts.check(ann, draft.pk).is_stale
    with pytest.raises(DraftConflict) as found:
        drafts.publish(ann, draft.pk)
    assert (found.value.base, found.value.current, found.value.code) == (1, 2, "SB640")
    assert order.versions("order") == [1, 2]
    with pytest.raises(DraftConflict):  # what was compared is not what is current
        drafts.rebase(ann, draft.pk, onto=1)
    assert drafts.rebase(ann, draft.pk, onto=2).base == 2
    assert drafts.publish(ann, draft.pk).number == 3
    assert entries("publish") == [
        ("publish", "ann", f"draft {draft.pk}", "refused"),
        ("publish", "ann", "v3", "done"),
    ]


def test_nobody_writes_over_what_they_have_not_seen(order, actor):
    ann, bob = actor("ann", "view", "publish"), actor("bob", "view", "publish")
    draft = drafts.save(ann, "order", text())
    drafts.save(bob, "order", text(ORDER), id=draft.pk, expect=1)
    for late in (
        lambda: drafts.save(ann, "order", text(), id=draft.pk, expect=1),
        lambda: drafts.publish(ann, draft.pk, expect=1),
        lambda: drafts.discard(ann, draft.pk, expect=1),
    ):
        with pytest.raises(DraftChanged) as found:
            late()
        assert (found.value.expected, found.value.actual) == (1, 2)
    assert drafts.discard(ann, draft.pk, expect=2).state == "discarded"
    with pytest.raises(DraftClosed):
        drafts.save(bob, "order", text(), id=draft.pk)


@pytest.mark.parametrize(
    ("words", "format"),
    [("", "json"), ("a\0b", "json"), ("\ud800", "json"), ("{}", "word"), ("x" * 1_048_577, "json")],
    ids=["empty", "nul", "half a character", "format", "long"],
)
def test_a_text_that_cannot_be_kept_is_refused(order, actor, words, format):
    with pytest.raises(BadInput) as found:
        drafts.save(actor("ann"), "order", words, format=format)
    assert found.value.code == "SB643"
    assert not Draft.objects.exists()


def test_a_draft_may_be_wrong_and_is_not_published_then(order, actor):
    ann = actor("ann", "view", "publish")
    broken = drafts.save(ann, "order", text(LATER | {"initial": "Opn"}))
    other = drafts.save(ann, "order", text(LATER | {"id": "bill"}))
    assert [finding.code for finding in drafts.check(ann, broken.pk).submission.errors] == ["SB101"]
    assert not drafts.check(ann, broken.pk).publishable
    assert not drafts.check(ann, other.pk).publishable
    with pytest.raises(DefinitionError):
        drafts.publish(ann, broken.pk)
    with pytest.raises(BadInput, match="bill"):
        drafts.publish(ann, other.pk)
    assert order.machines() == {"order": 1}
    assert Draft.objects.filter(state="open").count() == 2


def test_a_new_machine_begins_as_a_draft_too(order, actor):
    ann = actor("ann", "view", "publish")
    draft = drafts.save(ann, "bill", text(LATER | {"id": "bill"}))
    assert draft.base is None
    assert drafts.publish(ann, draft.pk).number == 1


@pytest.mark.parametrize("everywhere", [False, True], ids=["definition", "setting"])
def test_a_second_person_approves_exactly_the_text_that_was_there(order, actor, settings, everywhere):
    if everywhere:
        configure(settings, APPROVAL=["publish"])
    else:
        publishing.publish(TWO)
    ann, bob = actor("ann", "view", "publish"), actor("bob", "view", "publish")
    draft = drafts.save(ann, "order", text(), note="describe it")
    assert drafts.check(ann, draft.pk).needs_second
    with pytest.raises(ApprovalNeeded) as needed:
        drafts.publish(ann, draft.pk)
    request = approvals.ask(ann, needed.value)
    assert (request.right, request.subject) == ("publish", f"draft {draft.pk} of order")
    assert approvals.preview(bob, request) is None
    drafts.save(ann, "order", text(LATER | {"description": "other words"}), id=draft.pk, note="describe it")
    with pytest.raises(DraftChanged):
        approvals.preview(bob, request)
    void = approvals.approve(bob, request.pk)
    assert (void.state, void.code) == ("failed", "SB642")
    assert order.machines()["order"] == draft.base
    with pytest.raises(ApprovalNeeded) as needed:
        drafts.publish(ann, draft.pk)
    approved = approvals.approve(bob, approvals.ask(ann, needed.value).pk)
    assert (approved.state, approved.outcome) == ("done", f"published as v{draft.base + 1}")
    entry = AuditEntry.objects.filter(action="publish", outcome="done").get()
    assert (entry.actor, entry.detail["approved_by"], entry.detail["draft"]) == ("ann", "bob", draft.pk)


def test_only_who_may_publish_decides(order, actor):
    publishing.publish(TWO)
    ann = actor("ann", "view", "publish")
    draft = drafts.save(ann, "order", text(), note="describe it")
    with pytest.raises(ApprovalNeeded) as needed:
        drafts.publish(ann, draft.pk)
    request = approvals.ask(ann, needed.value)
    vera = actor("vera", "view", "operate", "fire")
    assert approvals.preview(vera, request) is None
    client = Client()
    client.force_login(vera.user)
    page = client.get(reverse("signalbox:approval", args=[request.pk]))
    assert (page.status_code, f"draft {draft.pk} of order" in page.content.decode()) == (200, True)
    assert "It would be refused" not in page.content.decode()
    for other in (vera, ann):
        with pytest.raises(Exception, match="may not publish|your own"):
            approvals.approve(other, request.pk)


def test_publishing_without_a_draft_is_refused_where_it_takes_two(order, actor):
    publishing.publish(TWO)
    for who in (actor("ann"), Actor.console()):
        with pytest.raises(DraftNeeded, match="'publish' in version 2 of order"):
            definitions.publish(who, LATER)
    assert publishing.publish(LATER).number == 3  # programs are not asked


def test_a_machine_that_is_brought_along_does_not_go_round_the_second_person(order, actor):
    states = {"A": {"invoke": {"src": "machine:till"}, "on": {"go": "B"}}, "B": {"type": "final"}}
    till = {"initial": "A", "approval": ["publish"], "states": {"A": {}}}
    shop = {"id": "shop", "initial": "A", "machines": {"till": till}, "states": states}
    publishing.publish(shop)
    ann = actor("ann")
    draft = drafts.save(ann, "shop", text(shop | {"machines": {"till": {"initial": "B", "states": {"B": {}}}}}))
    assert drafts.check(ann, draft.pk).publishable
    with pytest.raises(DraftNeeded, match="shop.till"):
        drafts.publish(ann, draft.pk)
    assert order.machines()["shop.till"] == order.machines()["shop"] == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_who_publish_at_once_one_is_first(order, actor):
    people = [actor("ann"), actor("bob")]
    both = [drafts.save(one, "order", text(LATER | {"description": one.name})) for one in people]
    together, came = Barrier(2), []

    def publish(actor: Actor, id: int) -> None:
        together.wait()
        try:
            came.append(drafts.publish(actor, id).number)
        except DraftConflict as error:
            came.append(error.code)
        finally:
            connections.close_all()

    threads = [Thread(target=publish, args=[one, draft.pk]) for one, draft in zip(people, both, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, came)) == ["2", "SB640"]
    assert MachineVersion.objects.filter(machine__name="order").count() == 2
