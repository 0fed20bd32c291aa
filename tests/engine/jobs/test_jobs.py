"""Jobs: each is in exactly one place after each call, and its instance moves with it."""

import pytest

from machines.engine import BadInput, Engine, EngineFault, LeaseLost, LookupFailed, Refused
from tests.cases import for_each
from tests.engine.builders import NOW, machine, publish, started
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_threads
from tests.engine.jobs.stored_jobs import read_job

from .queueing import PLACES, busy, places, take


def test_a_job_goes_from_ready_to_leased_to_gone(engine):
    busy(engine, "x")
    assert places(engine) == {"0-1": "ready"}
    (job,) = take(engine, lease=5000)
    assert places(engine) == {"0-1": "leased"}
    assert (job.id, job.queue, job.src, job.instance, job.invoke) == ("0-1", "work", "work", "x", "Busy")
    assert (job.attempt, job.attempts, job.lease_until, job.created, job.worker) == (1, 3, NOW + 5000, NOW, "w")
    done = engine.complete(job, {"ok": True}, now=NOW + 5)
    assert (done.state, done.revision, done.jobs, done.entered) == ("Done", 3, [], NOW + 5)
    assert places(engine) == {}


def test_jobs_at_their_first_and_at_a_later_attempt_end_in_one_call(engine):
    busy(engine, "x", "y z")
    engine.fail(take(engine)[0], "no", now=NOW)
    jobs = take(engine, count=9, now=NOW + 60_000)
    assert {(job.instance, job.attempt, job.started, job.created) for job in jobs} == {
        ("x", 2, NOW, NOW),
        ("y z", 1, NOW + 60_000, NOW),
    }
    engine.complete_many([(job, None) for job in jobs], now=NOW + 60_010)
    assert places(engine) == {}
    kept = [engine.client.lindex(engine.keys.partition("errand").history(id), -1) for id in ("x", "y z")]
    assert [entry.rpartition("\t")[2] for entry in kept] == ['0=[0,60000,10,2,"w"]', '0=[60000,0,10,1,"w"]']


def test_the_fields_of_a_job_may_be_in_any_order(engine):
    busy(engine, "x")
    (key,) = engine.client.scan_iter(engine.keys.partition("errand").job("*"))
    fields = read_job(engine.client, key)
    engine.client.delete(key)
    engine.client.hset(key, mapping={name: fields[name] for name in ("src", "place", *fields)})
    (job,) = take(engine)
    assert (job.src, job.queue, job.instance, job.created) == (fields["src"], fields["queue"], "x", NOW)


def test_the_first_in_is_the_first_out(engine):
    busy(engine, *"cab")
    assert [job.instance for job in take(engine, count=2) + take(engine, count=9)] == ["c", "a", "b"]
    assert take(engine) == []


def test_a_job_comes_with_its_input_and_the_data_of_its_instance(engine):
    states = {"Busy": {"invoke": {"src": "work", "input": {"twice": "n * 2", "l": []}}}}
    started(engine, machine("errand", states, context={"n": 21, "l": []}))
    (job,) = take(engine)
    assert (job.input, job.data) == ({"twice": 42, "l": []}, {"n": 21, "l": []})


def test_a_job_is_finished_once_however_many_say_so(engine, redis_url):
    busy(engine, "x")
    (job,) = take(engine)
    results = in_threads([lambda: engine.complete(job)] * 6)
    assert sorted(type(result).__name__ for result in results) == ["Instance"] + ["LeaseLost"] * 5
    assert (engine.get("errand", "x").revision, engine.live("errand").flow["1:t3"]) == (3, 1)


def test_completing_and_failing_at_once_moves_the_instance_once(engine):
    for number in range(10):
        id = f"i{number}"
        busy(engine, id)
        (job,) = take(engine)
        calls = [lambda j=job: engine.complete(j), lambda j=job: engine.fail(j, "no", retry=False)]
        results = in_threads(calls * 2)
        assert sum(isinstance(result, LeaseLost) for result in results) == 3
        assert engine.get("errand", id).revision == 3


