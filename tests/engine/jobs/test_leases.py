"""Leases: whose a job is, for how long, and what becomes of it afterwards."""

from collections import Counter
from dataclasses import replace

import pytest
import redis

from machines.engine import Engine, LeaseLost, MendReport
from machines.engine.connection import library
from tests.engine.builders import NOW, machine, started
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_processes, in_threads

from .queueing import busy, places, take
from .stored_jobs import read_job, spread_job


def test_the_lease_is_what_the_definition_says_unless_the_worker_asks(engine):
    busy(engine, "a", "b", lease="7s")
    assert take(engine)[0].lease_until == NOW + 7000
    assert take(engine, lease=90)[0].lease_until == NOW + 90


def test_no_two_workers_get_one_job(engine, redis_url):
    busy(engine, *(f"i{n}" for n in range(60)))
    taken = in_threads([lambda: take(engine, count=10)] * 8)
    jobs = [job.id for batch in taken for job in batch]
    assert (len(jobs), len(set(jobs))) == (60, 60)
    assert set(places(engine).values()) == {"leased"}


def test_a_failed_attempt_waits_longer_each_time(engine):
    busy(engine, "x", retry={"attempts": 4, "backoff": "2s", "jitter": False})
    at = NOW
    for attempt, delay in enumerate([2000, 4000, 8000], start=1):
        (job,) = take(engine, now=at)
        assert job.attempt == attempt
        assert engine.fail(job, "no", kind="ValueError", trace="line 1", now=at) == "delayed"
        assert places(engine) == {"0-1": "delayed"}
        assert take(engine, now=at + delay - 1) == []
        at += delay
    (job,) = take(engine, now=at)
    assert (job.attempt, job.error, job.kind, job.trace) == (4, "no", "ValueError", "line 1")
    assert engine.fail(job, "no more", now=at) == "dead"
    assert places(engine) == {"0-1": "handled"}
    assert engine.get("errand", "x").state == "Failed"


def test_a_backoff_longer_than_an_hour_stays_as_long_as_it_is(engine):
    busy(engine, "x", retry={"attempts": 3, "backoff": "2h", "jitter": False})
    for at in (NOW, NOW + 7_200_000):
        (job,) = take(engine, now=at)
        engine.fail(job, "no", now=at)
        assert take(engine, now=at + 7_199_999) == []


def test_a_job_handed_back_counts_no_attempt(engine):
    busy(engine, "x")
    (job,) = take(engine)
    engine.hand_back(job, now=NOW)
    assert places(engine) == {"0-1": "ready"}
    (again,) = take(engine)
    assert (again.attempt, again.token != job.token) == (1, True)
    engine.hand_back(again, delay=500, now=NOW)
    assert places(engine) == {"0-1": "delayed"}
    assert take(engine, now=NOW + 499) == []
    assert take(engine, now=NOW + 500)[0].attempt == 1


def test_a_lease_renewed_is_not_taken_back(engine):
    busy(engine, "a", "b")
    first, second = take(engine, count=2, lease=1000)
    assert engine.extend([first, replace(second, token="x")], 5000, now=NOW + 900) == [True, False]
    assert engine.sweep("errand", now=NOW + 1000) == 1
    assert places(engine) == {first.id: "leased", second.id: "ready"}
    assert engine.job("errand", first.id).lease_until == NOW + 5900
    assert engine.extend([], 5000) == []


def test_an_expired_lease_is_taken_back_and_its_token_is_worth_nothing(engine):
    busy(engine, "x")
    (job,) = take(engine, lease=1000)
    assert engine.sweep("errand", now=NOW + 999) == 0
    assert engine.sweep("errand", now=NOW + 1000) == 1
    assert places(engine) == {"0-1": "ready"}
    with unchanged(engine):
        for late in (lambda: engine.complete(job), lambda: engine.fail(job, "no"), lambda: engine.hand_back(job)):
            with pytest.raises(LeaseLost, match="taken back") as caught:
                late()
        assert caught.value.why == "taken back"
        assert engine.extend(job, 1000) == [False]
    (again,) = take(engine)
    assert (again.attempt, engine.complete(again).state) == (2, "Done")
    with pytest.raises(LeaseLost, match="gone"):
        engine.complete(again)


