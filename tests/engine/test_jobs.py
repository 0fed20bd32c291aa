"""Jobs: each is in exactly one place after each call, and its instance moves with it."""

from collections import Counter
from dataclasses import replace

import pytest

from machines.engine import BadInput, Engine, EngineFault, LeaseLost, LookupFailed, Refused
from tests.engine.builders import NOW, errand, machine, publish, started
from tests.engine.dumps import unchanged
from tests.engine.racing import in_processes, in_threads

PLACES = ("ready", "leased", "delayed", "dead")


def busy(engine, *ids, **invoke):
    """Instances of ``errand`` that wait for their work; the name of the machine."""
    publish(engine, errand(**invoke), *ids)
    for id in ids:
        engine.fire("errand", id, "start", now=NOW)
    return "errand"


def take(engine, **options):
    return engine.take("errand", "work", "w", **({"now": NOW} | options))


def places(engine, queue="work", name="errand"):
    """Job -> the one place it is in, by the sorted sets; its own hash must say the same."""
    partition = engine.keys.partition(name)
    found = {}
    for place in PLACES:
        for job in engine.client.zrange(getattr(partition, place)(queue), 0, -1):
            assert job not in found, f"{job} is in {found[job]} and in {place}"
            found[job] = place
    hashes = {key.rpartition(":")[2]: engine.client.hget(key, "place")
              for key in engine.client.scan_iter(match=f"{partition.root.replace('{', '[{]')}:job:*")}  # fmt: skip
    assert hashes == found
    assert Counter(found.values()) == {p: n for p, n in engine.queues(name)[queue].items() if n}
    return found


def test_a_job_goes_from_ready_to_leased_to_gone(engine):
    busy(engine, "x")
    assert places(engine) == {"0-1": "ready"}
    (job,) = take(engine, lease=5000)
    assert places(engine) == {"0-1": "leased"}
    assert (job.id, job.queue, job.src, job.instance, job.invoke) == ("0-1", "work", "work", "x", "Busy")
    assert (job.attempt, job.attempts, job.lease_until, job.created, job.worker) == (1, 3, NOW + 5000, NOW, "w")
    done = engine.complete(job, {"ok": True}, now=NOW + 5)
    assert (done.state, done.version, done.jobs, done.entered) == ("Done", 3, [], NOW + 5)
    assert places(engine) == {}


def test_the_first_in_is_the_first_out(engine):
    busy(engine, *"cab")
    assert [job.instance for job in take(engine, count=2) + take(engine, count=9)] == ["c", "a", "b"]
    assert take(engine) == []


def test_the_lease_is_what_the_definition_says_unless_the_worker_asks(engine):
    busy(engine, "a", "b", timeout="7s")
    assert take(engine)[0].lease_until == NOW + 7000
    assert take(engine, lease=90)[0].lease_until == NOW + 90


def test_a_job_comes_with_its_input_and_the_data_of_its_instance(engine):
    states = {"Busy": {"invoke": {"src": "work", "input": {"twice": "n * 2", "l": []}}}}
    started(engine, machine("errand", states, context={"n": 21, "l": []}))
    (job,) = take(engine)
    assert (job.input, job.data) == ({"twice": 42, "l": []}, {"n": 21, "l": []})


def test_no_two_workers_get_one_job(engine, redis_url):
    busy(engine, *(f"i{n}" for n in range(60)))
    taken = in_threads([lambda: take(engine, count=10)] * 8)
    jobs = [job.id for batch in taken for job in batch]
    assert (len(jobs), len(set(jobs))) == (60, 60)
    assert set(places(engine).values()) == {"leased"}


def test_a_job_is_finished_once_however_many_say_so(engine, redis_url):
    busy(engine, "x")
    (job,) = take(engine)
    results = in_threads([lambda: engine.complete(job)] * 6)
    assert sorted(type(result).__name__ for result in results) == ["Instance"] + ["LeaseLost"] * 5
    assert (engine.get("errand", "x").version, engine.live("errand").flow["1:t3"]) == (3, 1)


def test_completing_and_failing_at_once_moves_the_instance_once(engine):
    for number in range(10):
        id = f"i{number}"
        busy(engine, id)
        (job,) = take(engine)
        calls = [lambda j=job: engine.complete(j), lambda j=job: engine.fail(j, "no", retry=False)]
        results = in_threads(calls * 2)
        assert sum(isinstance(result, LeaseLost) for result in results) == 3
        assert engine.get("errand", id).version == 3


def test_a_result_is_what_the_event_carries(engine):
    done = {"target": "Done", "actions": {"set": {"x": "event.result"}}}
    for number, result in enumerate([None, 0, "text", [], {}, {"a": [None]}]):
        states = {"Busy": {"invoke": {"src": "work", "onDone": done}}, "Done": {}}
        publish(engine, machine("errand", states, context={"x": 1}))
        engine.publish(machine("errand", states, context={"x": None}, history=number))
        engine.create("errand", f"i{number}", now=NOW)
        (job,) = take(engine)
        assert engine.complete(job, result).data["x"] == result


