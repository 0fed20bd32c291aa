"""One attempt at a job: its timeout, its progress, how it fails, and when the next one comes."""

from dataclasses import replace

import pytest

from machines.engine import BadInput, LeaseLost
from tests.cases import for_each
from tests.engine.builders import NOW, publish
from tests.engine.dumps import unchanged

from .queueing import busy, places, take
from .stored_jobs import read_job, spread_job


def test_a_timeout_is_a_deadline_no_lease_goes_past(engine):
    busy(engine, "x", timeout="10s", lease="4s")
    (job,) = take(engine)
    assert (job.timeout, job.deadline, job.lease_until) == (10_000, NOW + 10_000, NOW + 4000)
    assert engine.extend(job, 4000, now=NOW + 3000) == [True]
    assert engine.job("errand", job.id).lease_until == NOW + 7000
    assert engine.extend(job, 4000, now=NOW + 7000) == [True]
    assert engine.job("errand", job.id).lease_until == NOW + 10_000
    assert engine.sweep("errand", now=NOW + 9999) == 0
    assert engine.sweep("errand", now=NOW + 10_000) == 1
    (again,) = take(engine, now=NOW + 11_000)
    assert (again.kind, again.deadline, again.attempt) == ("Timeout", NOW + 21_000, 2)


def test_a_lease_longer_than_the_timeout_ends_with_it(engine):
    busy(engine, "x", timeout="2s")
    assert take(engine, lease=60_000)[0].lease_until == NOW + 2000


def test_without_a_timeout_a_job_runs_as_long_as_its_lease_is_renewed(engine):
    busy(engine, "x")
    (job,) = take(engine)
    assert (job.timeout, job.deadline) == (0, 0)
    for hour in range(1, 50):
        assert engine.extend(job, 3_600_001, now=NOW + hour * 3_600_000) == [True]


def test_the_first_attempt_is_remembered_as_the_start(engine):
    busy(engine, "x", retry={"jitter": False})
    (first,) = take(engine)
    assert (first.started, first.taken) == (NOW, NOW)
    engine.fail(first, "no", now=NOW)
    for at in (NOW + 1000, NOW + 5000):
        (job,) = take(engine, now=at)
        assert (job.started, job.taken) == (NOW, at)
        engine.hand_back(job, now=at)


def test_progress_is_seen_and_outlives_the_attempt(engine):
    busy(engine, "x", retry={"jitter": False})
    (job,) = take(engine)
    assert engine.job("errand", job.id).progress is None
    engine.progress(job, 3, 10, "née", now=NOW + 5)
    assert engine.job("errand", job.id).progress == {"done": 3, "total": 10, "note": "née", "at": NOW + 5}
    engine.progress(job, 3.5)
    assert engine.job("errand", job.id).progress["total"] is None
    engine.fail(job, "no", now=NOW)
    (again,) = take(engine, now=NOW + 1000)
    assert again.progress["done"] == 3.5


def test_progress_of_a_job_that_is_lost_is_refused(engine):
    busy(engine, "x")
    (job,) = take(engine)
    with unchanged(engine):
        with pytest.raises(LeaseLost, match="taken back"):
            engine.progress(replace(job, token="other"), 1)
        with pytest.raises(LeaseLost, match="taken back"):
            engine.progress(replace(job, token=""), 1)
        with pytest.raises(LeaseLost, match="gone"):
            engine.progress(replace(job, id="0-9"), 1)


def test_progress_that_makes_no_sense_is_bad_input(engine):
    busy(engine, "x")
    (job,) = take(engine)

    @for_each("said", [(-1,), ("1",), (float("nan"),), (float("inf"),), (True,), (1, -1), (1, 2, "x" * 201), (1, 2, 5)])
    def check(said):
        with unchanged(engine), pytest.raises(BadInput):
            engine.progress(job, *said)

    check()


def test_progress_wakes_the_live_view(engine):
    busy(engine, "x")
    (job,) = take(engine)
    pulse = engine.keys.partition("errand").pulse
    while engine.client.exists(pulse):
        pass
    engine.progress(job, 1)
    assert engine.client.exists(pulse)


def test_waits_between_attempts_are_spread_between_half_and_all(engine):
    ids = [str(n) for n in range(200)]
    busy(engine, *ids, retry={"attempts": 5, "backoff": "8s"})
    for job in take(engine, count=200):
        engine.fail(job, "no", now=NOW)
    waits = sorted(job.due - NOW for job in engine.jobs("errand", "work", place="delayed", limit=1000))
    assert 4000 <= waits[0] < 4400
    assert 7600 < waits[-1] <= 8000
    assert len(set(waits)) > 150
    assert 5700 < sum(waits) / 200 < 6300


