"""Queues: their figures on one page, the jobs of one page by page, and what operators do to them."""

from __future__ import annotations

import re
import time

import pytest

from machines.insight.statistics import recording
from machines.models import AuditEntry
from tests.pages.reading import fields, read

QUEUE = "/queues/new_device/start/"
WHO = {"actor": "sue", "reason": "the provider is down"}


@pytest.fixture
def busy(engine, devices) -> str:
    """Five jobs on ``start``: two ready, one leased, one delayed, one dead."""
    for number in range(5):
        engine.create(devices, f"d{number}")
    dead, late, held = engine.take(devices, "start", "box:17:aa", count=3)
    engine.suspend(devices, dead.instance, **WHO)  # so that it does not deal with the death of its job
    engine.fail(dead, "no <b>device</b>", kind="LookupError", trace="line 1", retry=False)
    engine.fail(late, "slow", kind="TimeoutError", delay=3_600_000)
    assert held.worker == "box:17:aa"
    return devices


def depth(engine) -> dict[str, int]:
    return engine.stats("new_device")["start"].depth


def rows(page) -> list[str]:
    return [row["data-job"] for row in page.one("table", class_="jobs").all("tr") if "data-job" in row.attributes]


# All queues


def measure(engine) -> None:
    """As a worker does once a minute."""
    assert recording.record(engine.survey(), recording.turn(), now=int(time.time() * 1000))


def test_of_very_many_queues_those_with_dead_jobs_come_first(as_, engine, busy):
    for number in range(61):
        states = {"A": {"invoke": {"src": "work", "queue": f"q{number:03}", "onDone": "B"}}, "B": {}}
        engine.create(engine.publish({"id": f"many{number:03}", "initial": "A", "states": states}).name, "x")
    viewer = as_("viewer")
    page = read(viewer.get("/queues/"))
    shown = [row["data-queue"] for row in page.all("tr") if "data-queue" in row.attributes]
    assert shown[:2] == ["new_device/start", "many000/q000"]
    assert len(shown) == 60
    assert "60 of 66 queues" in page.one("nav", class_="pager").text
    rest = read(viewer.get("/queues/?page=2"))
    shown = [row["data-queue"] for row in rest.all("tr") if "data-queue" in row.attributes]
    assert shown[:2] == ["many059/q059", "many060/q060"]
    assert rest.one("section", data_region="queues")["data-topic"] == "queues:many059,many060,new_device"


def test_the_figures_of_every_queue_are_on_one_page(as_, engine, busy):
    measure(engine)
    job = engine.take(busy, "start", "w", now=engine.stats(busy)["start"].oldest + 300)[0]
    engine.complete(job, now=job.taken + 5000)
    measure(engine)
    row = read(as_("viewer").get("/queues/")).one("tr", data_queue="new_device/start")
    assert {cell["data-place"]: cell.text for cell in row.all("td") if "data-place" in cell.attributes} == {
        "ready": "1",
        "leased": "1",
        "delayed": "1",
        "dead": "1",
        "handled": "0",
    }
    assert row.one("td", data_oldest="").one("time")
    assert row.one("span", data_total="enqueued").text == "5"
    assert row.one("span", data_total="ended").text == "1"
    assert row.one("td", data_label="run p50, p95, last hour").text == "6.1 s 7.9 s"


def test_where_nothing_was_counted_nothing_is_claimed(as_, devices):
    row = read(as_("viewer").get("/queues/")).one("tr", data_queue="new_device/start")
    assert row.one("td", data_label="wait p50, p95, last hour").text == "– –"
    assert row.one("td", data_oldest="").text == "–"


def test_a_paused_queue_says_since_when_by_whom_and_why(as_, engine, busy):
    engine.pause(busy, "start", **WHO)
    for address in ("/queues/", QUEUE):
        text = read(as_("viewer", f"viewer-of{len(address)}").get(address)).text
        assert re.search(r"paused \d+ s ago by sue: the provider is down", text)


