"""Bulks on the pages: the way from a list to a bulk, its dry run, its actions, its file, and who may."""

from __future__ import annotations

import csv
import io

import pytest
from django.contrib.auth.models import Permission

from machines.catalog import builtin_machines
from machines.engine import UnknownMachine
from machines.instances.bulks import BULK, Bulk
from machines.models import AuditEntry
from machines.worker.registry import discover
from tests.instances.bulks import test_migrate as migrations
from tests.instances.bulks.builders import PARCEL, finished, order, parcels, step, work_off
from tests.pages.reading import fields, read
from tests.worker.builders import errand

NEW = "/machines/parcel/bulk/?state=open"
FIRE = f"{NEW}&do=fire&event=send"
FORCE = f"{NEW}&do=force"


@pytest.fixture(autouse=True)
def handlers():
    discover()


@pytest.fixture
def shop(engine, db):
    """Thirty open parcels; one is too heavy to be sent."""
    parcels(engine, 29)
    engine.create("parcel", "heavy", {"weight": 50})
    return engine


def started(client, address=FIRE, **given):
    """The address of a bulk that was made with the form of this page."""
    form = fields(read(client.get(address)).one("form", id="bulk"))
    answer = client.post(address, form | {"reason": "the van is late"} | given)
    assert answer.status_code == 302, read(answer).text
    return answer.url


def pull(client, page, name):
    answer = client.post(f"{page}{name}/")
    assert answer.url == page
    return read(client.get(page))


def only(page):
    """The id of the bulk of this page."""
    return page.strip("/").split("/")[1]


def test_a_list_leads_to_what_can_be_done_with_all_it_finds(as_, shop):
    client = as_("supervisor")
    listed = read(client.get("/machines/parcel/?state=open&order=newest"))
    (link,) = [a for a in listed.all("a") if "Bulk action on all results (30)" in a.text]
    assert link["href"] == NEW
    choices = [a.text for a in read(client.get(NEW)).one("nav", class_="tabs").all("a")]
    assert choices[0].startswith("fire ")
    assert choices[-5:] == ["force", "reset", "suspend", "resume", "delete"]


def test_what_a_list_does_not_find_opens_no_form(as_, shop):
    answer = as_("supervisor").get("/machines/parcel/bulk/?tag=nope")
    assert answer.status_code == 400
    assert "SB412" in read(answer).text
    assert "no state with the tag" in read(answer).text


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_may_not_operate_sees_no_way_there(as_, shop, role):
    page = as_(role).get("/machines/parcel/").content.decode()
    assert "/machines/parcel/bulk/" not in page


def test_from_the_form_to_the_last_outcome(as_, shop):
    client = as_("supervisor", "sue")
    page = started(client, **{"payload-by": "van", "rate": "500"})
    assert "collecting" in read(client.get(page)).one("div", data_region="head").text
    work_off(shop)
    asked = read(client.get(page))
    assert "previewed" in asked.one("div", data_region="head").text
    assert asked.one("div", data_verdict="taken").text == "would succeed 29"
    assert asked.one("div", data_verdict="refused").text == "would be refused 1"
    assert "weight" in asked.one("section", data_region="items").text
    assert shop.counts("parcel")["open"] == 30
    assert "Started" in pull(client, page, "run").text
    work_off(shop)
    done = read(client.get(page))
    assert done.one("div", data_outcome="done").text == "done 29"
    step = shop.history("parcel", "p0")[0]
    assert (step.actor, step.payload) == ("sue", {"by": "van"})


def test_the_jobs_of_a_machine_can_be_cancelled(as_, engine, db):
    engine.publish(errand())
    for number in range(3):
        engine.create("errand", f"e{number}")
    client = as_("supervisor")
    page = started(client, "/machines/errand/bulk/?state=doing&do=cancel", invoke="doing")
    work_off(engine)
    pull(client, page, "run")
    work_off(engine)
    assert engine.counts("errand") == {"doing": 0, "done": 0, "failed": 3, "cancelled": 0}


def test_pause_resume_and_stop(as_, shop):
    parcels(shop, 0)
    client = as_("supervisor")
    page = started(client)
    work_off(shop)
    pull(client, page, "run")
    assert "paused" in pull(client, page, "pause").one("div", data_region="head").text
    assert "running" in pull(client, page, "resume").one("div", data_region="head").text
    assert "stopped" in pull(client, page, "stop").one("div", data_region="head").text
    assert "Not done: bulk" in pull(client, page, "resume").text
    work_off(shop)
    assert shop.counts("parcel")["open"] == 30


