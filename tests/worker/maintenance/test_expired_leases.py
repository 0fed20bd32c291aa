"""What dead workers held comes back; what is due is released."""

from __future__ import annotations

import pytest

from machines.engine import errors
from machines.worker.duties.due_work import LeaseRecovery
from tests.worker import builders
from tests.worker.builders import START, places, take_one


def test_a_pass_with_nothing_to_do_says_so(engine, errand):
    errand("e1")
    assert LeaseRecovery(engine).run_once() is False


def test_a_pass_takes_expired_leases_back_and_says_that_it_found_work(engine, errand):
    errand("e1")
    take_one(engine, now=START)  # years ago
    assert LeaseRecovery(engine).run_once() is True
    assert places(engine) == {"ready": 1}


def test_a_pass_releases_retries_that_are_due(engine, errand):
    errand("e1")
    engine.fail(take_one(engine), "no luck", now=START)
    assert places(engine) == {"delayed": 1}
    assert LeaseRecovery(engine).run_once() is True
    assert places(engine) == {"ready": 1}


def test_it_sweeps_machines_this_worker_does_not_serve(engine):
    for name in ("mine", "theirs"):
        engine.publish(builders.errand(name))
        engine.create(name, "e1")
        engine.take(name, "errands", "gone", now=START)
    assert LeaseRecovery(engine).run_once() is True
    assert [places(engine, name) for name in ("mine", "theirs")] == [{"ready": 1}, {"ready": 1}]


def test_a_machine_that_went_away_does_not_stop_the_others(engine, errand):
    errand("e1")
    take_one(engine, now=START)
    assert LeaseRecovery(engine, lambda: ["never_was", "errand"]).run_once() is True


def test_a_machine_that_cannot_be_swept_does_not_stop_the_others(engine, errand):
    engine.publish(builders.errand("broken"))
    engine.client.delete(engine.keys.partition("broken").queues)
    engine.client.set(engine.keys.partition("broken").queues, "foreign")
    errand("e1")
    take_one(engine, now=START)
    with pytest.raises(errors.EngineFault):
        LeaseRecovery(engine, lambda: ["broken", "errand"]).run_once()
    assert places(engine) == {"ready": 1}
