"""The tree of parents and children on the page of an instance: bounded, and only what the person may see."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse
from guardian.shortcuts import assign_perm

from dashboard.instances import views
from dashboard.shared.redacted_engine import RedactedEngine
from machines.catalog import publishing
from machines.models import Machine
from machines.people.actor import Actor
from tests.pages.reading import read

LEAF = {
    "id": "leaf",
    "initial": "Growing",
    "states": {"Growing": {"on": {"fall": "Fallen"}}, "Fallen": {"type": "final"}},
}


def runner(name: str, *machines: str) -> dict:
    invokes = [{"id": f"i{number}", "src": f"machine:{machine}"} for number, machine in enumerate(machines)]
    return {
        "id": name,
        "initial": "Running",
        "states": {"Running": {"invoke": invokes, "on": {"stop": "Over"}}, "Over": {}},
    }


@pytest.fixture
def tree(engine, db):
    """One trunk runs two branches, and each branch a leaf."""
    for definition in (LEAF, runner("branch", "leaf"), runner("trunk", "branch", "branch")):
        engine.publish(definition)
    engine.create("trunk", "t-1")
    for _ in range(6):
        engine.tick()
    return engine.get("trunk", "t-1")


@pytest.fixture
def all_seen(engine) -> RedactedEngine:
    return RedactedEngine(Actor("a program"))


def child_of(engine, machine: str, id: str, invoke: str = "i0"):
    child = engine.get(machine, id).children[invoke]
    return engine.get(child["machine"], child["id"])


def shape(kin) -> tuple:
    return (kin.machine, kin.here, [shape(child) for child in kin.children])


LEAVES = [("leaf", False, [])]


def test_the_whole_tree_is_read_from_the_top(all_seen, tree):
    found = views.load_family(all_seen, tree)
    assert shape(found.root) == ("trunk", True, [("branch", False, LEAVES), ("branch", False, LEAVES)])
    assert (found.size, found.cut_above, found.cut_below) == (5, False, False)
    assert found.root.children[0].states == ["Running"]


def test_of_an_instance_below_its_ancestors_are_read_and_their_other_children_counted(engine, all_seen, tree):
    branch = child_of(engine, "trunk", "t-1", "i1")
    leaf = child_of(engine, "branch", branch.id)
    found = views.load_family(all_seen, leaf)
    assert shape(found.root) == ("trunk", False, [("branch", False, [("leaf", True, [])])])
    assert (found.root.more, found.root.children[0].invoke) == (1, "i1")


def test_depth_and_number_are_bounded_and_the_tree_says_so(engine, tree, all_seen, monkeypatch):
    monkeypatch.setattr(views, "MAX_DEPTH", 1)
    found = views.load_family(all_seen, tree)
    assert (found.cut_below, [child.more for child in found.root.children]) == (True, [1, 1])
    monkeypatch.setattr(views, "MAX_KIN", 2)
    found = views.load_family(all_seen, tree)
    assert (found.size, found.root.more, found.cut_below) == (2, 1, True)
    leaf = child_of(engine, "branch", child_of(engine, "trunk", "t-1").id)
    monkeypatch.setattr(views, "MAX_ANCESTORS", 1)
    assert views.load_family(all_seen, leaf).cut_above


def test_machines_out_of_scope_are_not_in_the_tree(user_of, tree):
    user, seen = user_of("nobody"), []
    for machine in ("trunk", "branch"):
        assign_perm("view_machine", user, publishing.adopt(machine))
        engine = RedactedEngine(Actor(get_user_model().objects.get(pk=user.pk), "page"))
        found = views.load_family(engine, engine.get("trunk", "t-1"))
        seen.append(found and found.size)
    assert seen == [None, 3]


def test_an_instance_without_kin_has_no_tree(as_, waiting):
    page = read(as_("viewer").get(f"/machines/activation/instances/{waiting.id}/"))
    assert page.one(**{"data-region": "family"}).text == ""


def test_the_page_has_the_tree_as_a_list_of_links(as_, engine, tree):
    branch = child_of(engine, "trunk", "t-1")
    panel = read(as_("viewer").get("/machines/trunk/instances/t-1/")).one("section", **{"data-region": "family"})
    assert "5 instances" in panel.text
    assert panel.one("li", **{"aria-current": "true"}).one("b").text == "t-1"
    assert reverse("signalbox:instance", args=["branch", branch.id]) in [one["href"] for one in panel.all("a")]


def test_a_person_of_one_machine_sees_no_link_to_another(as_, engine, tree):
    client = as_("nobody")
    user = client.get("/account/").wsgi_request.user
    publishing.adopt("branch")
    assign_perm("machines.view_machine", user, Machine.objects.get(name="branch"))
    branch = child_of(engine, "trunk", "t-1")
    answer = client.get(reverse("signalbox:instance", args=["branch", branch.id]))
    assert answer.status_code == 200
    assert b"/machines/trunk/" not in answer.content
    assert b"/machines/leaf/" not in answer.content