def test_work_that_kills_its_worker_ends_among_the_dead(engine):
    busy(engine, "x", retry={"attempts": 2})
    for attempt in (1, 2):
        (job,) = take(engine, lease=1000)
        assert job.attempt == attempt
        assert engine.sweep("errand", now=NOW + 1000) == 1
    assert places(engine) == {"0-1": "handled"}
    dead = engine.job("errand", "0-1")
    assert (dead.kind, engine.get("errand", "x").state) == ("LeaseExpired", "Failed")


def test_a_sweep_wakes_what_is_due_in_every_queue(engine):
    states = {"A": {"invoke": [{"src": s, "id": s, "retry": {"jitter": False}} for s in ("one", "two")]}}
    started(engine, machine("m", states))
    for queue in ("one", "two"):
        (job,) = engine.take("m", queue, "w", now=NOW)
        engine.fail(job, "no", now=NOW)
    assert engine.sweep("m", now=NOW + 999) == 0
    assert engine.tick(now=NOW + 1000) == 2
    assert [engine.queues("m")[queue]["ready"] for queue in ("one", "two")] == [1, 1]


def test_leaving_the_state_withdraws_the_job_wherever_it_is(engine):
    for place, prepare in [
        ("ready", lambda: None),
        ("leased", lambda: take(engine)),
        ("delayed", lambda: engine.fail(take(engine)[0], "no", now=NOW)),
    ]:
        busy(engine, place)
        prepare()
        assert list(places(engine).values()) == [place]
        assert engine.fire("errand", place, "abandon").jobs == []
        assert places(engine) == {}


@pytest.mark.faults
def test_workers_in_other_processes_take_each_job_once(engine, redis_url):
    busy(engine, *(f"i{n}" for n in range(30)))
    in_processes(engine, redis_url, [("take", ["errand", "work", "w"], {"count": 3})] * 10)
    assert Counter(places(engine).values()) == {"leased": 30}
    assert {job.attempt for job in engine.jobs("errand", "work", place="leased")} == {1}


def _store_as_fields(engine, job):
    """Store a leased job as 0.1.0 did."""
    spread_job(engine.client, engine.keys.partition("errand").job(job.id))


def _store_as_packed_fields(engine, job):
    """Store it as plain jobs were stored between 0.1.0 and this release."""
    key = engine.keys.partition("errand").job(job.id)
    plain = f"{job.src} {job.queue} {job.invoke} {job.created} {job.instance}"
    engine.client.delete(key)
    token = f"{job.token} {job.taken} {job.worker}"
    engine.client.hset(key, mapping={"place": "leased", "plain": plain, "token": token})


FORMER = {"lease": None, "lease of 0.1.0": _store_as_fields, "packed lease": _store_as_packed_fields}


ENDS = {
    "hand back": (lambda engine, job: engine.hand_back(job, now=NOW + 5), ("ready", 0)),
    "fail": (lambda engine, job: engine.fail(job, "no", now=NOW + 5), ("delayed", 1)),
    "fail for good": (lambda engine, job: engine.fail(job, "no", retry=False, now=NOW + 5), ("handled", 1)),
    "expire": (lambda engine, job: engine.sweep("errand", now=NOW + 99_000), ("ready", 1)),
}


@pytest.mark.parametrize("store", FORMER.values(), ids=FORMER)
@pytest.mark.parametrize("end", ENDS)
def test_a_lease_that_ends_without_a_result_leaves_its_attempt(engine, end, store):
    busy(engine, "x")
    (job,) = engine.take("errand", "work", "w 1\n2", now=NOW)
    if store:
        store(engine, job)
    seen = engine.job("errand", job.id)
    assert (seen.attempt, seen.token, seen.taken, seen.worker) == (1, job.token, NOW, "w 1\n2")
    assert engine.extend(job, 30_000, now=NOW) == [True]
    run, (place, attempt) = ENDS[end]
    run(engine, job)
    seen = engine.job("errand", job.id)
    assert (seen.place, seen.attempt, seen.token, seen.taken) == (place, attempt, "", NOW)
    assert [(entry["attempt"], entry["worker"]) for entry in seen.log] == [(1, "w 1\n2")]
    with pytest.raises(LeaseLost):
        engine.complete(job)


def test_leases_of_former_releases_end_with_later_ones_in_one_call(engine):
    busy(engine, *"abcdef")
    jobs = take(engine, count=6)
    for job in jobs[1::3]:
        _store_as_fields(engine, job)
    for job in jobs[2::3]:
        _store_as_packed_fields(engine, job)
    engine.complete_many([(job, None) for job in jobs], now=NOW + 7)
    assert engine.counts("errand")["Done"] == 6
    assert places(engine) == {}
    history = engine.keys.partition("errand").history
    assert {engine.client.lindex(history(id), -1).rpartition("\t")[2] for id in "abcdef"} == {'0=[0,0,7,1,"w"]'}