def test_without_queues_the_page_says_what_feeds_one(as_, activation):
    assert "No queues" in read(as_("viewer").get("/queues/")).text


@pytest.mark.parametrize("address", ["/queues/", QUEUE, f"{QUEUE}?place=ready"])
def test_who_may_not_operate_sees_no_actions(as_, busy, address):
    page = read(as_("operator").get(address))
    assert {form["action"] for form in page.all("form", method="post")} <= {
        "/accounts/logout/",
        "/account/zone/",
        "/account/theme/",
    }
    assert "Act" not in page.one("main").text


# The jobs of one


def test_a_queue_opens_on_what_is_dead(as_, busy):
    page = read(as_("viewer").get(QUEUE))
    assert page.one("a", aria_current="true").text == "dead 1"
    assert "LookupError: no <b>device</b>" in page.one("table", class_="jobs").text
    assert page.one("td", class_="of").one("a")["href"] == "/machines/new_device/instances/d0/"


@pytest.mark.parametrize(
    ("place", "count", "word"),
    [("ready", 2, "do_start"), ("leased", 1, "box:17:aa"), ("delayed", 1, "in 59 min"), ("dead", 1, "1 of 3")],
)
def test_each_place_lists_its_jobs(as_, busy, place, count, word):
    page = read(as_("viewer").get(f"{QUEUE}?place={place}"))
    assert len(rows(page)) == count
    assert word in page.one("table", class_="jobs").text
    assert f"1 to {count} of {count}" in page.text


def test_a_running_job_shows_how_far_it_is(as_, engine, busy):
    (job,) = engine.jobs(busy, "start", place="leased")
    engine.progress(job, 3, 12, "packing")
    cell = read(as_("viewer").get(f"{QUEUE}?place=leased")).one("td", class_="how-far")
    assert "3 of 12 packing" in cell.text
    assert (cell.one("progress")["value"], cell.one("progress")["max"]) == ("3", "12")


def test_an_empty_place_says_so(as_, devices):
    assert "No leased jobs." in read(as_("viewer").get(f"{QUEUE}?place=leased")).text


def test_a_place_there_is_not_is_a_404(as_, devices):
    client = as_("viewer")
    assert {client.get(QUEUE, {"place": place}).status_code for place in ("lost", "<script>", "READY")} == {404}


@pytest.fixture
def long(engine, devices) -> str:
    """120 jobs that none for."""
    engine.enqueue_many([{"machine": devices, "src": "do_start", "queue": "start"} for _ in range(120)])
    return devices


def test_jobs_come_page_by_page_and_each_once(as_, long):
    client, address, seen = as_("viewer"), f"{QUEUE}?place=ready", []
    while address:
        page = read(client.get(address))
        seen.append(rows(page))
        address = next((link["href"] for link in page.all("a", rel="next")), "")
    assert [len(found) for found in seen] == [50, 50, 20]
    assert [job for found in seen for job in found] == [f"0-{number}" for number in range(1, 121)]
    assert page.one("a", rel="prev")["href"] == f"{QUEUE}?place=ready&page=2"
    assert "101 to 120 of 120" in page.text


def test_a_page_past_the_end_is_the_last(as_, long):
    assert "101 to 120 of 120" in read(as_("viewer").get(f"{QUEUE}?place=ready&page=99")).text


def test_a_page_number_that_is_none_is_a_400(as_, long):
    client, numbers = as_("viewer"), ("0", "-1", "x", "1.5", "²", "9" * 13)
    assert {client.get(QUEUE, {"page": number}).status_code for number in numbers} == {400}


# What operators do


def act(client, name: str, given: dict[str, str], query: str = ""):
    """Fills in the form that the page shows, as a browser would, and sends it."""
    form = read(client.get(QUEUE + query)).one("form", action=f"{QUEUE}{name}/")
    return client.post(form["action"], fields(form) | given)