def test_a_failed_attempt_waits_longer_each_time(engine):
    busy(engine, "x", retry={"attempts": 4, "backoff": "2s"})
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
    assert places(engine) == {"0-1": "dead"}
    assert engine.get("errand", "x").state == "Failed"


def test_a_backoff_longer_than_an_hour_stays_as_long_as_it_is(engine):
    busy(engine, "x", retry={"attempts": 3, "backoff": "2h"})
    for at in (NOW, NOW + 7_200_000):
        (job,) = take(engine, now=at)
        engine.fail(job, "no", now=at)
        assert take(engine, now=at + 7_199_999) == []


def test_a_failure_without_retry_is_dead_at_once_and_tells_the_instance(engine):
    failed = {"target": "Failed", "actions": {"set": {"e": "event.error", "k": "event.kind", "n": "event.attempts"}}}
    states = {"Busy": {"invoke": {"src": "work", "onError": failed}}, "Failed": {}}
    started(engine, machine("errand", states, context={"e": "", "k": "", "n": 0}))
    (job,) = take(engine)
    assert engine.fail(job, "broken é", kind="ValueError", trace="t", retry=False) == "dead"
    assert engine.get("errand", "x").data == {"e": "broken é", "k": "ValueError", "n": 1}
    dead = engine.job("errand", job.id)
    assert (dead.place, dead.error, dead.kind, dead.trace, dead.attempt) == ("dead", "broken é", "ValueError", "t", 1)


def test_long_errors_are_cut_between_characters(engine):
    busy(engine, "x")
    (job,) = take(engine)
    engine.fail(job, "é" * 5000, trace="x" + "é" * 20_000, retry=False)
    dead = engine.job("errand", job.id)
    assert dead.error == "é" * 500
    assert set(dead.trace) == {"é"}
    assert len(dead.trace.encode()) <= 16_384


def test_text_no_terminal_likes_is_kept_where_it_can_be(engine):
    busy(engine, "x")
    (job,) = take(engine)
    engine.fail(job, "a\x00b\ud800c", retry=False)
    assert engine.job("errand", job.id).error == "a\\x00b\\ud800c"
    assert engine.history("errand", "x")[0].payload["error"] == "a\\x00b\\ud800c"


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
    assert places(engine) == {"0-1": "dead"}
    dead = engine.job("errand", "0-1")
    assert (dead.kind, engine.get("errand", "x").state) == ("LeaseExpired", "Failed")


def test_a_sweep_wakes_what_is_due_in_every_queue(engine):
    states = {"A": {"invoke": [{"src": "one", "id": "one"}, {"src": "two", "id": "two"}]}}
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


def test_a_result_that_comes_after_the_state_was_left_moves_nothing(engine):
    busy(engine, "x")
    (job,) = take(engine)
    engine.fire("errand", "x", "abandon")
    engine.fire("errand", "x", "start")
    with unchanged(engine), pytest.raises(LeaseLost, match="gone"):
        engine.complete(job)


def test_several_jobs_of_one_state_are_told_apart(engine):
    states = {
        "A": {
            "invoke": [
                {"src": "one", "id": "one", "onDone": {"actions": {"append": {"seen": "'one'"}}}},
                {"src": "two", "id": "two", "onDone": "B"},
                {"src": "three", "id": "three"},
            ]
        },
        "B": {},
    }
    started(engine, machine("m", states, context={"seen": []}))
    held = {job.src: job for src in ("one", "two", "three") for job in engine.take("m", src, "w")}
    first = engine.complete(held["one"])
    assert (first.data["seen"], len(first.jobs), first.version) == (["one"], 2, 2)
    assert engine.complete(held["three"]) is None, "nobody listens for it"
    assert (engine.get("m", "x").version, len(engine.get("m", "x").jobs)) == (2, 1)
    assert engine.complete(held["two"]).state == "B"
    assert engine.queues("m") == {src: dict.fromkeys(PLACES, 0) for src in ("one", "two", "three")}


def test_work_nobody_waits_for_ends_without_a_step(engine):
    go = {"go": {"actions": {"enqueue": {"src": "mail", "queue": "out", "input": {"n": "1"}}}}}
    started(engine, machine("m", {"A": {"on": go}}))
    engine.fire("m", "x", "go")
    engine.delete("m", "x")
    (job,) = engine.take("m", "out", "w")
    assert (job.data, job.src, job.input, engine.complete(job)) == ({}, "mail", {"n": 1}, None)
    assert engine.queues("m")["out"] == dict.fromkeys(PLACES, 0)


def test_a_guard_that_does_not_hold_ends_the_job_all_the_same(engine):
    busy(engine, "x", onDone={"target": "Done", "guard": "event.result == 'yes'"})
    (job,) = take(engine)
    assert engine.complete(job, "no") is None
    assert (engine.get("errand", "x").state, engine.get("errand", "x").jobs, places(engine)) == ("Busy", [], {})


