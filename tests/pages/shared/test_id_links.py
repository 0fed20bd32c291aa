"""Ids as links: to the page of what they name, for people who may open it, and plain text for others."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse
from guardian.shortcuts import assign_perm

from dashboard.audit.views import make_row
from dashboard.shared.addresses import ADDRESSES, find_address
from machines.catalog import publishing
from machines.models import AuditEntry, Machine


@pytest.fixture
def viewer_of_one(as_, activation, devices):
    """A person who may see the machine ``activation`` and no other."""
    as_("nobody", "uma")
    user = get_user_model().objects.get(username="uma")
    publishing.adopt(activation)
    assign_perm("machines.view_machine", user, Machine.objects.get(name=activation))
    return user


def test_ids_of_machines_in_scope_have_a_page(viewer_of_one):
    assert find_address(viewer_of_one, "instance", "activation", "a b") == "/machines/activation/instances/a%20b/"
    assert find_address(viewer_of_one, "bulk", "activation", "b1") == reverse("signalbox:bulk", args=["b1"])
    for kind in ("instance", "job", "queue", "bulk", "approval"):
        assert find_address(viewer_of_one, kind, "new_device", "1") == "", kind


def test_what_needs_another_right_is_no_link(viewer_of_one, user_of):
    assert find_address(viewer_of_one, "request", "x1") == ""
    assert find_address(viewer_of_one, "webhook", "4") == ""
    assert find_address(user_of("supervisor"), "request", "x1") == "/audit/?request=x1"
    assert find_address(viewer_of_one, "worker", "host:1") == "/workers/#worker-host%3A1"


@pytest.mark.parametrize("kind", ADDRESSES)
def test_an_empty_or_odd_id_has_no_page(kind, viewer_of_one):
    names = ["activation", ""] if kind in ("instance", "job", "queue", "bulk", "approval") else [""]
    assert find_address(viewer_of_one, kind, *names) == ""


def entry(action: str, target: str = "", **facts) -> AuditEntry:
    detail = facts.pop("detail", {})
    return AuditEntry.objects.create(
        actor="ann", action=action, machine="activation", target=target, outcome="done", detail=detail, **facts
    )


@pytest.mark.parametrize(
    ("action", "target", "text", "address"),
    [
        ("job.retry", "0-1", "job 0-1", "/jobs/activation/0-1/"),
        ("bulk.run", "b1", "bulk b1", "/bulk/b1/"),
        ("worker.quiet", "host-1", "host-1", "/workers/#worker-host-1"),
        ("publish", "draft 4", "draft 4", "/machines/activation/versions/drafts/4/"),
    ],
)
def test_an_audit_entry_has_links_to_what_it_is_about(viewer_of_one, action, target, text, address):
    row = make_row(entry(action, target), viewer_of_one)
    assert row.target == (text, address)


def test_facts_of_an_audit_entry_are_links_where_they_are_ids(viewer_of_one):
    row = make_row(entry("bulk.start", "b2", detail={"again": "b1", "does": "edit"}), viewer_of_one)
    assert row.rest == [("again", "b1", "/bulk/b1/"), ("does", "edit", "")]
    row = make_row(entry("fire", "press", instance="a-1"), viewer_of_one)
    assert (row.target, row.links[-1]) == (("press", ""), ("a-1", "/machines/activation/instances/a-1/"))


def test_the_bulk_action_behind_a_step_is_a_link(as_, engine, waiting):
    engine.suspend("activation", waiting.id, actor="ann", reason="late <b>van</b> [bulk b-17]")
    page = as_("viewer").get(reverse("signalbox:instance", args=["activation", waiting.id])).content.decode()
    assert 'late &lt;b&gt;van&lt;/b&gt; [bulk <a class="key" href="/bulk/b-17/">b-17</a>]' in page


def test_the_id_of_a_request_leads_to_its_audit_entries(as_, activation):
    text = as_("supervisor").get("/machines/activation/instances/none/").content.decode()
    assert 'href="/audit/?request=' in text
    assert 'href="/audit/?request=' not in as_("viewer").get("/machines/activation/instances/none/").content.decode()


def test_the_job_and_the_instances_behind_a_step_are_links(as_, engine, db):
    engine.publish({"id": "child", "initial": "A", "states": {"A": {"on": {"end": "Z"}}, "Z": {"type": "final"}}})
    run = {"id": "run", "src": "machine:child", "onDone": "Job"}
    work = {"src": "pack", "queue": "q", "onDone": "End"}
    engine.publish(
        {"id": "top", "initial": "Run", "states": {"Run": {"invoke": run}, "Job": {"invoke": work}, "End": {}}}
    )
    engine.create("top", "t-1")
    engine.tick()
    child = engine.get("top", "t-1").children["run"]["id"]
    engine.fire("child", child, "end", actor="x/y")
    engine.tick()
    (job,) = engine.take("top", "q", "w")
    engine.complete(job)
    client = as_("viewer")
    page = client.get(reverse("signalbox:instance", args=["top", "t-1"])).content.decode()
    assert f'<a class="key" href="/jobs/top/{job.id}/">job {job.id}</a>' in page
    assert f'href="{reverse("signalbox:instance", args=["child", child])}">child/{child}</a>' in page
    page = client.get(reverse("signalbox:instance", args=["child", child])).content.decode()
    assert "<td>x/y" in page
    assert '<a class="key" href="/machines/top/instances/t-1/">top/t-1</a>' in page