def audited() -> dict:
    (entry,) = AuditEntry.objects.all()
    return {name: getattr(entry, name) for name in ("actor", "action", "machine", "queue", "reason", "outcome")}


def test_pausing_and_resuming(as_, engine, busy):
    client = as_("supervisor", "sue")
    answer = act(client, "pause", {"reason": "the provider is down"}, "?place=ready")
    assert answer.url == f"{QUEUE}?place=ready"
    assert "start paused" in read(client.get(answer.url)).text
    pause = engine.list_pauses(busy)["start"]
    assert (pause.actor, pause.reason) == ("sue", "the provider is down")
    assert audited() == {
        "actor": "sue",
        "action": "queue.pause",
        "machine": "new_device",
        "queue": "start",
        "reason": "the provider is down",
        "outcome": "done",
    }
    assert act(client, "resume", {"reason": "it is back"}).status_code == 302
    assert engine.list_pauses(busy) == {}


def test_from_the_page_of_all_queues_it_goes_back_there(as_, engine, busy):
    client = as_("supervisor")
    form = read(client.get("/queues/")).one("form", action=f"{QUEUE}pause/")
    assert client.post(form["action"], fields(form) | {"reason": "r"}).url == "/queues/"
    assert "start" in engine.list_pauses(busy)


def test_limits_are_set_and_shown(as_, engine, devices):
    client = as_("supervisor")
    act(client, "limit", {"concurrency": "4", "rate": "100/s", "reason": "the provider is slow"})
    stats = engine.stats(devices)["start"]
    assert (stats.concurrency, stats.rate) == (4, "100/s")
    page = read(client.get(QUEUE))
    assert page.one("dd", data_region="limits").text == "4 concurrent 100/s"
    assert fields(page.one("form", action=f"{QUEUE}limit/"))["concurrency"] == "4"
    act(client, "limit", {"concurrency": "0", "rate": "none", "reason": "it is fast again"})
    assert read(client.get(QUEUE)).one("dd", data_region="limits").text == "none"


@pytest.mark.parametrize(
    ("given", "word"), [({"rate": "many"}, "Invalid rate"), ({"concurrency": "-1"}, "greater than or equal to 0")]
)
def test_a_limit_that_makes_no_sense_is_a_400_in_its_form(as_, engine, devices, given, word):
    answer = as_("supervisor").post(f"{QUEUE}limit/", {"reason": "r"} | given)
    assert answer.status_code == 400
    assert word in read(answer).one(id="turned").text
    assert engine.stats(devices)["start"].concurrency is None


def test_the_dead_lead_to_the_page_that_retries_them(as_, engine, busy):
    for client, links in ((as_("supervisor"), 1), (as_("viewer"), 0)):
        for address in ("/queues/", f"{QUEUE}?place=dead"):
            found = read(client.get(address)).all("a", href="/errors/retry/?queue=new_device%2Fstart")
            assert len(found) == links, (address, links)


def test_running_all_the_delayed_now(as_, engine, busy):
    act(as_("supervisor"), "move", {"reason": "no need to wait"}, "?place=delayed")
    assert depth(engine) == {"ready": 3, "leased": 1, "delayed": 0, "dead": 1, "handled": 0}
    assert audited()["action"] == "job.move"


def test_a_purge_wants_the_number_typed(as_, engine, long):
    client = as_("supervisor")
    form = read(client.get(f"{QUEUE}?place=ready")).one("form", action=f"{QUEUE}purge/")
    assert "enter 120 to confirm" in form.text
    assert fields(form)["expect"] == ""
    answer = client.post(form["action"], fields(form) | {"expect": "120", "reason": "a test"})
    assert "120 ready jobs of start purged" in read(client.get(answer.url)).text
    assert depth(engine)["ready"] == 0
    (entry,) = AuditEntry.objects.all()
    assert (entry.action, entry.detail) == ("queue.purge", {"place": "ready", "expected": 120, "count": 120})


