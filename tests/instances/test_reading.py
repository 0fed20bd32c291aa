"""What an actor reads: masked, within their machines and the reach of their token."""

from __future__ import annotations

import pytest
from guardian.shortcuts import assign_perm

from dashboard.api.framework import request_terms
from machines.audit.redaction import MASK, Concealed
from machines.catalog import publishing
from machines.instances import actions as instances
from machines.instances import queries
from machines.jobs import queries as job_queries
from machines.jobs import queue_actions as queues
from machines.jobs import worker_actions as workers
from machines.people import tokens
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.permissions import Scope

SECRET = "4711-1"


@pytest.fixture
def secret(order):
    order.edit("order", "o-1", {"card": SECRET}, actor="test", reason="a test")
    return order


def test_what_is_sensitive_is_masked_in_whatever_is_read(secret, actor):
    vera, rita = actor("vera", "view"), actor("rita", "view", "reveal")
    assert queries.get(vera, "order", "o-1").data["card"] == MASK
    assert queries.get(rita, "order", "o-1").data["card"] == SECRET
    read = (queries.history, queries.explain, queries.find)
    told = [str(each(vera, "order", *rest)) for each, rest in zip(read, (("o-1",), ("o-1", "ship"), ()), strict=True)]
    assert SECRET not in "".join(told)
    assert queries.counts(vera, "order")["Open"] == 1
    assert [found.id for found in queries.find(vera, "order", actor="test")] == ["o-1"]


@pytest.mark.parametrize("terms", [{"where": {"card": SECRET}}, {"error": "declined: 47"}])
def test_what_is_masked_is_not_found_by(secret, actor, terms):
    with pytest.raises(Concealed):
        queries.find(actor("vera", "view"), "order", **terms)


def test_data_that_is_masked_for_its_name_alone_is_not_found_by_either(engine, actor):
    """Where only a payload field is marked, data of that name is masked, and so is what handlers say."""
    fields = {"type": "object", "properties": {"pin": {"type": "string"}}}
    asks = {"ask": {"payload": {"pin": {"type": "string", "sensitive": True}}}}
    states = {"Idle": {"on": {"ask": {"actions": {"set": {"pin": "event.pin"}}}}}}
    machine = {"id": "desk", "initial": "Idle", "context": fields, "index": ["pin"], "events": asks, "states": states}
    publishing.publish(machine)
    engine.create("desk", "d-1")
    engine.fire("desk", "d-1", "ask", {"pin": "4711"})
    vera = actor("vera", "view")
    assert queries.get(vera, "desk", "d-1").data["pin"] == MASK
    for terms in ({"by": "pin", "is": "47*"}, {"error": "declined: 47"}):
        with pytest.raises(Concealed):
            request_terms.read_filter(vera, "desk", request_terms.Filter(**terms))


def test_an_answer_names_no_kin_on_machines_out_of_scope(engine, actor, person):
    work = {"id": "work", "initial": "Idle", "states": {"Idle": {}}}
    runs = {"id": "run", "src": "machine:work"}
    boss = {
        "id": "boss",
        "initial": "Rest",
        "states": {"Rest": {"on": {"go": "Busy"}}, "Busy": {"invoke": runs, "on": {"go": {}}}},
    }
    publishing.publish(work)
    row = publishing.publish(boss).machine
    ann = person("ann")
    for right in ("view", "fire", "operate"):
        assign_perm(f"machines.{right}_machine", ann, row)
    actor = Actor(type(ann).objects.get(pk=ann.pk), "test")
    engine.create("boss", "b-1")
    assert not instances.fire(actor, "boss", "b-1", "go").children
    assert not instances.repair(actor, "suspend", "boss", "b-1", reason="a test").children
    assert [found.children for found in queries.find(actor, "boss")] == [{}]
    assert not queries.get(actor, "boss", "b-1").children
    assert engine.get("boss", "b-1").children


def test_without_view_nothing_is_read(order, actor):
    nobody = actor("nobody", "fire")
    for read in (
        lambda: queries.get(nobody, "order", "o-1"),
        lambda: queries.get(nobody, "nothing", "o-1"),
        lambda: queries.find(nobody, "order"),
        lambda: queries.counts(nobody, "order"),
        lambda: queues.stats(nobody, "order"),
        lambda: job_queries.get(nobody, "order", "0-1"),
        lambda: workers.list_workers(nobody),
    ):
        with pytest.raises(Forbidden):
            read()


def test_a_token_reaches_no_further_than_its_scope(order, person):
    user = person("ann", "all")
    reader = Actor(user, "api", tokens.Reach(frozenset({"view"}), Scope(True)))
    assert queries.get(reader, "order", "o-1").state == "Open"
    with pytest.raises(Forbidden):
        instances.fire(reader, "order", "o-1", "ship")
    elsewhere = Actor(user, "api", tokens.Reach(frozenset({"view", "fire"}), Scope(False, frozenset({"payment"}))))
    with pytest.raises(Forbidden):
        instances.fire(elsewhere, "order", "o-1", "ship")
    assert "order" not in elsewhere.scope("fire")