def test_those_that_failed_again(as_, shop):
    client = as_("supervisor")
    page = started(client)
    work_off(shop)
    pull(client, page, "run")
    work_off(shop)
    assert "Enter a reason" in read(client.post(f"{page}again/")).text
    form = fields(read(client.get(page)).one("form", action=f"{page}again/")) | {"reason": "weighed anew"}
    second = client.post(f"{page}again/", form).url
    assert client.post(f"{page}again/", form).url == second, "pressed twice it is one bulk"
    work_off(shop)
    found = read(client.get(second))
    assert [a.text for a in found.one("section", data_region="items").all("a", class_="key")] == ["heavy"]
    assert page in [a["href"] for a in found.all("a")]


def test_the_results_as_csv(as_, shop):
    shop.create("parcel", "=1+1")
    client = as_("supervisor")
    page = started(client)
    work_off(shop)
    pull(client, page, "run")
    work_off(shop)
    answer = as_("viewer").get(f"{page}results.csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert len(rows) == 31
    by_id = {row["instance"]: row for row in rows}
    assert by_id["'=1+1"]["outcome"] == "done"
    assert (by_id["heavy"]["verdict"], by_id["heavy"]["outcome"]) == ("refused", "refused")
    assert "weight" in by_id["heavy"]["outcome_why"]
    assert by_id["p0"]["state"] == "open"


def test_a_form_sent_twice_makes_one_bulk(as_, shop):
    client = as_("supervisor")
    form = fields(read(client.get(FIRE)).one("form", id="bulk")) | {"reason": "the van is late"}
    assert client.post(FIRE, form).url == client.post(FIRE, form).url
    assert client.post(FIRE, form | {"reason": "another"}).url != client.post(FIRE, form).url
    assert sum(shop.counts(BULK).values()) == 2


@pytest.mark.parametrize(
    ("address", "given", "word"),
    [
        (FIRE, {"reason": "  "}, "Enter a reason"),
        (FIRE, {"reason": "x" * 901}, "at most 900"),
        (FIRE, {"rate": "-1"}, "greater than or equal to 0"),
        (FORCE, {"states": ""}, "Choose a state"),
        (FORCE, {"states": "nowhere"}, "not one of the available choices"),
    ],
)
def test_a_mistake_is_a_400_in_its_form_and_makes_nothing(as_, shop, address, given, word):
    answer = as_("supervisor").post(address, {"reason": "a test"} | given)
    assert answer.status_code == 400
    assert word in read(answer).text
    assert BULK not in shop.machines()


@pytest.mark.parametrize("query", ["?do=explode", "?do=fire&event=nothing", "?state=nowhere"])
def test_what_there_is_not_is_a_404(as_, shop, query):
    assert as_("supervisor").get(f"/machines/parcel/bulk/{query}").status_code == 404


def test_an_event_asks_for_the_right_to_fire(user_of, as_, shop):
    client = as_("supervisor", "sue")
    page = started(client)
    work_off(shop)
    user = user_of("nobody", "olga")
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_machine", "operate_machine"]))
    client.force_login(user)
    assert client.get(FIRE).status_code == 403
    assert client.post(f"{page}run/").status_code == 403
    assert read(client.get(page)).all("form", action=f"{page}run/") == []
    assert Bulk(shop, only(page)).get().state == "previewed"
    other = started(client, FORCE, states="lost")
    work_off(shop)
    assert "Run on 30" in read(client.get(other)).text


def test_each_action_is_in_the_audit(as_, shop):
    client = as_("supervisor", "sue")
    page = started(client)
    work_off(shop)
    for name in ("run", "pause", "resume", "stop", "pause"):
        client.post(f"{page}{name}/")
    entries = [(e.action, e.outcome, e.machine, e.target) for e in AuditEntry.objects.order_by("pk")]
    id = only(page)
    words = ["start", "run", "pause", "resume", "stop"]
    assert entries[:5] == [(f"bulk.{word}", "done", "parcel", id) for word in words]
    assert entries[5:] == [("bulk.pause", "refused", "parcel", id)]
    first = AuditEntry.objects.order_by("pk").first()
    assert (first.reason, first.detail["does"], first.detail["filter"]) == (
        "the van is late",
        "fire send",
        {"state": "open"},
    )


def test_the_list_of_instances_is_paged(as_, engine, db):
    parcels(engine, 230)
    bulk = Bulk.start(engine, order())
    step(engine, "collect")
    client = as_("viewer")
    seen, address = [], f"/bulk/{bulk.id}/"
    while address:
        page = read(client.get(address))
        seen += [a.text for a in page.one("section", data_region="items").all("a", class_="key")]
        following = page.all("a", rel="next")
        address = following[0]["href"] if following else ""
    assert sorted(seen) == sorted(f"p{number}" for number in range(230))


def test_those_with_one_verdict_or_outcome_are_listed_alone(as_, engine, db):
    parcels(engine, 450)
    engine.create("parcel", "heavy", {"weight": 50})
    bulk = finished(engine)
    client = as_("viewer")
    page = read(client.get(f"/bulk/{bulk.id}/"))
    for kind in ("verdict", "outcome"):
        tile = page.one("div", **{f"data_{kind}": "refused"})
        alone = read(client.get(tile.one("a")["href"])).one("section", data_region="items")
        assert [a.text for a in alone.all("a", class_="key")] == ["heavy"]
    done = read(client.get(f"/bulk/{bulk.id}/?outcome=done"))
    assert done.one("a", rel="next")["href"].endswith("?outcome=done&from=100")
    assert read(client.get(f"/bulk/{bulk.id}/?outcome=<b>")).one("p", class_="empty").text == "No results."


def test_a_bulk_is_an_instance_like_any_other_and_leads_to_its_results(as_, shop):
    bulk = Bulk.start(shop, order())
    page = read(as_("viewer").get(f"/machines/bulk/instances/{bulk.id}/"))
    assert page.all("a", href=f"/bulk/{bulk.id}/")


@pytest.mark.parametrize("start", ["x", "-1", "1e3", "9" * 20])
def test_no_such_page_of_it(as_, shop, start):
    bulk = Bulk.start(shop, order())
    assert as_("viewer").get(f"/bulk/{bulk.id}/?from={start}").status_code == 404


def test_an_instance_made_by_hand_has_no_page_here(as_, engine, db):
    engine.publish(PARCEL)
    builtin_machines.publish(engine, BULK)
    engine.create(BULK, "forged", {"machine": "../x"})
    client = as_("supervisor")
    assert client.get("/bulk/forged/").status_code == 404
    assert client.post("/bulk/forged/run/").status_code == 404


def test_without_any_bulk_there_is_no_such_machine(as_, engine, db):
    assert as_("viewer").get("/bulk/3f2a/").status_code == 404
    with pytest.raises(UnknownMachine):
        engine.live(BULK)


def test_a_migration_shows_its_plan_its_classes_and_what_is_refused(as_, engine, db):
    migrations.parcels(engine, 120, held=2)
    page = f"/bulk/{migrations.finished(engine).id}/"
    client = as_("supervisor")
    shown = read(client.get(page))
    assert shown.one("h1").text == f"Migrate to version 2 by plan {migrations.plan(engine).id}"
    rows = [
        [cell.text for cell in row.all("td")] for row in shown.one("section", aria_labelledby="classes").all("tr")[1:]
    ]
    assert [row[:4] for row in rows] == [["v1", "open", "moves", "open"], ["v1", "held", "refused", ""]]
    assert "SB610" in rows[1][4]
    assert shown.one("div", data_verdict="taken").text == "would move 118"
    moved = shown.one("section", aria_labelledby="items")
    assert any("would move" in row.text for row in moved.all("tr"))
    for table in shown.all("table"):  # narrow pages stack the cells, each with the name of its column
        assert all("data-label" in cell.attributes for cell in table.all("td"))
    refused = read(client.get(f"{page}?outcome=refused"))
    assert "p0000" in refused.text
    assert "p0100" not in refused.text
    written = client.get(f"{page}results.csv")
    lines = list(csv.reader(io.StringIO(b"".join(written.streaming_content).decode())))
    assert len(lines) == 121
    assert lines[100][3:6:2] == ["taken", "done"]
