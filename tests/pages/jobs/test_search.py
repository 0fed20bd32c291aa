"""The search of the jobs of a queue: by input, error, group and time, within a budget."""

import time

import pytest

from machines.jobs import search
from tests.engine.builders import door, fields, publish
from tests.pages.reading import read

HOUR = 3_600_000
QUEUE = "/queues/door/work/"


@pytest.fixture
def yard(engine, db):
    """Four ready jobs, 0-1 to 0-4, and a dead one, 0-5."""
    publish(engine, door())
    now = int(time.time() * 1000)
    engine.enqueue("door", "work", {"order": {"id": 7}, "note": "Grüße"}, group="acme", now=now)
    engine.enqueue("door", "work", {"order": {"id": 70}, "lines": [1, 2]}, group="acme", now=now)
    engine.enqueue("door", "work", "plain text", group="beta", now=now - 2 * HOUR)
    engine.enqueue("door", "work", now=now)
    engine.enqueue("door", "work", {"n": 1}, priority=9, now=now)
    (job,) = engine.take("door", "work", "w")
    engine.fail(job, "no such device", kind="LookupError", retry=False)
    return engine


def found(page):
    return {row["data-job"] for row in page.all("tr") if "data-job" in row.attributes}


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("input=order.id%3D7", {"0-1"}),
        ("input=gr%C3%BCsse", {"0-1"}),
        ("input=PLAIN", {"0-3"}),
        ("input=lines%3D%5B1%2C+2%5D", {"0-2"}),
        ("input=order.name%3D7", set()),
        ("group=acme", {"0-1", "0-2"}),
        ("older=1h", {"0-3"}),
        ("newer=1h&group=beta", set()),
        ("place=dead&error=lookuperror", {"0-5"}),
        ("place=dead&error=timeout", set()),
    ],
)
def test_jobs_are_found(as_, yard, query, ids):
    page = read(as_("viewer").get(f"{QUEUE}?place=ready&{query}".replace("place=ready&place=", "place=")))
    assert found(page) == ids
    assert "found in" in page.one("main").text


def test_the_list_shows_groups_and_a_search_offers_actions_on_what_it_found_alone(as_, yard):
    client = as_("supervisor")
    every, some = (read(client.get(f"{QUEUE}?place=ready{more}")).one("main").text for more in ("", "&group=acme"))
    assert "group acme" in every
    assert ("Purge all ready jobs" in every, "Act on all found" in every) == (True, False)
    assert ("Purge all ready jobs" in some, "Act on all found" in some) == (False, True)


def test_a_search_says_how_far_it_came_and_goes_on(as_, yard, monkeypatch):
    monkeypatch.setattr(search, "PAGE", 2)
    monkeypatch.setattr(search, "BUDGET", 2)
    client = as_("viewer")
    page = read(client.get(f"{QUEUE}?place=ready&group=beta"))
    read_jobs = [page]
    while further := read_jobs[-1].all("a", rel="next"):
        read_jobs.append(read(client.get(further[0]["href"])))
    assert "in 2 of 4 jobs" in page.one("main").text
    assert [len(found(each)) for each in read_jobs].count(1) == 1
    assert len(read_jobs) == 3


def test_an_id_without_a_job_does_not_end_a_search(as_, yard, monkeypatch):
    monkeypatch.setattr(search, "PAGE", 2)
    yard.client.delete(yard.keys.partition("door").job("0-1"))
    assert found(read(as_("viewer").get(f"{QUEUE}?place=ready&group=beta"))) == {"0-3"}


def test_a_term_that_is_none_is_no_page(as_, yard):
    assert as_("viewer").get(f"{QUEUE}?older=soon").status_code == 404


def test_what_is_hidden_is_not_searched(as_, engine):
    publish(engine, door(context=fields(pin={"type": "string", "sensitive": True})))
    engine.enqueue("door", "work", {"pin": "1234"}, group="ann")
    client = as_("supervisor")
    assert found(read(client.get(f"{QUEUE}?place=ready&input=1234"))) == set()
    assert found(read(client.get(f"{QUEUE}?place=ready&group=ann"))) == set()
    assert found(read(client.get(f"{QUEUE}?place=ready&newer=1h"))) == {"0-1"}


def test_the_api_searches_likewise(as_, yard):
    answer = as_("viewer").get("/api/v1/machines/door/queues/work/jobs?group=acme&limit=1").json()
    assert ([job["group"] for job in answer["items"]], answer["looked"] > 0) == (["acme"], True)
    rest = as_("viewer", "bob").get(f"/api/v1/machines/door/queues/work/jobs?group=acme&cursor={answer['next']}").json()
    assert len(rest["items"]) == 1
