"""The guard stops a roll-out whose new version does worse than its base."""

import logging

import pytest

from machines import duties as maintenance
from machines.audit import entries
from machines.engine import Attempts, Guard, Refused, Rollout
from machines.engine.versions.rollout.rollouts import judge_rollout
from machines.models import AuditEntry
from machines.worker.duties.engine_duties import RolloutGuard
from tests.cases import for_each
from tests.engine.builders import NOW, machine

STATES = {
    "Idle": {"on": {"start": "Busy"}},
    "Busy": {"invoke": {"src": "work", "onError": "Idle"}, "on": {"abandon": "Idle"}},
}
ONE, TWO = (machine("errand", STATES, description=text) for text in ("one", "two"))


def fire(engine, version, times, event="start"):
    """Send an event to an instance of a version again and again; go back where it was taken."""
    id = f"v{version}"
    for _ in range(times):
        if event == "start":
            engine.fire("errand", id, "start", now=NOW)
            engine.fire("errand", id, "abandon", now=NOW)
        else:
            with pytest.raises(Refused):
                engine.fire("errand", id, event, now=NOW)


@pytest.fixture
def rolled(engine):
    engine.publish(ONE)
    engine.create("errand", "v1", now=NOW)
    fire(engine, 1, 60)
    engine.publish(TWO, rollout=10)
    engine.create("errand", "v2", version=2, now=NOW)
    return engine


def test_more_refusals_than_the_base_stop_it(rolled, caplog):
    fire(rolled, 1, 30)
    fire(rolled, 1, 1, "abandon")
    fire(rolled, 2, 25)
    guard = RolloutGuard(rolled)
    assert guard.run_once() is False
    assert rolled.rollout("errand").under_way, "50 steps, and none refused"
    fire(rolled, 2, 20, "abandon")
    with caplog.at_level(logging.WARNING):
        guard.run_once()
    stopped = rolled.rollout("errand")
    assert not stopped.under_way
    assert stopped.by_guard
    assert stopped.actor == "worker"
    assert "version 2 has 20 refusals in 70 steps (29 %)" in stopped.reason
    assert stopped.figures["new"] == {"tried": 70, "refused": 20, "dead": 0}
    assert "was stopped" in caplog.text
    assert rolled.create("errand", "later").version == 1


def test_what_was_before_the_percentage_changed_does_not_count(rolled):
    fire(rolled, 2, 25)
    fire(rolled, 2, 20, "abandon")
    rolled.set_rollout("errand", 20)
    assert rolled.guard_rollout("errand") is None
    fire(rolled, 2, 25)
    assert rolled.guard_rollout("errand") is None


def test_dead_jobs_stop_it_too(rolled):
    fire(rolled, 2, 25)
    for _ in range(6):
        rolled.fire("errand", "v2", "start", now=NOW)
        (job,) = rolled.take("errand", "work", "w", now=NOW)
        rolled.fail(job, "no", retry=False, now=NOW)
    stopped = rolled.guard_rollout("errand")
    assert "6 dead jobs" in stopped.reason


def test_without_a_guard_it_goes_on(rolled):
    rolled.set_rollout("errand", 10, guard=False)
    fire(rolled, 2, 30)
    fire(rolled, 2, 50, "abandon")
    assert rolled.guard_rollout("errand") is None
    assert rolled.rollout("errand").guard is None
    rolled.set_rollout("errand", 12)
    assert rolled.rollout("errand").guard is None, "the settings stay"


@for_each(
    "new, base, stops",
    [
        (Attempts(49, 49, 0), Attempts(1000, 0, 0), False),  # fewer than the minimum
        (Attempts(50, 4, 0), Attempts(1000, 0, 0), False),  # fewer than the least number
        (Attempts(50, 5, 0), Attempts(1000, 0, 0), True),
        (Attempts(1000, 30, 0), Attempts(1000, 10, 0), False),  # exactly the factor
        (Attempts(1000, 31, 0), Attempts(1000, 10, 0), True),
        (Attempts(1000, 0, 31), Attempts(1000, 0, 10), True),
        (Attempts(1000, 999, 0), Attempts(49, 0, 0), False),  # nothing to compare with
    ],
)
def test_how_rates_are_compared(new, base, stops):
    rollout = Rollout("m", 2, 1, 5.0, since=NOW, changed=NOW, guard=Guard())
    assert bool(judge_rollout(rollout, new, base)) is stops
    assert judge_rollout(Rollout("m", 2, 1, 5.0, since=NOW, changed=NOW), new, base) == ""


@pytest.mark.django_db
def test_people_see_that_it_was_stopped(rolled, admin_client):
    fire(rolled, 2, 25)
    fire(rolled, 2, 20, "abandon")
    RolloutGuard(rolled, maintenance.report_stopped).run_once()
    entry = AuditEntry.objects.get(action="rollout.stop")
    assert (entry.machine, entry.target, entry.outcome) == ("errand", "v2", entries.DONE)
    assert "20 refusals" in entry.reason
    assert "roll-out of errand v2 stopped by its guard" in admin_client.get("/").content.decode()
