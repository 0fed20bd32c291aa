"""Instances that were moved to another version: archived and opened again, erased, and their undo records."""

from __future__ import annotations

import io
import json
import re

import pytest
from django.core.management import call_command

from machines.catalog import publishing
from machines.engine import UnknownInstance
from machines.instances.archive.store import get_archive

from .conftest import CONTEXT, DAY, STATES, archived, parcel, run

EMAIL = "eve@example.org"
SECOND = {
    "New": {"on": {"pay": "Settled", "drop": "Dropped"}},
    "Settled": {"on": {"ship": "Delivered"}},
    "Delivered": {"type": "final"},
    "Dropped": {"type": "final"},
}
PLACES = {"Paid": "Settled", "Shipped": "Delivered"}


def second(**top):
    return parcel(**{"states": SECOND, "retain": "1d"} | top)


def undo_records(engine) -> list[str]:
    pattern = engine.keys.partition("parcel").root.replace("{", "[{]").replace("}", "[}]")
    return [key.rpartition(":")[2] for key in engine.client.scan_iter(match=f"{pattern}:undo:*")]


@pytest.fixture
def moved(engine, transactional_db):
    """``p-1`` was paid in version 1 two days ago, moved, and has ended in version 2; ``p-2`` is paid, and moved."""
    publishing.publish(parcel(retain="1d"))
    at = engine.emitted_logs().now() - 2 * DAY
    for id in ("p-1", "p-2"):
        engine.create("parcel", id, {"email": f"{id}@example.org"}, now=at)
        engine.fire("parcel", id, "pay", {"note": "x"}, actor="ann", reason="by phone", now=at)
    publishing.publish(second())
    plan = engine.plan("parcel", 2, states=PLACES)
    assert engine.migrate(plan, actor="ann", reason="names").moved == 2
    engine.fire("parcel", "p-1", "ship", now=at + 1)
    return plan


def test_a_moved_instance_is_archived_and_opened_with_its_whole_history(engine, duty, moved, admin_client):
    assert sorted(undo_records(engine)) == ["p-1", "p-2"]
    run(duty)
    assert archived() == ["p-1"]
    assert undo_records(engine) == ["p-2"]
    kept = get_archive().find("parcel", "p-1").restore()
    assert kept.raw["_def"].startswith("2:")
    events = [json.loads(step)[2] for step in kept.steps]
    assert events == ["(create)", "pay", "(migrate)", "ship"]
    assert json.loads(kept.steps[2])[7] == {"from": 1, "to": 2, "plan": moved.id}
    page = admin_client.get("/machines/parcel/instances/p-1/").content.decode()
    assert "Archived on" in page
    assert "(migrate)" in page
    assert "Delivered" in page


@pytest.mark.parametrize(("revision", "here", "elsewhere"), [(2, "Paid", "Settled"), (3, "Settled", "Paid")])
def test_each_revision_of_an_archived_instance_is_shown_on_the_diagram_of_its_version(
    duty, moved, admin_client, revision, here, elsewhere
):
    run(duty)
    page = admin_client.get(f"/machines/parcel/instances/p-1/?at={revision}").content.decode()
    assert f"showing revision {revision}" in page
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    drawn = max(drawings, key=len)
    assert f">{here}<" in drawn
    assert f">{elsewhere}<" not in drawn


def test_the_api_tells_the_archived_history_with_the_move(duty, moved, admin_client):
    run(duty)
    found = admin_client.get("/api/v1/machines/parcel/instances/p-1/history").json()
    assert [step["event"] for step in found["items"]] == ["ship", "(migrate)", "pay", "(create)"]
    one = admin_client.get("/api/v1/machines/parcel/instances/p-1").json()
    assert (one["revision"], one["version"], one["state"]) == (4, 2, "Delivered")


def test_an_instance_that_ended_and_then_moved_is_archived_in_the_new_version(engine, duty, ship):
    ship("done", retain="1d")
    publishing.publish(second())
    plan = engine.plan("parcel", 2, states=PLACES)
    assert engine.migrate(plan, actor="ann", reason="names").moved == 1
    run(duty)
    assert archived() == ["done"]
    assert get_archive().find("parcel", "done").restore().raw["_state"] == "Delivered"
    assert undo_records(engine) == []


def test_what_is_archived_meanwhile_is_neither_moved_back_nor_lost(engine, duty, moved):
    run(duty)
    back = engine.migrate(moved.inverse(), actor="ann", reason="wrong")
    assert (back.moved, back.refused) == (1, [])
    assert engine.get("parcel", "p-2").state == "Paid"
    assert archived() == ["p-1"]


def test_erasing_takes_the_undo_record_along(engine, moved):
    call_command("machine", "erase", "parcel/p-2", "--reason", "a request", stdout=io.StringIO())
    assert undo_records(engine) == ["p-1"]
    with pytest.raises(UnknownInstance):
        engine.get("parcel", "p-2")


def test_erasing_a_value_takes_undo_records_that_hold_it_along(engine, transactional_db):
    """The new version has no such field: the record alone still holds the value."""
    publishing.publish(parcel(retain="1d"))
    engine.create("parcel", "p-1", {"email": EMAIL})
    context = CONTEXT | {"properties": {k: v for k, v in CONTEXT["properties"].items() if k != "email"}}
    states = {name: STATES[name] for name in STATES}
    publishing.publish(parcel(retain="1d", context=context, states=states))
    assert engine.migrate(engine.plan("parcel", 2), actor="ann", reason="less data").moved == 1
    key = engine.keys.partition("parcel").undo("p-1")
    assert EMAIL in engine.client.get(key)
    said = io.StringIO()
    call_command("machine", "erase", "parcel", "--where", f"email={EMAIL}", "--reason", "a request", stdout=said)
    assert not engine.client.exists(key)
