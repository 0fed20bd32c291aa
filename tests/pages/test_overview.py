"""The first page: what there is, how much of it, and what needs a person."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from dashboard.pages import alarms
from dashboard.pages.depths import Depth
from machines.engine import WorkerRow
from machines.models import Machine

from .reading import read


def worker(*queues: str, ago: float = -3600) -> WorkerRow:
    """A worker that was seen so many seconds ago; the cases below are made long before they run."""
    now = int(time.time() * 1000)
    return WorkerRow("w1", "box", 1, list(queues), 0, now, now - int(ago * 1000), "0.1.0")


def quiet(*queues: str) -> WorkerRow:
    """One that takes no further jobs."""
    return replace(worker(*queues), status="quiet")


def test_an_empty_site_says_how_to_publish_a_first_machine(as_, prefix):
    page = read(as_("publisher").get("/"))
    assert "Nothing is published yet" in page.text
    assert "python manage.py machine publish examples/activation.json" in page.text


def test_a_machine_without_instances_says_how_to_create_one(as_, activation):
    operator, viewer = read(as_("operator").get("/")), read(as_("viewer").get("/"))
    assert operator.one("a", href="/machines/activation/#create")
    assert 'engine.create("activation"' in viewer.text
    assert not viewer.all("a", href="/machines/activation/#create")


def test_every_machine_shows_its_counts_by_state_in_the_order_of_the_definition(as_, engine, waiting):
    engine.create("activation", "second")
    panel = read(as_("viewer").get("/")).one("section", data_machine="activation")
    assert panel.one(data_total="").text == "2"
    counts = [(block["data-state"], block.one(data_count="").text) for block in panel.all("a", class_="block")]
    assert counts == [("New", "1"), ("Waiting", "1"), ("Active", "0"), ("Suspended", "0")]


def test_a_machine_with_many_states_shows_the_fullest_and_says_how_many_are_left_out(as_, engine, db):
    states = {f"s{number}": {"on": {"go": "s29"}} for number in range(30)}
    engine.publish({"id": "long", "initial": "s0", "states": states})
    engine.create("long", "one")
    engine.fire("long", "one", "go")
    panel = read(as_("viewer").get("/")).one("section", data_machine="long")
    assert "18 more states" in panel.text
    assert panel.one("a", data_state="s29").one(data_count="").text == "1"


def test_queue_depths_and_workers_are_on_the_first_page(as_, engine, devices):
    engine.create(devices, "one")
    engine.beat(worker("new_device/start", ago=0))
    page = read(as_("viewer").get("/"))
    row = page.one("tr", data_queue="new_device/start")
    assert row.one("td", data_place="ready").text == "1"
    assert "box 1" in page.text


def test_a_machine_a_script_published_shows_without_anyone_adopting_it(as_, engine, activation):
    assert not Machine.objects.exists()
    assert read(as_("viewer").get("/")).one("section", data_machine="activation")
    assert Machine.objects.filter(name="activation").exists()


def test_a_machine_redis_no_longer_has_is_named(as_, engine, activation):
    client = as_("viewer")
    client.get("/")
    engine.client.delete(engine.keys.machines)
    assert "Machine activation is known here, but Redis does not have it" in read(client.get("/")).text


def test_redis_away_is_a_503_with_its_code(as_, activation, settings):
    client = as_("viewer")
    settings.REDIS_URL = "unix:///nonexistent/signalbox.sock"
    answer = client.get("/")
    assert answer.status_code == 503
    assert "SB500" in read(answer).text


@pytest.mark.parametrize(
    ("depth", "workers", "said"),
    [
        (Depth("m", "q", 0, 0, 0, 0), [], []),
        (Depth("m", "q", 0, 0, 0, 1), [], ["1 job dead on m/q"]),
        (Depth("m", "q", 1200, 0, 0, 0), [], ["1,200 jobs ready on m/q, and no worker serves it"]),
        (Depth("m", "q", 1, 0, 0, 0), [worker("m/other")], ["1 job ready on m/q, and no worker serves it"]),
        (Depth("m", "q", 1, 0, 0, 0), [worker("m/q", ago=60)], ["1 job ready on m/q, and no worker serves it"]),
        (Depth("m", "q", 1, 0, 0, 0), [worker("m/q")], []),
        (Depth("m", "q", 1, 0, 0, 0), [quiet("m/q")], ["1 job ready on m/q, and no worker serves it"]),
    ],
)
def test_an_alarm_is_raised_for_what_will_not_mend_itself(depth, workers, said):
    assert [alarm.text for alarm in alarms.raised([depth], workers)] == said


@pytest.mark.parametrize(
    ("overdue", "workers", "said"),
    [
        ({"m": 0}, [], []),
        ({"m": 1}, [], ["1 timer of m overdue, and no worker is running"]),
        ({"m": 1200}, [worker("m/q", ago=60)], ["1,200 timers of m overdue, and no worker is running"]),
        ({"m": 3}, [worker("m/q")], []),  # it is about to fire them
    ],
)
def test_timers_that_nobody_fires_raise_an_alarm(overdue, workers, said):
    raised = alarms.raised([], workers, overdue)
    assert [alarm.text for alarm in raised] == said
    assert [alarm.url for alarm in raised] == ["/machines/m/"] * len(said)


def test_an_alarm_leads_to_what_it_is_about():
    raised = alarms.raised([Depth("m", "q", 1, 0, 0, 2)], [])
    assert [alarm.url for alarm in raised] == ["/queues/m/q/?place=dead", "/queues/m/q/"]
