"""Queues: how much is where, and each job with its error."""

from __future__ import annotations

import pytest

from .reading import read

QUEUE = "/queues/new_device/start/"


@pytest.fixture
def busy(engine, devices) -> str:
    """Five jobs on ``start``: two ready, one leased, one delayed, one dead."""
    for number in range(5):
        engine.create(devices, f"d{number}")
    dead, late, held = engine.take(devices, "start", "box:17:aa", count=3)
    engine.fail(dead, "no <b>device</b>", kind="LookupError", trace="line 1", retry=False)
    engine.fail(late, "slow", kind="TimeoutError")
    assert held.worker == "box:17:aa"
    return devices


def test_depths_of_every_queue_are_on_one_page(as_, busy):
    page = read(as_("viewer").get("/queues/"))
    row = page.one("tr", data_queue="new_device/start")
    assert {cell["data-place"]: cell.text for cell in row.all("td")} == {
        "ready": "2",
        "leased": "1",
        "delayed": "1",
        "dead": "1",
    }


def test_without_queues_the_page_says_what_feeds_one(as_, activation):
    assert "No machine feeds a queue" in read(as_("viewer").get("/queues/")).text


def test_a_queue_opens_on_what_is_dead(as_, busy):
    page = read(as_("viewer").get(QUEUE))
    assert "LookupError: no <b>device</b>" in page.one("table", class_="jobs").text
    assert page.one("table", class_="jobs").one("a", class_="key")["href"] == "/machines/new_device/instances/d0/"


@pytest.mark.parametrize(
    ("place", "count", "word"),
    [("ready", 2, "do_start"), ("leased", 1, "box:17:aa"), ("delayed", 1, "TimeoutError: slow"), ("dead", 1, "1 of 3")],
)
def test_each_place_lists_its_jobs(as_, busy, place, count, word):
    table = read(as_("viewer").get(f"{QUEUE}?place={place}")).one("table", class_="jobs")
    assert len(table.one("tbody").all("tr")) == count
    assert word in table.text


def test_an_empty_place_says_so(as_, devices):
    assert "No job is leased." in read(as_("viewer").get(f"{QUEUE}?place=leased")).text


@pytest.mark.parametrize("place", ["lost", "<script>", "READY"])
def test_a_place_there_is_not_is_a_404(as_, devices, place):
    assert as_("viewer").get(QUEUE, {"place": place}).status_code == 404
