"""Requests in the admin: read by whoever sees the machine, decided by the same rules as on the pages."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.urls import resolve

from machines.approvals import actions as approvals
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.publishing import publish
from machines.engine.errors import UnknownInstance
from machines.models import Approval, AuditEntry
from machines.people.actor import Actor
from tests.catalog.samples import example

LIST = "/admin/machines/approval/"


@pytest.fixture
def request_to_delete(engine, staff) -> Approval:
    publish(example("activation") | {"approval": ["delete"]})
    engine.create("activation", "a-1")
    staff("view", "operate", name="ann")
    ann = Actor(get_user_model().objects.get(username="ann"), "test")
    needed = ApprovalNeeded("activation", "a-1", "delete", asked={"secret": "T0KEN"}, reason="it must go", expect=1)
    return approvals.ask(ann, needed)


def decide(client, action: str, request: Approval, note: str = "") -> str:
    sent = {"action": action, "_selected_action": [request.pk], "note": note}
    return client.post(LIST, sent, follow=True).content.decode()


def test_requests_are_shown_without_what_they_ask_for_in_detail(staff, request_to_delete):
    client = staff("view")
    assert "activation/a-1" in client.get(LIST).content.decode()
    page = client.get(f"{LIST}{request_to_delete.pk}/change/").content.decode()
    assert "it must go" in page
    assert "T0KEN" not in page
    assert staff(name="out").get(LIST).status_code == 403


def test_another_person_with_the_right_decides_and_nobody_else(client, staff, request_to_delete, engine):
    client.force_login(get_user_model().objects.get(username="ann"))
    assert "not done" in decide(client, "approve", request_to_delete)
    assert "not done" in decide(staff("view", name="eve"), "approve", request_to_delete)
    bob = staff("view", "operate", name="bob")
    assert "a reason is required" in decide(bob, "decline", request_to_delete)
    request_to_delete.refresh_from_db()
    assert request_to_delete.state == "open"
    assert "declined" in decide(bob, "decline", request_to_delete, "not this one")
    request_to_delete.refresh_from_db()
    assert (request_to_delete.state, request_to_delete.decider) == ("declined", "bob")
    assert AuditEntry.objects.filter(action="approval.decline", actor="bob", outcome="done").exists()


def test_what_is_approved_runs(staff, request_to_delete, engine):
    request = Approval.objects.filter(pk=request_to_delete.pk)
    request.update(asked={})
    assert "done" in decide(staff("view", "operate", name="bob"), "approve", request_to_delete)
    assert request.get().state == "done"
    with pytest.raises(UnknownInstance):
        engine.get("activation", "a-1")


def test_a_failure_after_a_decision_does_not_take_its_entry_back():
    assert "default" in resolve(LIST).func._non_atomic_requests
