"""What was damaged from outside is put right by any worker, and worked off."""

from __future__ import annotations

import logging

import pytest

from machines.engine import Engine, errors
from machines.worker.duties.engine_duties import JobCheck
from tests.installation.processes import eventually
from tests.worker import builders
from tests.worker.builders import Running, places, registry_of


def ready(engine):
    return engine.keys.partition("errand").ready("errands")


def walk(mender):
    """Steps until one walk is over; of each, whether the next was to come at once."""
    hurried = [mender.run_once()]
    while mender.pause() < 100:
        hurried.append(mender.run_once())
    return hurried


def test_a_walk_over_what_is_in_order_changes_and_says_nothing(engine, errand, caplog):
    errand("e1")
    with caplog.at_level(logging.WARNING, "machines.worker"):
        assert not any(walk(JobCheck(engine)))
    assert caplog.messages == []
    assert places(engine) == {"ready": 1}


def test_what_it_mends_is_told(engine, errand, caplog):
    errand("e1")
    engine.client.delete(ready(engine))
    engine.client.zadd(engine.keys.partition("errand").dead("errands"), {"0-9": 1})
    mender = JobCheck(engine)
    with caplog.at_level(logging.WARNING, "machines.worker"):
        walk(mender)
        walk(mender)
    assert places(engine) == {"ready": 1}
    assert [message.partition("mended: ")[2] for message in caplog.messages] == ["1 ready", "1 ghosts"]


def test_the_next_step_comes_at_once_while_it_mends_and_the_walk_is_not_over(engine, errand):
    errand("e1")
    jobs = [{"machine": "errand", "src": "run", "queue": "errands"} for _ in range(2500)]
    engine.enqueue_many(jobs)
    engine.client.delete(ready(engine))
    mender = JobCheck(engine)
    hurried = walk(mender)
    assert (hurried.count(True) > 1, hurried[-1]) == (True, False)
    assert places(engine) == {"ready": 2501}
    assert not any(walk(mender))


def test_what_cannot_be_mended_is_told_once(engine, errand, caplog):
    errand("e1")
    engine.client.delete(ready(engine))
    engine.client.set(ready(engine), "foreign")
    mender = JobCheck(engine)
    with caplog.at_level(logging.WARNING, "machines.worker"):
        for _ in range(3):
            walk(mender)
        assert len(caplog.messages) == 1
        assert "WRONGTYPE" in caplog.messages[0]
        engine.client.delete(ready(engine))
        walk(mender)
    assert places(engine) == {"ready": 1}


def test_an_account_that_may_not_scan_rests_and_is_told_once(own_server, caplog):
    owner = Engine.from_url(own_server.url)
    owner.client.acl_setuser("worker", enabled=True, nopass=True, keys=["*"], commands=["+@all", "-scan"])
    engine = Engine.from_url(own_server.url, username="worker", password="any")
    mender = JobCheck(engine)
    with caplog.at_level(logging.WARNING, "machines.worker"):
        assert walk(mender) + walk(mender) == [False, False]
    assert len(caplog.messages) == 1
    assert "scan" in caplog.messages[0].lower()
    for each in (engine, owner):
        each.client.close()


def test_it_rests_between_two_walks_and_workers_do_not_keep_step(engine, errand):
    errand("e1")
    mender = JobCheck(engine, pause=10.0)
    walk(mender)
    rests = {mender.pause() for _ in range(50)}
    assert len(rests) > 10
    assert min(rests) >= 160
    assert max(rests) <= 240


def test_after_an_outage_the_walk_begins_anew(own_server):
    engine = Engine.from_url(own_server.url)
    mender = JobCheck(engine)
    engine.publish(builders.errand())
    engine.enqueue_many([{"machine": "errand", "src": "run", "queue": "errands"} for _ in range(2500)])
    mender.run_once()
    own_server.stop()
    with pytest.raises(errors.EngineUnavailable):
        mender.run_once()
    own_server.start()
    engine.publish(builders.errand())
    engine.create("errand", "e1")
    engine.client.delete(ready(engine))
    walk(mender)
    assert places(engine) == {"ready": 1}
    engine.client.close()


def test_a_worker_mends_and_does_the_work(engine, errand, caplog):
    done = []
    engine.publish(builders.errand())
    duties = {"mender": JobCheck(engine, pause=0.1)}
    with Running(engine, registry_of(run=lambda job: done.append(job.instance)), duties) as worker:
        worker.quiet()
        eventually(lambda: worker.status == "quiet", "the worker is quiet")
        errand("e1")
        engine.client.delete(ready(engine))
        worker.work()
        eventually(lambda: done == ["e1"], "the job is done")
    assert engine.get("errand", "e1").state == "done"
    assert engine.queues("errand")["errands"] == {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}


def test_an_idle_worker_asks_next_to_nothing(own_server):
    """Of the whole server, commands inside functions included: a walk over five quiet machines."""
    engine = Engine.from_url(own_server.url)
    for number in range(5):
        engine.publish(builders.errand(f"errand{number}"))
    mender = JobCheck(engine)
    before = engine.client.info("stats")["total_commands_processed"]
    mender.run_once()
    spent = engine.client.info("stats")["total_commands_processed"] - before
    rest = min(mender.pause() for _ in range(20))
    engine.client.close()
    assert spent / rest < 0.2