@pytest.mark.parametrize(
    ("kind", "kinds", "place"),
    [
        ("KeyError", (), "delayed"),
        ("LookupError", (), "dead"),
        ("KeyError", ("LookupError", "Exception"), "dead"),
        ("app.Gone", (), "dead"),
        ("Gone", ("app",), "delayed"),
        ("", (), "delayed"),
    ],
)
def test_kinds_that_are_not_retried_go_to_the_dead_at_once(engine, kind, kinds, place):
    busy(engine, "x", retry={"attempts": 9, "stop": ["LookupError", "app.Gone"]})
    (job,) = take(engine)
    assert engine.fail(job, "no", kind=kind, kinds=kinds, now=NOW) == place
    assert list(places(engine).values()) == ["handled" if place == "dead" else place]


def test_whoever_fails_a_job_may_say_when_it_is_tried_again(engine):
    busy(engine, "x")
    (job,) = take(engine)
    assert engine.fail(job, "busy there", delay=70_000, now=NOW) == "delayed"
    assert engine.job("errand", job.id).due == NOW + 70_000


def test_many_jobs_end_in_one_round_trip_each_on_its_own(engine):
    busy(engine, *"abcdef", onDone={"target": "Done", "actions": {"log": "1 / event.result"}})
    held = {job.instance: job for job in take(engine, count=6)}
    engine.fire("errand", "b", "abandon")
    results = {"a": 1, "b": 1, "c": 0, "d": {1, 2}, "e": 2, "f": "x" * 70_000}
    ended = engine.complete_many([(held[id], result) for id, result in results.items()])
    assert [type(outcome).__name__ for outcome in ended] == [
        "Outcome", "LeaseLost", "Refused", "BadPayload", "Outcome", "BadPayload"
    ]  # fmt: skip
    assert ended[0].transitions == ["t3"]
    assert [engine.get("errand", id).state for id in "abcdef"] == ["Done", "Idle", "Busy", "Busy", "Done", "Busy"]
    assert places(engine) == {held[id].id: "leased" for id in "cdf"}
    assert engine.complete_many([]) == []


def test_one_job_twice_in_a_batch_ends_once(engine):
    busy(engine, "x")
    (job,) = take(engine)
    first, second = engine.complete_many([(job, None), (job, None)])
    assert (first.transitions, type(second)) == (["t3"], LeaseLost)
    assert engine.get("errand", "x").revision == 3


def test_a_foreign_key_stops_one_job_of_a_batch_and_no_other(engine):
    busy(engine, *"ab")
    first, second = take(engine, count=2)
    history = engine.keys.partition("errand").history("a")
    engine.client.delete(history)
    engine.client.set(history, "foreign")
    ended = engine.complete_many([(first, None), (second, None)])
    assert [type(outcome).__name__ for outcome in ended] == ["EngineFault", "Outcome"]
    assert places(engine) == {first.id: "leased"}


def test_thousands_of_jobs_end_together(engine):
    publish(engine, {"id": "errand", "initial": "A", "states": {"A": {}}})
    engine.enqueue_many([{"machine": "errand", "src": "work"}] * 1500)
    held = take(engine, count=1000, now=None) + take(engine, count=1000, now=None)
    assert engine.complete_many([(job, None) for job in held]) == [None] * 1500
    assert places(engine) == {}


def test_ends_of_several_takes_without_results_say_each_token_once_and_equal_replies_once(engine):
    busy(engine, *"abcde")
    first, second = take(engine, count=2), take(engine, count=3)
    engine.fire("errand", "d", "abandon")
    root, tokens = first[0].root, (first[0].token, second[0].token)
    lines = [" ".join([token, *(job.id for job in jobs)]) for token, jobs in zip(tokens, (first, second), strict=True)]
    reply = engine.client.fcall("sb_complete", 1, root, NOW, "runs", "\n".join([*lines, f"{tokens[0]} {second[2].id}"]))
    assert reply == ["OK", "t3", 3, ["LOST", "withdrawn"], 1, "t3", 1, ["LOST", "gone"], 1]
    assert [engine.get("errand", id).state for id in "abcde"] == ["Done", "Done", "Done", "Idle", "Done"]
    assert places(engine) == {}


def test_many_ends_without_results_have_their_outcomes_in_order(engine):
    busy(engine, *"abcd")
    jobs = [*take(engine, count=2), *take(engine, count=2)]
    wrong = replace(jobs[1], token=jobs[2].token)
    ended = engine.complete_many([(job, None) for job in (jobs[0], wrong, *jobs[2:], jobs[0])])
    assert [type(one).__name__ for one in ended] == ["Outcome", "LeaseLost", "Outcome", "Outcome", "LeaseLost"]
    assert places(engine) == {jobs[1].id: "leased"}


