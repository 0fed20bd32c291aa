"""What the demo shows beside its machines: a roll-out, a move that waits for a second person,
coverage, a schedule with a history; each is prepared once."""

from __future__ import annotations

import json

import pytest

from dashboard.demo import preparation, showcase, traffic
from dashboard.demo.examples import handlers
from dashboard.demo.traffic import Traffic
from dashboard.site import home
from machines.approvals import actions as approvals
from machines.catalog.coverage import Collector
from machines.catalog.models import Machine, StoredCoverage, StoredPlan
from machines.catalog.publishing import publish
from machines.connections import get_engine
from machines.engine.definitions import compile_definition
from machines.formats import load
from machines.jobs.failures.duties import FailureFollower
from machines.models import Approval, FailureGroup
from machines.people.actor import Actor
from machines.schedules import Schedules
from machines.testing.scenarios import files, runner
from machines.worker.job import Job
from tests.instances.bulks.builders import work_off
from tests.pages.conftest import user_of
from tests.schedules.clock import Clock

__all__ = ["user_of"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("prefix")]


def start() -> str:
    """Start the demo's machines and roll-outs, as each start of the demo does."""
    preparation.machines()
    return showcase.start_rollouts()


def test_a_second_start_leaves_the_rollout_with_instances_on_both_versions():
    assert start() == "activation v2 at 20 %"
    began = get_engine().rollout("activation").since
    Traffic(get_engine(), seed=7).populate()
    assert start() == "activation v2 at 20 %"
    assert get_engine().rollout("activation").since == began
    figures = {one.version: one.instances for one in get_engine().version_figures("activation")}
    assert 10 < figures[2] < figures[1]
    assert Machine.objects.get(name="activation").current == 1


@pytest.mark.parametrize(("percent", "current"), [(0, 1), (100, 2)])
def test_a_rollout_that_a_person_ended_is_not_started_again(percent, current):
    start()
    get_engine().set_rollout("activation", percent, actor="ann", reason="seen enough")
    assert start() == "none"
    assert get_engine().live("activation").version == current


def test_a_machine_with_a_newer_version_of_a_person_gets_no_rollout():
    preparation.machines()
    newer = json.loads((home.SAMPLES / "activation.json").read_text(encoding="utf-8"))
    newer["states"]["New"]["on"]["forget"] = "New"
    publish(newer)
    assert start() == "none"


def test_the_coverage_is_what_the_scenarios_of_the_samples_cover(redis_url):
    samples = sorted(home.SAMPLES.glob("*.json"))
    definitions = {file.stem: compile_definition(load(file.read_bytes())) for file in samples}
    found = files.collect(sorted((home.SAMPLES / "tests").glob("*.yaml")), [*samples], definitions.get)
    collector = Collector()
    assert all(one.passed for one in runner.run_files(redis_url, found.files, found.definitions, collector.note_kit))
    text = collector.write()
    assert showcase.COVERAGE.read_text(encoding="utf-8") == text, "machine test --coverage"
    assert showcase.record_coverage() == "activation, delivery, new_device, payment, service_activation"
    assert StoredCoverage.find("delivery", definitions["delivery"].digest)


def test_a_schedule_has_a_history_whose_jobs_died_of_one_cause_and_end_well_when_they_are_retried(monkeypatch):
    engine, schedules = get_engine(), Schedules(get_engine())
    preparation.machines()
    for _ in range(2):
        assert "fetch-prices" in preparation.schedules()
        Clock(engine, now=engine.live("delivery").now).work()
    assert [run["o"] for run in schedules.history("fetch-prices")] == ["done"] * 16, "the backfill, once"

    assert fetch_prices() == 16
    FailureFollower(engine).look()
    group = FailureGroup.objects.get()
    assert (group.kind, group.shape) == ("ConnectionError", "the prices of the partners cannot be reached")

    monkeypatch.setattr(handlers, "PRICES_AFTER", 0)
    assert engine.redrive("service_activation", "prices", actor="ann", reason="they answer again") == 16
    assert fetch_prices() == 0


def fetch_prices() -> int:
    """Do the jobs that are ready, as a worker would. Return how many died."""
    engine = get_engine()
    for job in engine.take("service_activation", "prices", "w", count=100):
        try:
            engine.complete(job, handlers.fetch_prices(Job(job)))
        except ConnectionError as error:
            engine.fail(job, str(error), kind="ConnectionError")
    return engine.queues("service_activation")["prices"]["dead"]


def test_a_move_waits_for_a_second_person_and_is_asked_for_once(user_of, monkeypatch):
    monkeypatch.setattr(traffic, "ACTIVATIONS", 40)
    asker, second = user_of("supervisor", "supervisor"), user_of("supervisor", "ann")
    start()
    Traffic(get_engine(), seed=7).populate()
    assert not showcase.ask_for_move()
    assert not showcase.ask_for_move(), "no worker has made the preview"
    work_off(get_engine())
    assert showcase.ask_for_move()
    request = Approval.objects.get()
    assert (request.machine, request.action, request.asker) == ("activation", "migrate", asker.username)

    assert showcase.ask_for_move()
    approvals.approve(Actor(second), request.pk, note="fine")
    work_off(get_engine())
    assert {one.version: one.instances for one in get_engine().version_figures("activation")} == {1: 0, 2: 40}
    assert showcase.ask_for_move()
    assert Approval.objects.count() == StoredPlan.objects.count() == 1
