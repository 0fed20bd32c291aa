"""The page of all bulk actions: what it shows, to whom, and its buttons."""

from __future__ import annotations

import pytest
from guardian.shortcuts import assign_perm

from machines.catalog import publishing
from machines.instances.bulks import BULK, handlers
from machines.models import AuditEntry, Machine
from machines.worker.registry import discover
from tests.instances.bulks.builders import finished, parcels, previewed, step
from tests.pages.reading import read

PAGE = "/bulk/"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    discover()
    monkeypatch.setattr(handlers, "TURN", 25)


@pytest.fixture
def shop(engine, db):
    parcels(engine, 60)
    return engine


def rows(answer) -> list:
    return [row for row in read(answer).all("tr") if "data-bulk" in row.attributes]


def test_without_any_the_page_says_how_to_start_one(as_, db):
    assert "No bulk actions. Start one in the list of a machine" in read(as_("viewer").get(PAGE)).text


def test_each_has_its_status_progress_rate_and_time_left(as_, shop):
    bulk = previewed(shop)
    bulk.run("ann")
    step(shop, "act")
    (row,) = rows(as_("viewer").get(PAGE))
    assert row["data-bulk"] == bulk.id
    for words in ("Fire send on parcel", "the van is late", "running", "25 of 60 processed", "ann", "/s", "left"):
        assert words in " ".join(row.text.split()), words
    assert row.all("button") == []


def test_what_was_refused_is_counted_and_leads_to_it(as_, shop):
    for number in range(3):
        shop.create("parcel", f"heavy-{number}", {"weight": 50})
    bulk = finished(shop)
    (row,) = rows(as_("viewer").get(PAGE))
    (link,) = [one for one in row.all("a") if one.text == "3"]
    assert link["href"] == f"/bulk/{bulk.id}/?outcome=refused"
    assert "done" in row.text


def test_the_list_is_filtered_by_status(as_, shop):
    done, waiting = finished(shop), previewed(shop, filter={"state": "sent"}, event="back")
    client = as_("viewer")
    assert [row["data-bulk"] for row in rows(client.get(PAGE))] == [waiting.id, done.id]
    assert [row["data-bulk"] for row in rows(client.get(PAGE, {"state": "done"}))] == [done.id]
    assert rows(client.get(PAGE, {"state": "failed"})) == []
    assert client.get(PAGE, {"state": "lost"}).status_code == 404
    assert client.get(PAGE, {"cursor": "%00"}).status_code == 404


def test_operators_pause_resume_and_stop_from_the_list(as_, shop):
    bulk = previewed(shop)
    bulk.run("ann")
    client = as_("supervisor")
    for action, state in (("pause", "paused"), ("resume", "running"), ("stop", "stopped")):
        (row,) = rows(client.get(PAGE))
        (form,) = [one for one in row.all("form") if one["action"].endswith(f"/{action}/")]
        answer = client.post(form["action"], {"next": PAGE})
        assert (answer.status_code, answer.url, bulk.get().state) == (302, PAGE, state)
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == [
        "bulk.pause", "bulk.resume", "bulk.stop",
    ]  # fmt: skip


def test_only_bulk_actions_on_machines_in_scope_are_listed(as_, shop):
    bulk = previewed(shop)
    shop.publish({"id": "other", "initial": "A", "states": {"A": {}}})
    client = as_("nobody")
    user = client.get("/account/").wsgi_request.user
    publishing.adopt("other")
    assign_perm("machines.view_machine", user, Machine.objects.get(name="other"))
    assert rows(client.get(PAGE)) == []
    publishing.adopt("parcel")
    assign_perm("machines.view_machine", user, Machine.objects.get(name="parcel"))
    assert [row["data-bulk"] for row in rows(client.get(PAGE))] == [bulk.id]


def test_an_instance_that_nobody_ordered_is_not_listed(as_, shop):
    previewed(shop)
    shop.create(BULK, "forged", {"machine": "parcel", "action": "delete", "reason": "x", "actor": "root"})
    assert "forged" not in {row["data-bulk"] for row in rows(as_("viewer").get(PAGE))}


def test_the_page_of_one_says_its_rate_and_time_left(as_, shop):
    bulk = previewed(shop)
    bulk.run("ann")
    assert "time left not known yet" in read(as_("viewer").get(f"/bulk/{bulk.id}/")).text
    step(shop, "act")
    assert " left" in read(as_("viewer", "v2").get(f"/bulk/{bulk.id}/")).one(**{"data-region": "head"}).text
