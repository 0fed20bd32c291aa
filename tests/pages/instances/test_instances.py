"""An instance's page: where it stands, its data, what happened to it, its jobs."""

from __future__ import annotations

import pytest

from tests.pages.conftest import example
from tests.pages.reading import fields, read

INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"
DEVICE = "/machines/new_device/instances/one/"


def test_the_page_lights_the_state_and_shows_the_data(as_, waiting):
    page = read(as_("viewer").get(INSTANCE))
    assert page.one("span", class_="lit").text == "Waiting"
    assert [part["data-state"] for part in page.one("svg", class_="sb-diagram").all(class_="current")] == ["Waiting"]
    data = {row.one("th").text: row.one("td").text for row in page.one("table", class_="names").all("tr")}
    assert data == {"token": '"MTOB1J"', "failed": "0", "expires": "not set", "last_logon_ts": "not set"}


def test_the_history_tells_every_step_newest_first(as_, engine, waiting):
    engine.fire("activation", waiting.id, "entitle", {"token": "no"}, actor="tv", reason="typed wrong")
    rows = read(as_("viewer").get(INSTANCE)).one("table", class_="steps").one("tbody").all("tr")
    assert [row.all("td")[0].text for row in rows] == ["3", "2", "1"]
    assert 'entitle {"token": "no"}' in rows[0].text
    assert "failed = 1" in rows[0].text
    assert "typed wrong" in rows[0].text
    assert "New → Waiting" in rows[1].text


def test_a_long_history_goes_on_page_by_page(as_, engine, waiting):
    for _ in range(70):
        engine.force("activation", waiting.id, "Active", actor="a", reason="again")
    client, seen, address = as_("viewer"), [], INSTANCE
    while address:
        page = read(client.get(address))
        seen += [int(row.all("td")[0].text) for row in page.one("table", class_="steps").one("tbody").all("tr")]
        older = page.all("a", rel="next")
        address = older[0]["href"].partition("#")[0] if older else ""
    assert seen == list(range(72, 0, -1))


@pytest.mark.parametrize("before", ["x", "-1", "1.5", "9" * 40, "٣", "%00"])
def test_older_than_what_is_no_version_is_a_400(as_, waiting, before):
    answer = as_("viewer").get(f"{INSTANCE}?before={before}")
    assert answer.status_code == 400
    assert "SB700" in read(answer).text


def test_every_form_carries_the_version_that_is_shown(as_, waiting):
    client = as_("supervisor")
    page = read(client.get(INSTANCE))
    repairs = [a["href"] for a in page.one("details", class_="repairs-panel").all("a")]
    pages = [page, *(read(client.get(address)) for address in repairs)]
    expected = [e["value"] for one in pages for e in one.all("input", name="expect")]
    assert len(expected) == 7  # two events, edit, force, reset, suspend, delete
    assert set(expected) == {"2"}


def test_work_in_progress_is_shown_with_its_queue(as_, engine, devices):
    engine.create(devices, "one", {"service": "NBCSports"})
    page = read(as_("viewer").get(DEVICE))
    assert "Waiting for a job" in page.one("section", class_="actions-panel").text
    assert "ready do_start on start" in page.one("section", class_="jobs-panel").text


def test_a_job_that_failed_says_how(as_, engine, devices):
    engine.create(devices, "one")
    (job,) = engine.take(devices, "start", "w")
    engine.fail(job, "no such <device>", kind="LookupError", trace="line 1\nline 2")
    page = read(as_("viewer").get(DEVICE))
    assert "LookupError: no such <device>" in page.one("section", class_="jobs-panel").text
    assert "attempt 1 of 3" in page.text


@pytest.fixture
def stuck(engine, db):
    """The page of an instance whose job is dead."""
    machine = engine.publish(example("service_activation")).name
    engine.create(machine, "one")
    (job,) = engine.take(machine, "todo", "w")
    engine.complete(job, {"account": "a"})
    (job,) = engine.take(machine, "devices", "w")
    engine.fail(job, "no such device", kind="LookupError", retry=False)
    return f"/machines/{machine}/instances/one/"


def test_a_dead_job_is_shown_where_it_is_waited_for(as_, stuck):
    page = read(as_("viewer").get(stuck))
    assert "dead add_device on devices" in page.one("section", class_="jobs-panel").text
    assert not page.one("section", class_="jobs-panel").all("form")
    actions = page.one("section", class_="actions-panel")
    assert "Waiting for a dead job." in actions.text
    page = read(as_("supervisor").get(stuck))
    assert page.one("section", class_="actions-panel").one("a", href="#repairs").text == "Repairs"
    assert page.one("details", id="repairs")
    assert "LookupError: no such device" in page.text


def test_a_dead_job_is_retried_where_it_is_named(as_, engine, stuck):
    client = as_("supervisor")
    panel = read(client.get(stuck)).one("section", class_="jobs-panel")
    assert panel.one("button", class_="primary").text == "Retry job"
    form = panel.one("form")
    sent = fields(form)
    assert client.post(form["action"], sent | {"reason": ""}).status_code == 400
    assert client.post(form["action"], sent | {"reason": "the device is there"}).url == stuck
    places = [wait.place for wait in engine.waits(stuck.split("/")[2], "one")]
    assert ("ready" in places, "dead" in places) == (True, False)


def test_an_instance_at_its_end_says_that_nothing_more_can_happen(as_, engine, devices):
    engine.create(devices, "one")
    engine.force(devices, "one", "end", actor="a", reason="r")
    assert "The instance has ended" in read(as_("viewer").get(DEVICE)).one("section", class_="actions-panel").text


def test_an_instance_of_an_older_version_is_drawn_as_that_version(as_, engine, waiting):
    definition = engine.definition("activation")
    definition["states"]["Brand New"] = {}
    definition["states"]["New"]["on"]["shelve"] = "Brand New"
    engine.publish(definition)
    page = read(as_("viewer").get(INSTANCE))
    assert "version 1" in page.text
    assert "Brand New" not in page.one("svg", class_="sb-diagram").text


def test_an_instance_that_is_not_there_leads_back_to_its_machine(as_, waiting):
    answer = as_("viewer").get("/machines/activation/instances/nobody/")
    page = read(answer)
    assert answer.status_code == 404
    assert "SB421" in page.text
    assert page.one("a", href="/machines/activation/")


def test_pages_are_not_kept_by_anything_in_between(as_, waiting):
    assert as_("viewer").get(INSTANCE)["Cache-Control"] == "no-store"