def test_a_purge_of_another_number_is_refused_and_asks_again_with_the_new_one(as_, engine, long):
    client = as_("supervisor")
    form = fields(read(client.get(f"{QUEUE}?place=ready")).one("form", action=f"{QUEUE}purge/"))
    engine.take(long, "start", "w", count=7)
    answer = client.post(f"{QUEUE}purge/", form | {"expect": "120", "reason": "a test"})
    notice = read(answer).one(id="turned")
    assert answer.status_code == 409
    assert "You entered 120; 113 ready jobs are there now. No jobs were purged." in notice.text
    assert depth(engine)["ready"] == 113
    (entry,) = AuditEntry.objects.all()
    assert (entry.outcome, entry.detail["code"]) == ("refused", "SB441")
    again = notice.one("form")
    assert "enter 113 to confirm" in again.text
    assert fields(again)["reason"] == "a test"
    assert client.post(again["action"], fields(again) | {"expect": "113"}).status_code == 302
    assert depth(engine)["ready"] == 0


def test_on_the_page_of_all_queues_the_place_is_chosen(as_, engine, busy):
    client = as_("supervisor")
    form = read(client.get("/queues/")).one("form", action=f"{QUEUE}purge/")
    assert [option["value"] for option in form.all("option")] == ["ready", "delayed", "dead"]
    client.post(form["action"], fields(form) | {"place": "delayed", "expect": "1", "reason": "r"})
    assert depth(engine) == {"ready": 2, "leased": 1, "delayed": 0, "dead": 1, "handled": 0}


def test_nothing_happens_without_a_reason(as_, engine, busy):
    before, client = engine.stats(busy)["start"].as_dict(), as_("supervisor")
    for name in ("pause", "resume", "limit", "purge", "move"):
        answer = client.post(f"{QUEUE}{name}/", {"reason": "   ", "place": "dead", "expect": "1"})
        assert answer.status_code == 400
        assert "Enter a reason. It is recorded in the audit." in read(answer).one(id="turned").text
    assert engine.stats(busy)["start"].as_dict() | {"now": 0} == before | {"now": 0}
    assert not AuditEntry.objects.exists()


def test_a_purge_that_makes_no_sense_is_a_400(as_, engine, busy):
    client = as_("supervisor")
    for given in ({"place": "leased"}, *({"expect": typed} for typed in ("many", "0", "", "1" * 30))):
        answer = client.post(f"{QUEUE}purge/", {"reason": "r", "place": "dead", "expect": "1"} | given)
        assert answer.status_code == 400
    assert depth(engine)["dead"] == 1


def test_a_number_is_taken_with_its_commas(as_, engine, devices):
    engine.enqueue_many([{"machine": devices, "src": "do_start", "queue": "start"}] * 1001)
    answer = as_("supervisor").post(f"{QUEUE}purge/", {"reason": "r", "place": "ready", "expect": "1,001"})
    assert answer.status_code == 302
    assert depth(engine)["ready"] == 0


# Handled jobs


def test_handled_jobs_have_a_place_of_their_own(as_, engine, busy):
    engine.create(busy, "late")
    (job,) = [job for job in engine.take(busy, "start", "box:17:aa", count=10) if job.instance == "late"]
    engine.fail(job, "no device", kind="LookupError", retry=False)
    assert (depth(engine)["dead"], depth(engine)["handled"]) == (1, 1)
    client = as_("supervisor")
    page = read(client.get(f"{QUEUE}?place=handled"))
    assert rows(page) == [job.id]
    assert "in failed" in page.one("table", class_="jobs").text
    answer = client.post(f"{QUEUE}purge/", {"reason": "seen", "place": "handled", "expect": "1"})
    assert (answer.status_code, depth(engine)["handled"]) == (302, 0)
