"""The demo's requests and its night shift: forever, in bounded space, with some dead jobs to look at."""

import json
from random import Random

import pytest

from dashboard.demo import traffic
from dashboard.demo.examples import handlers
from dashboard.demo.traffic import REQUEST_MACHINE, NightShift, Requests, Traffic
from machines.engine.definitions import outline
from machines.engine.errors import SignalboxError
from machines.worker.job import Job
from machines.worker.registry import discover
from tests.installation.processes import ROOT

pytestmark = pytest.mark.redis
ACCOUNTS = ("ATV-001:ABC", "ATV-001:HBO", "ATV-002:ABC", "ATV-002:Arte")


@pytest.fixture
def office(engine, monkeypatch):
    """Four accounts, and few requests, so that a test sees each more than once."""
    monkeypatch.setattr(traffic, "REQUESTS", 6)
    for name in ("activation", "new_device", REQUEST_MACHINE):
        engine.publish(json.loads((ROOT / "examples" / f"{name}.json").read_text()))
    for account in ACCOUNTS:
        engine.create("activation", account)
    return engine


class Day:
    """Requests, and a worker that works at once; what fails has no attempt left."""

    def __init__(self, engine, seed: int) -> None:
        self.engine = engine
        self.requests = Requests(engine, Random(seed), lambda random: random.choice(ACCOUNTS))

    def pass_by(self, beats: int) -> None:
        for _ in range(beats):
            try:
                self.requests.move()
            except SignalboxError:
                continue
            self.work_off()

    def work_off(self) -> None:
        for queue in ("todo", "entitlement", "devices"):
            for job in self.engine.take(REQUEST_MACHINE, queue, "test", count=100):
                try:
                    result = discover().get(job.src).function(Job(job))
                except OSError as error:
                    self.engine.fail(job, str(error), kind=type(error).__name__, retry=False)
                else:
                    self.engine.complete(job, result)


def dead(engine, machine=REQUEST_MACHINE, queue="devices"):
    return engine.queues(machine)[queue]["dead"]


def handled(office):
    return office.queues("new_device")["provision"]["handled"]


def test_there_are_never_more_requests_than_ids(office):
    Day(office, 1).pass_by(60)
    assert sum(office.live(REQUEST_MACHINE).flow.values()) > 30
    assert office.live(REQUEST_MACHINE).total == 6


def test_requests_go_every_way_that_customers_and_providers_have(office, monkeypatch):
    monkeypatch.setattr(handlers, "SILENT", {"HBO": 1.0})
    monkeypatch.setattr(handlers, "OVERRUN", {})
    monkeypatch.setattr(traffic, "REQUEST_RIGHT", 0.5)
    day = Day(office, 4)
    for _ in range(8):
        for account in ACCOUNTS:  # given away
            office.delete("activation", account)
            office.create("activation", account)
        day.pass_by(20)
    taken = {key.split(":")[1] for key in office.live(REQUEST_MACHINE).flow}
    every = [t for state in outline(office.definition(REQUEST_MACHINE)).states for t in state.transitions]
    assert [t.source for t in every if t.id not in taken] == ["todo"], "all of them name a device and a service"


def test_a_request_whose_offers_died_is_left_alone_until_the_night_shift_comes(office, monkeypatch):
    monkeypatch.setattr(traffic, "ENOUGH", 0)
    monkeypatch.setattr(handlers, "OVERRUN", dict.fromkeys(("ABC", "HBO", "Arte"), 1.0))
    day = Day(office, 1)
    day.pass_by(30)
    assert dead(office) == 6
    assert office.counts(REQUEST_MACHINE)["adding"] == 6
    monkeypatch.setattr(handlers, "OVERRUN", {})
    assert NightShift(office).look() >= 6
    day.work_off()
    assert (dead(office), office.counts(REQUEST_MACHINE).get("adding", 0)) == (0, 0)


def test_the_night_shift_leaves_a_few_to_look_at(office, monkeypatch):
    for number in range(3):
        office.create("new_device", f"n-{number}")
        office.force("new_device", f"n-{number}", "provision", actor="test", reason="test")
        (job,) = office.take("new_device", "provision", "test")
        office.fail(job, "no answer", retry=False)
    monkeypatch.setattr(traffic, "ENOUGH", 3)
    assert NightShift(office).look() == 0
    assert handled(office) == 3
    monkeypatch.setattr(traffic, "ENOUGH", 2)
    assert NightShift(office).look() == 3
    assert handled(office) == 0


def test_the_night_shift_waits_for_machines_that_are_not_there(engine):
    with pytest.raises(SignalboxError):
        NightShift(engine).look()


def test_the_traffic_brings_requests_along(office):
    story = Traffic(office, 1)
    for _ in range(400):
        story.beat()
    assert office.live(REQUEST_MACHINE).total == 6