def test_a_result_is_what_the_event_carries(engine):
    done = {"target": "Done", "actions": {"set": {"x": "event.result"}}}
    for number, result in enumerate([None, 0, "text", [], {}, {"a": [None]}]):
        states = {"Busy": {"invoke": {"src": "work", "onDone": done}}, "Done": {}}
        publish(engine, machine("errand", states, context={"x": 1}))
        engine.publish(machine("errand", states, context={"x": None}, history=number))
        engine.create("errand", f"i{number}", now=NOW)
        (job,) = take(engine)
        assert engine.complete(job, result).data["x"] == result


@pytest.mark.parametrize("worker", ["w", 'the "big" one'])
@pytest.mark.parametrize("kind", ["flat", "parallel"])
def test_a_large_result_ends_its_job_though_writing_it_down_takes_the_work_of_a_step(engine, kind, worker):
    done = {"target": "Done", "guard": "len(event.result) > 5"}
    states = {"Busy": {"invoke": {"src": "work", "onDone": done}}, "Done": {}}
    if kind == "parallel":
        beside = {"initial": "Idle", "states": {"Idle": {}}}
        regions = {"Work": {"initial": "Busy", "states": states}, "Beside": beside}
        states = {"Both": {"type": "parallel", "states": regions}}
    publish(engine, machine("errand", states), *"abcd")  # a chart's step is compiled at its third use
    for job in engine.take("errand", "work", worker, count=4, now=NOW):
        assert "Done" in engine.complete(job, [0.125] * 10800, now=NOW).configuration


def test_a_failure_without_retry_is_dead_at_once_and_tells_the_instance(engine):
    failed = {"target": "Failed", "actions": {"set": {"e": "event.error", "k": "event.kind", "n": "event.attempts"}}}
    states = {"Busy": {"invoke": {"src": "work", "onError": failed}}, "Failed": {}}
    started(engine, machine("errand", states, context={"e": "", "k": "", "n": 0}))
    (job,) = take(engine)
    assert engine.fail(job, "broken é", kind="ValueError", trace="t", retry=False) == "dead"
    assert engine.get("errand", "x").data == {"e": "broken é", "k": "ValueError", "n": 1}
    dead = engine.job("errand", job.id)
    assert (dead.place, dead.error, dead.kind, dead.trace, dead.attempt) == (
        "handled",
        "broken é",
        "ValueError",
        "t",
        1,
    )


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


def test_a_result_that_comes_after_the_state_was_left_moves_nothing(engine):
    busy(engine, "x")
    (job,) = take(engine)
    engine.fire("errand", "x", "abandon")
    engine.fire("errand", "x", "start")
    with unchanged(engine), pytest.raises(LeaseLost, match="withdrawn"):
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
    assert (first.data["seen"], len(first.jobs), first.revision) == (["one"], 2, 2)
    assert engine.complete(held["three"]) is None, "nobody listens for it"
    assert (engine.get("m", "x").revision, len(engine.get("m", "x").jobs)) == (2, 1)
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
    assert (held.state, held.jobs, held.revision, places(engine)) == ("Busy", [], 2, {job.id: "dead"})


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


def test_a_job_that_is_not_there_is_named(engine):
    busy(engine, "x")

    @for_each("id", ["0-99", "9-1", "0", "", "x", "0-x", None, 5])
    def check(id):
        with pytest.raises(LookupFailed, match="has no job") as caught:
            engine.job("errand", id)
        assert caught.value.code == "SB423"

    check()


def test_arguments_that_make_no_sense_are_bad_input(engine):
    busy(engine, "x")

    @for_each(
        "method, options",
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
    def check(method, options):
        args = {"take": ("errand", "work", "w"), "jobs": ("errand", "work"), "extend": ([],)}[method]
        with unchanged(engine), pytest.raises(BadInput):
            getattr(engine, method)(*args, **options)

    check()


def test_the_dead_are_bounded(engine):
    """Ten thousand of a queue are kept; the oldest make room."""
    busy(engine, "x")
    engine.suspend("errand", "x", actor="ann", reason="it deals with the death later")
    (job,) = take(engine)
    dead = engine.keys.partition("errand").dead("work")
    engine.client.zadd(dead, {f"0-{n}": n for n in range(1000, 11_000)})
    engine.client.hset(engine.keys.partition("errand").job("0-1000"), mapping={"queue": "work", "place": "dead"})
    engine.fail(job, "no", retry=False)
    assert engine.client.zcard(dead) <= 10_001
    assert engine.client.zscore(dead, "0-1000") is None
    assert engine.client.zscore(dead, job.id) is not None


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
