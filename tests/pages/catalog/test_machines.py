"""A machine's page: diagram, states, instances by state with their age, page by page."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.pages.reading import Element, fields, read

MACHINE = "/machines/activation/"
NOW = 1_700_000_000_000


def listed(page: Element) -> list[str]:
    """The ids in the list of instances, in order."""
    return [row.one("th").text for row in page.one("table", class_="instances").one("tbody").all("tr")]


@pytest.fixture
def many(engine, activation) -> list[str]:
    """120 new instances, a minute apart, oldest first."""
    ids = [f"i-{number:03}" for number in range(120)]
    for place, id in enumerate(ids):
        engine.create(activation, id, now=NOW + place * 60_000)
    return ids


def test_the_page_shows_diagram_states_and_instances(as_, waiting):
    page = read(as_("viewer").get(MACHINE))
    assert page.one("svg", class_="sb-diagram")
    assert page.one("tr", data_state="Waiting").one("td", data_count="").text == "1"
    assert listed(page) == ["ATV-123:NBCSports"]


def test_a_state_filters_the_list(as_, engine, waiting):
    engine.create("activation", "second")
    assert listed(read(as_("viewer").get(f"{MACHINE}?state=New"))) == ["second"]


def test_the_former_address_of_the_list_leads_to_the_page_with_its_filter(as_, waiting):
    answer = as_("viewer").get(f"{MACHINE}instances/?state=Waiting&q=x%20y")
    assert (answer.status_code, answer["Location"]) == (301, f"{MACHINE}?state=Waiting&q=x%20y")


def test_a_state_without_instances_says_so(as_, waiting):
    assert "No instances in Suspended." in read(as_("viewer", "v").get(f"{MACHINE}?state=Suspended")).text


def test_a_state_the_machine_never_had_is_a_404(as_, waiting):
    answer = as_("viewer").get(f"{MACHINE}?state=Actve")
    assert answer.status_code == 404
    assert "has no state Actve" in read(answer).text


def test_the_longest_in_their_state_come_first_and_the_list_can_be_turned_round(as_, many):
    client = as_("viewer")
    assert listed(read(client.get(f"{MACHINE}?state=New")))[:2] == ["i-000", "i-001"]
    assert listed(read(client.get(f"{MACHINE}?state=New&order=newest")))[:2] == ["i-119", "i-118"]


@pytest.mark.parametrize("query", ["", "?state=New", "?state=New&order=newest"])
def test_pages_follow_each_other_without_a_gap_or_a_repeat(as_, many, query):
    client, seen, address = as_("viewer"), [], f"{MACHINE}{query}"
    while address:
        page = read(client.get(address))
        seen += listed(page)
        following = page.all("a", rel="next")
        address = following[0]["href"] if following else ""
    assert sorted(seen) == many


def test_a_page_stays_put_while_instances_before_it_leave(as_, engine, many):
    client = as_("viewer")
    following = read(client.get(f"{MACHINE}?state=New")).one("a", rel="next")["href"]
    before = listed(read(client.get(following)))
    engine.fire("activation", "i-000", "activate")
    assert listed(read(client.get(following))) == before


@pytest.mark.parametrize("cursor", ["nonsense", "eyJ9", "%00", "-1", "x" * 3000])
def test_a_cursor_that_is_none_is_a_400(as_, many, cursor):
    answer = as_("viewer").get(f"{MACHINE}?state=New&cursor={cursor}")
    assert answer.status_code == 400


def test_an_instance_can_be_opened_by_its_id(as_, waiting):
    answer = as_("viewer").get(MACHINE, {"open": "ATV-123:NBCSports"})
    assert answer.url == "/machines/activation/instances/ATV-123:NBCSports/"


def test_instances_of_a_state_that_only_older_versions_have_are_still_listed(as_, engine, waiting, activation):
    definition = engine.definition(activation)
    definition["states"]["Pending"] = definition["states"].pop("Waiting")
    definition["states"]["New"]["on"]["activate"]["target"] = "Pending"
    definition["states"]["Suspended"]["on"]["entitle"]["target"] = "Pending"
    engine.publish(definition)
    page = read(as_("viewer").get(f"{MACHINE}?state=Waiting"))
    assert listed(page) == ["ATV-123:NBCSports"]
    assert "Pending" in page.text


def test_the_drawing_can_be_had_alone_and_kept(as_, activation):
    client = as_("viewer")
    answer = client.get(f"{MACHINE}diagram.svg?version=1")
    assert answer["Content-Type"] == "image/svg+xml; charset=utf-8"
    assert answer.content.startswith(b"<?xml")
    assert b"<style>" in answer.content
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    again = client.get(f"{MACHINE}diagram.svg?version=1", headers={"If-None-Match": answer["ETag"]})
    assert again.status_code == 304


def test_a_drawing_made_in_another_way_is_another_drawing(as_, waiting, monkeypatch):
    client = as_("viewer")
    before = client.get(f"{MACHINE}diagram.svg?version=1")["ETag"]
    monkeypatch.setattr("machines.diagrams.DRAWING", 999)
    answer = client.get(f"{MACHINE}diagram.svg?version=1", headers={"If-None-Match": before})
    assert answer.status_code == 200
    assert answer["ETag"] != before


@pytest.mark.parametrize("version", ["9", "0", "-1", "x", "9" * 30, "%F0%9F%9A%A6", "\u0663"])
def test_a_drawing_of_a_version_there_is_not_is_a_404(as_, activation, version):
    assert as_("viewer").get(f"{MACHINE}diagram.svg?version={version}").status_code == 404


def test_whoever_may_fire_creates_an_instance_with_its_data(as_, engine, activation):
    client = as_("operator", "alice")
    form = fields(read(client.get(MACHINE)).one("form", action=f"{MACHINE}create/"))
    form |= {"id": "made/by hand", "data-failed": "2", "data-token": "abc", "reason": "a test"}
    answer = client.post(f"{MACHINE}create/", form)
    assert answer.url == reverse("signalbox:instance", args=["activation", "made/by hand"])
    made = engine.get("activation", "made/by hand")
    assert made.data == {"token": "abc", "failed": 2}
    assert engine.history("activation", made.id)[0].actor == "alice"
    assert "made/by hand created, in New" in read(client.get(answer.url)).text


def test_creating_without_an_id_twice_by_one_form_makes_one_instance(as_, engine, activation):
    client = as_("operator")
    form = fields(read(client.get(MACHINE)).one("form", action=f"{MACHINE}create/"))
    first, second = client.post(f"{MACHINE}create/", form), client.post(f"{MACHINE}create/", form)
    assert first.url == second.url
    assert engine.counts("activation")["New"] == 1


@pytest.mark.parametrize(
    ("changes", "status", "word"),
    [
        ({"data-failed": "many"}, 400, "Enter a whole number"),
        ({"data-failed": "many"}, 400, "SB701"),
        ({"id": "ATV-123:NBCSports"}, 409, "already has an instance"),
        ({"id": "ATV-123:NBCSports"}, 409, "SB422"),
        ({"id": "x" * 201}, 400, "at most 200 characters"),
        ({"id": "é" * 150}, 400, "instance id"),
        ({"id": "   "}, 400, "SB401"),
        ({"id": "a\0b"}, 400, "Null characters are not allowed"),
        ({"id": "a\nb"}, 400, "instance id"),
    ],
)
def test_what_cannot_be_created_is_said_in_the_form_which_stays_filled(as_, engine, waiting, changes, status, word):
    client = as_("operator")
    form = fields(read(client.get(MACHINE)).one("form", action=f"{MACHINE}create/")) | {"data-token": "keep me"}
    answer = client.post(f"{MACHINE}create/", form | changes)
    page = read(answer)
    assert answer.status_code == status
    assert word in page.one("details", id="create").text
    assert fields(page.one("form", action=f"{MACHINE}create/"))["data-token"] == "keep me"
    assert sum(engine.counts("activation").values()) == 1


def test_who_may_only_look_gets_no_form(as_, activation):
    assert not read(as_("viewer").get(MACHINE)).all("form", action=f"{MACHINE}create/")


def test_a_machine_of_very_many_states_can_still_be_read(as_, engine, db):
    states = {f"s{number}": {"on": {"go": f"s{(number + 1) % 60}", "jump": "s30"}} for number in range(60)}
    engine.publish({"id": "long", "initial": "s0", "states": states})
    engine.create("long", "one")
    page = read(as_("viewer").get("/machines/long/"))
    assert [tab.text for tab in page.one("nav", class_="tabs").all("a")] == ["all 1", "s0 1"]
    assert len(page.one("section", aria_labelledby="states-title").all("tr")) == 60
    assert page.one("div", class_="diagram").has("class", "vast")
