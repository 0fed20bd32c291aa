"""The audit in the admin: what is done there stands in it, and nobody changes it there."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission

from machines.audit.entries import record
from machines.catalog.admin import instance_url
from machines.models import AuditEntry, Machine

from .conftest import ID

LIST = "/admin/machines/auditentry/"


@pytest.fixture
def auditor(staff):
    client = staff("view", name="aud")
    aud = Permission.objects.get(codename="view_auditentry")
    aud.user_set.add(client.session["_auth_user_id"])
    return client


@pytest.fixture
def entry(db) -> AuditEntry:
    record("alice", "force", machine="activation", instance="a", reason="<b>why</b>", detail={"revision": 3})
    record("bob", "queue.pause", machine="new_device", queue="todo", outcome="refused")
    return AuditEntry.objects.get(actor="alice")


def test_it_is_listed_filtered_and_searched(auditor, entry):
    page = auditor.get(LIST).content.decode()
    assert "activation/a" in page
    assert "new_device/todo" in page
    assert "&lt;b&gt;why&lt;/b&gt;" in page
    for query in ("?outcome__exact=refused", "?action__exact=queue.pause", "?q=bob"):
        narrowed = auditor.get(f"{LIST}{query}").content.decode()
        assert "new_device/todo" in narrowed
        assert "activation/a" not in narrowed


def test_an_entry_is_shown_with_its_facts(auditor, entry):
    page = auditor.get(f"{LIST}{entry.pk}/change/").content.decode()
    assert "&quot;revision&quot;: 3" in page
    assert 'name="_save"' not in page


def test_it_takes_its_permission_and_view(staff, client, entry):
    assert staff("view", "fire", "operate", "publish").get(LIST).status_code == 403
    assert client.get(LIST).status_code == 302


@pytest.mark.parametrize("path", ["add/", "{}/change/", "{}/delete/", ""])
def test_not_even_a_superuser_writes_there(admin_client, entry, path):
    form = {"actor": "eve", "post": "yes", "action": "delete_selected", "_selected_action": entry.pk}
    answer = admin_client.post(LIST + path.format(entry.pk), form)
    assert answer.status_code == (403 if path else 302) or b"delete_selected" not in answer.content
    assert sorted(AuditEntry.objects.values_list("actor", flat=True)) == ["alice", "bob"]


def test_firing_leaves_an_entry_refused_or_not(staff, machine: Machine, instance: str) -> None:
    operator = staff("view", "fire", name="olga")
    for event in ("activate", "entitle"):
        form = {"event": event, "expect": 2, "payload-token": "T0KEN", "reason": "she called"}
        operator.post(instance_url(machine, ID), form, REMOTE_ADDR="10.0.0.7")
    fired, refused = AuditEntry.objects.all()
    assert (fired.actor, fired.action, fired.target, fired.instance) == ("olga", "fire", "entitle", ID)
    assert (fired.source, fired.reason) == ("admin 10.0.0.7", "she called")
    assert fired.detail == {"before": "Waiting", "after": "Active", "revision": 3}
    assert (refused.target, refused.outcome, refused.detail["code"]) == ("activate", "refused", "SB430")
