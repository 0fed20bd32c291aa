"""What dead workers held comes back; what is due is released."""

from __future__ import annotations

from machines.worker.sweeper import Sweeper
from tests.worker.builders import START, errand, places, take_one


def test_a_pass_with_nothing_to_do_says_so(engine, errand):
    errand("e1")
    assert Sweeper(engine).once() is False


def test_a_pass_takes_expired_leases_back_and_says_that_it_found_work(engine, errand):
    errand("e1")
    take_one(engine, now=START)  # years ago
    assert Sweeper(engine).once() is True
    assert places(engine) == {"ready": 1}


def test_a_pass_releases_retries_that_are_due(engine, errand):
    errand("e1")
    engine.fail(take_one(engine), "no luck", now=START)
    assert places(engine) == {"delayed": 1}
    assert Sweeper(engine).once() is True
    assert places(engine) == {"ready": 1}


def test_it_sweeps_machines_this_worker_does_not_serve(engine):
    for name in ("mine", "theirs"):
        engine.publish(errand(name))
        engine.create(name, "e1")
        engine.take(name, "errands", "gone", now=START)
    assert Sweeper(engine).once() is True
    assert [places(engine, name) for name in ("mine", "theirs")] == [{"ready": 1}, {"ready": 1}]


def test_a_machine_that_went_away_does_not_stop_the_others(engine, errand):
    errand("e1")
    take_one(engine, now=START)
    assert Sweeper(engine, lambda: ["never_was", "errand"]).once() is True