def test_ready_jobs_of_former_releases_are_taken_with_later_ones(engine):
    busy(engine, *"abc")
    key = engine.keys.partition("errand").job
    spread_job(engine.client, key("0-1"))
    row = read_job(engine.client, key("0-2"))
    engine.client.delete(key("0-2"))
    plain = " ".join(row[name] for name in ("src", "queue", "invoke", "created", "instance"))
    engine.client.hset(key("0-2"), mapping={"place": "ready", "plain": plain})
    jobs = take(engine, count=3)
    assert [(job.id, job.instance, job.attempt) for job in jobs] == [("0-1", "a", 1), ("0-2", "b", 1), ("0-3", "c", 1)]
    assert places(engine) == dict.fromkeys(("0-1", "0-2", "0-3"), "leased")
    assert engine.mend("errand", now=NOW) == MendReport()
    engine.complete_many([(job, None) for job in jobs], now=NOW + 7)
    assert engine.counts("errand")["Done"] == 3
    assert places(engine) == {}


@pytest.mark.parametrize("together", [True, False], ids=["in one call", "one by one"])
def test_leases_that_the_server_has_forgotten_end_as_well(engine, together):
    busy(engine, *"abcd")
    jobs = take(engine, count=4)
    engine.complete_many([(job, None) for job in jobs[:2]], now=NOW + 7)
    engine.client.function_load(library.text(), replace=True)
    ends = [(job, None) for job in jobs[2:]]
    for some in [ends] if together else [[end] for end in ends]:
        engine.complete_many(some, now=NOW + 7)
    assert engine.counts("errand")["Done"] == 4
    assert places(engine) == {}
    history = engine.keys.partition("errand").history
    assert {engine.client.lindex(history(id), -1).rpartition("\t")[2] for id in "abcd"} == {'0=[0,0,7,1,"w"]'}


def test_takes_that_share_a_token_keep_their_own_times(engine):
    busy(engine, *"ab")
    root = engine.keys.partition("errand").root
    words = []
    for worker, at in (("w", NOW), ("v", NOW + 3)):
        reply = engine.client.execute_command("FCALL", "sb_take", 1, root, "work", worker, 1, "", at, "same")
        words += [reply[3], reply[5], ""]
    engine.client.execute_command("FCALL", "sb_complete", 1, root, NOW + 9, "short", *words)
    assert engine.counts("errand")["Done"] == 2
    kept = [engine.client.lindex(engine.keys.partition("errand").history(id), -1) for id in "ab"]
    assert [entry.rpartition("\t")[2] for entry in kept] == ['0=[0,0,9,1,"w"]', '0=[3,0,6,1,"v"]']


def test_a_token_has_no_spaces(engine):
    busy(engine, "a")
    words = ("work", "w", 1, "", NOW, "a b")
    reply = engine.client.execute_command("FCALL", "sb_take", 1, engine.keys.partition("errand").root, *words)
    assert reply == ["BADARG", "a nonce has no spaces"]
    assert set(places(engine).values()) == {"ready"}


def test_an_account_without_the_commands_of_many_jobs_takes_and_ends_them_too(engine):
    """Accounts that were made for 0.1.0 may not run MGET and MSET."""
    busy(engine, *"abc")
    client = engine.client
    client.execute_command("ACL", "SETUSER", "former", "reset", "on", "nopass", "~*", "&*", "+@all", "-mget", "-mset")
    pool = client.connection_pool
    place = pool.connection_kwargs | {"username": "former", "password": "x"}
    former = redis.Redis(connection_pool=redis.ConnectionPool(connection_class=pool.connection_class, **place))
    try:
        worker = Engine(former, prefix=engine.keys.prefix)
        jobs = take(worker, count=3)
        assert [(job.instance, job.attempt) for job in jobs] == [("a", 1), ("b", 1), ("c", 1)]
        assert [worker.job("errand", job.id).place for job in jobs] == ["leased"] * 3
        worker.hand_back(jobs[2], now=NOW)
        worker.complete_many([(job, None) for job in jobs[:2]], now=NOW)
    finally:
        former.close()
        client.execute_command("ACL", "DELUSER", "former")
    assert engine.counts("errand")["Done"] == 2
    assert places(engine) == {jobs[2].id: "ready"}
