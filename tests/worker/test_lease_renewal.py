"""Signs of life."""

from __future__ import annotations

import pytest

from machines.engine import errors
from machines.worker.execution.in_flight import InFlightJobs
from machines.worker.intake.served_queues import ServedQueues
from machines.worker.job import Job
from machines.worker.lease_renewal import ROW_EVERY, InfoBuilder, LeaseRenewal

from . import builders
from .builders import LEASE, START, registry_of, take_one


@pytest.fixture
def in_flight():
    return InFlightJobs(4)


@pytest.fixture
def beating(engine, in_flight):
    """A heartbeat whose clocks stand still until they are set."""
    served_queues = ServedQueues(engine, registry_of(run=print))
    served_queues.refresh()
    lease_renewal = LeaseRenewal(
        engine, in_flight, InfoBuilder("w1", served_queues, in_flight, version="1.0"), pause=2.0, clock=lambda: clock[0]
    )
    clock = [0.0]
    lease_renewal.clock = clock
    return lease_renewal


def test_a_beat_extends_the_leases_of_running_jobs(engine, errand, in_flight, beating):
    errand("e1")
    job = Job(take_one(engine, now=START))
    in_flight.pick_up([job])
    beating.run_once()
    assert engine.sweep("errand") == 0
    assert not job.lost
    assert engine.job("errand", job.id).lease_until > START + LEASE


def test_a_withdrawn_jobs_handler_learns_of_it(engine, errand, in_flight, beating):
    errand("e1")
    job = Job(take_one(engine))
    in_flight.pick_up([job])
    engine.fire("errand", "e1", "cancel")
    beating.run_once()
    assert job.lost
    assert in_flight.list_held() == []


def test_the_row_says_who_lives_and_what_it_holds(engine, errand, in_flight, beating):
    errand("e1")
    in_flight.pick_up([Job(take_one(engine))])
    beating.run_once()
    (row,) = engine.workers()
    assert (row.id, row.queues, row.in_hand, row.version) == ("w1", ["errand/errands"], 1, "1.0")


def test_an_unchanged_row_is_written_again_before_it_would_be_forgotten(engine, errand, beating):
    beating.run_once()
    engine.leave("w1")
    beating.clock[0] = ROW_EVERY - 0.1
    beating.run_once()
    assert engine.workers() == []
    beating.clock[0] = ROW_EVERY
    beating.run_once()
    assert [row.id for row in engine.workers()] == ["w1"]


def test_it_beats_three_times_within_the_shortest_lease(engine, errand, in_flight, beating):
    assert beating.pause() == 2.0
    engine.publish(builders.errand(lease="300ms"))
    errand("e1")
    in_flight.pick_up([Job(take_one(engine))])
    assert beating.pause() == pytest.approx(0.1)


@pytest.mark.parametrize(("lease", "hurries"), [("5999ms", True), ("6s", False), ("6001ms", False)])
def test_jobs_bring_a_beat_forward_that_would_come_after_a_third_of_their_lease(
    engine, errand, beating, lease, hurries
):
    assert beating.pause() == 2.0
    long, short = builders.errand(lease="1m"), builders.errand("other", lease=lease)
    for definition in (long, short):
        engine.publish(definition)
        engine.create(definition["id"], "e1")
    jobs = [Job(take_one(engine, machine=definition["id"])) for definition in (long, short)]
    assert beating.needs_earlier_beat(jobs) is hurries
    assert beating.needs_earlier_beat(jobs[:1]) is False


def test_a_partition_that_cannot_be_reached_does_not_cost_the_leases_of_the_others(engine, errand, in_flight, beating):
    engine.publish(builders.errand("broken"))
    engine.create("broken", "e1")
    errand("e1")
    held = Job(take_one(engine, now=START))
    in_flight.pick_up([Job(take_one(engine, now=START, machine="broken")), held])
    leased = engine.keys.partition("broken").leased("errands")
    engine.client.delete(leased)
    engine.client.set(leased, "foreign")
    with pytest.raises(errors.EngineFault):
        beating.run_once()
    assert engine.job("errand", held.id).lease_until > START + LEASE
    assert [row.id for row in engine.workers()] == ["w1"]