@pytest.mark.parametrize("id", ["", " ", "0-1 0-2", "0-1\n0-2"])
def test_the_id_of_a_job_that_take_did_not_give_out_ends_no_other(engine, id):
    busy(engine, *"ab")
    jobs = take(engine, count=2)
    ended = engine.complete_many([(replace(jobs[0], id=id), None), (jobs[1], None)])
    assert [type(one).__name__ for one in ended] == ["LeaseLost", "Outcome"]
    assert places(engine) == {jobs[0].id: "leased"}


@pytest.mark.parametrize("words", [(), ("",), ("1-a",), ("1-a ",), ("1-a 0-1", "0-2"), ("1-a 0-1", "1-a 0-2", "")])
def test_jobs_that_are_not_listed_for_their_tokens_are_refused(engine, words):
    busy(engine, "x")
    (job,) = take(engine)
    with unchanged(engine):
        assert engine.client.fcall("sb_complete", 1, job.root, NOW, "runs", *words)[0] == "BADARG"


def ended(engine, job):
    """What the log of a job says of each attempt, without when it began and ended."""
    return [(e["attempt"], e["outcome"], e["kind"], e["error"]) for e in engine.job("errand", job.id).log]


def test_each_attempt_that_ended_is_in_the_log_of_its_job(engine):
    busy(engine, "x", retry={"attempts": 4, "jitter": False}, timeout="5s")
    (job,) = take(engine)
    assert job.log == ()
    engine.fail(job, "no", kind="KeyError", trace="line 1", now=NOW + 10)
    (job,) = engine.take("errand", "work", "other", now=NOW + 2000)
    engine.hand_back(job, now=NOW + 2010)
    take(engine, now=NOW + 3000, lease=100)
    engine.sweep("errand", now=NOW + 3100)
    take(engine, now=NOW + 4000)
    engine.tick("errand", now=NOW + 9000)
    (job,) = take(engine, now=NOW + 9000)
    engine.fail(job, "the attempt took longer than 5 s", kind="Timeout", now=NOW + 14_000)
    assert engine.job("errand", job.id).place == "handled"
    assert ended(engine, job) == [
        (1, "failed", "KeyError", "no"),
        (2, "handed back", "", ""),
        (2, "lost", "LeaseExpired", "the worker stopped renewing its lease"),
        (3, "timeout", "Timeout", "the job ran longer than its timeout"),
        (4, "timeout", "Timeout", "the attempt took longer than 5 s"),
    ]
    first, second, *_ = engine.job("errand", job.id).log
    assert (first["worker"], first["taken"], first["ended"]) == ("w", NOW, NOW + 10)
    assert (second["worker"], second["taken"], second["ended"]) == ("other", NOW + 2000, NOW + 2010)


def test_a_job_without_a_timeout_does_not_time_out_whatever_its_exception_is_called(engine):
    busy(engine, "x")
    (job,) = take(engine)
    engine.fail(job, "no answer", kind="Timeout", now=NOW)
    assert ended(engine, job) == [(1, "failed", "Timeout", "no answer")]


def test_the_log_keeps_the_last_ten_attempts_and_the_beginning_of_their_errors(engine):
    busy(engine, "x", retry={"attempts": 100})
    for number in range(12):
        (job,) = take(engine, now=NOW + number)
        engine.fail(job, f"{number} " + "é" * 300, delay=0, now=NOW + number)
    log = engine.job("errand", job.id).log
    assert [entry["attempt"] for entry in log] == list(range(3, 13))
    assert log[-1]["error"] == "11 " + "é" * 98, "200 bytes, no half character"


def test_a_log_nobody_can_read_is_begun_anew(engine):
    busy(engine, "x")
    (job,) = take(engine)
    spread_job(engine.client, engine.keys.partition("errand").job(job.id), log="{")
    engine.fail(job, "no", kind="KeyError", now=NOW)
    assert ended(engine, job) == [(1, "failed", "KeyError", "no")]


def test_a_job_driven_anew_keeps_what_became_of_it_before(engine):
    busy(engine, "x", retry={"attempts": 1})
    (job,) = take(engine)
    engine.fail(job, "no", now=NOW)
    engine.redrive("errand", "work", job, force=True, actor="a", reason="r", now=NOW)
    (again,) = take(engine)
    assert [entry["outcome"] for entry in again.log] == ["failed"]


def test_an_attempt_that_succeeds_writes_no_log(engine):
    busy(engine, "x")
    (job,) = take(engine)
    assert "log" not in read_job(engine.client, engine.keys.partition("errand").job(job.id))
    engine.complete(job)