def test_a_step_that_fails_leaves_the_job_held(engine):
    busy(engine, "x", onDone={"target": "Done", "actions": {"log": "1 / event.result"}})
    (job,) = take(engine)
    with unchanged(engine), pytest.raises(Refused, match="division by zero"):
        engine.complete(job, 0)
    assert engine.complete(job, 1).state == "Done"


def test_an_instance_whose_error_step_fails_stays_where_it_is_and_waits_no_longer(engine):
    busy(engine, "x", onError={"target": "Failed", "actions": {"log": "1 / (event.attempts - 1)"}})
    (job,) = take(engine)
    assert engine.fail(job, "no", retry=False) == "dead"
    held = engine.get("errand", "x")
    assert (held.state, held.jobs, held.version, places(engine)) == ("Busy", [], 2, {job.id: "dead"})


def test_a_state_that_enters_itself_begins_its_work_anew(engine):
    states = {"Busy": {"invoke": {"src": "work"}, "on": {"again": {"target": "Busy", "reenter": True}, "stay": {}}}}
    first = started(engine, machine("errand", states))
    assert engine.fire("errand", "x", "stay").jobs == first.jobs
    second = engine.fire("errand", "x", "again")
    assert list(places(engine)) == second.jobs != first.jobs


def test_jobs_can_be_looked_at_without_taking_them(engine):
    busy(engine, *"abc")
    with unchanged(engine):
        assert [job.instance for job in engine.jobs("errand", "work")] == ["a", "b", "c"]
        assert [job.instance for job in engine.jobs("errand", "work", limit=2)] == ["a", "b"]
        assert engine.jobs("errand", "work", place="dead") == []
        assert engine.job("errand", "0-2").place == "ready"
        assert engine.jobs("errand", "nowhere") == []


@pytest.mark.parametrize("id", ["0-99", "9-1", "0", "", "x", "0-x", None, 5])
def test_a_job_that_is_not_there_is_named(engine, id):
    busy(engine, "x")
    with pytest.raises(LookupFailed, match="has no job") as caught:
        engine.job("errand", id)
    assert caught.value.code == "SB423"


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("take", {"count": 0}),
        ("take", {"count": 1001}),
        ("take", {"count": "1"}),
        ("take", {"lease": 0}),
        ("take", {"lease": 86_400_001}),
        ("take", {"lease": 1.5}),
        ("take", {"now": -1}),
        ("jobs", {"limit": 0}),
        ("jobs", {"limit": 1.5}),
        ("jobs", {"place": "nowhere"}),
        ("extend", {"lease": 0}),
        ("extend", {"lease": None}),
        ("extend", {"lease": 1.5}),
    ],
)
def test_arguments_that_make_no_sense_are_bad_input(engine, method, options):
    busy(engine, "x")
    args = {"take": ("errand", "work", "w"), "jobs": ("errand", "work"), "extend": ([],)}[method]
    with unchanged(engine), pytest.raises(BadInput):
        getattr(engine, method)(*args, **options)


def test_the_dead_are_bounded(engine):
    """Ten thousand of a queue are kept; the oldest make room."""
    busy(engine, "x")
    (job,) = take(engine)
    dead = engine.keys.partition("errand").dead("work")
    engine.client.zadd(dead, {f"0-{n}": n for n in range(1000, 11_000)})
    engine.client.hset(engine.keys.partition("errand").job("0-1000"), mapping={"queue": "work", "place": "dead"})
    engine.fail(job, "no", retry=False)
    assert engine.client.zcard(dead) <= 10_001
    assert engine.client.zscore(dead, "0-1000") is None
    assert engine.client.zscore(dead, job.id) is not None


def test_workers_in_other_processes_take_each_job_once(engine, redis_url):
    busy(engine, *(f"i{n}" for n in range(30)))
    in_processes(engine, redis_url, [("take", ["errand", "work", "w"], {"count": 3})] * 10)
    assert Counter(places(engine).values()) == {"leased": 30}
    assert {job.attempt for job in engine.jobs("errand", "work", place="leased")} == {1}


@pytest.fixture
def spread(redis_url, prefix):
    """An engine whose machine ``errand`` has three partitions, each with ready jobs, and one that cannot be used."""
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    busy(engine, *map(str, range(30)))
    broken = engine.keys.partition("errand", 1)
    for key in (broken.ready("work"), broken.queues):
        engine.client.delete(key)
        engine.client.set(key, "foreign")
    yield engine
    engine.client.close()


def test_a_partition_that_cannot_be_taken_from_costs_no_job_of_the_others(spread):
    taken = take(spread, count=100)
    assert {job.root[-2] for job in taken} == {"0", "2"}
    with pytest.raises(EngineFault):
        take(spread)
    with pytest.raises(EngineFault):
        spread.sweep("errand", now=taken[0].lease_until)
    assert len(take(spread, count=100, now=taken[0].lease_until)) == len(taken), "the others were swept"


def test_no_partition_waits_for_another_to_be_empty(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    busy(engine, *map(str, range(90)))
    assert {take(engine)[0].root[-2] for _ in range(25)} == {"0", "1", "2"}
    engine.client.close()
