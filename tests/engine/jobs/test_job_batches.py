"""Batches: jobs that are counted together, and those that are enqueued once when none of them is open any more."""

import pytest

from machines.engine import BadInput, Engine, EngineFault, LookupFailed, UnknownMachine
from machines.engine.jobs.batches import FIRST
from tests.cases import for_each
from tests.engine.builders import NOW, door, publish
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_threads

WHO = {"actor": "a", "reason": "r"}
CALLBACKS = {
    name: {"machine": "door", "src": name, "queue": "after"} for name in ("on_success", "on_failure", "on_end")
}
DAYS = 86_400_000


@pytest.fixture
def yard(engine):
    publish(engine, door())
    return engine


def items(count, **facts):
    return [{"machine": "door", "src": "work", "input": n, "attempts": 1} | facts for n in range(count)]


def take(engine, count=50, **options):
    return engine.take("door", options.pop("queue", "work"), "w", count=count, now=NOW, **options)


def figures(engine, id="b"):
    batch = engine.get_batch("door", id)
    return batch.total, batch.open, batch.done, batch.failed


def callbacks(engine):
    """The callbacks that were enqueued, with their inputs."""
    return {job.src: job.input for job in take(engine, queue="after")}


def test_the_last_job_enqueues_the_callbacks(yard):
    batch = yard.batch(items(120), id="b", now=NOW, **CALLBACKS)
    assert (batch.total, batch.open, batch.added, batch.created, batch.ended) == (120, 120, 120, NOW, 0)
    jobs = take(yard, count=120)
    assert {job.batch for job in jobs} == {"b"}
    yard.complete_many([(job, None) for job in jobs[:119]], now=NOW)
    assert (figures(yard), callbacks(yard)) == ((120, 1, 119, 0), {})
    yard.complete(jobs[119], now=NOW + 5)
    assert yard.get_batch("door", "b").ended == NOW + 5
    told = {"batch": "b", "total": 120, "done": 120, "failed": 0}
    assert callbacks(yard) == {"on_success": told, "on_end": told}


@pytest.mark.parametrize(
    "end",
    [
        (lambda e, job: e.fail(job, "no", now=NOW)),
        (lambda e, job: e.withdraw("door", job, now=NOW, **WHO)),
        (lambda e, job: e.sweep("door", now=NOW + 60_000)),
    ],
    ids=["failed", "withdrawn", "lost"],
)
def test_a_batch_with_a_job_that_ends_otherwise_has_failed(yard, end):
    yard.batch(items(2), id="b", now=NOW, **CALLBACKS)
    first, second = take(yard)
    yard.complete(first, now=NOW)
    end(yard, second)
    assert figures(yard) == (2, 0, 1, 1)
    assert set(callbacks(yard)) == {"on_failure", "on_end"}


def test_purged_jobs_have_failed(yard):
    yard.batch(items(3), id="b", now=NOW, **CALLBACKS)
    assert yard.purge("door", "work", place="ready", now=NOW, **WHO) == 3
    assert figures(yard) == (3, 0, 0, 3)
    assert set(callbacks(yard)) == {"on_failure", "on_end"}


def test_a_retry_before_the_end_can_still_succeed(yard):
    yard.batch(items(2), id="b", now=NOW, **CALLBACKS)
    first, second = take(yard)
    yard.fail(first, "no", now=NOW)
    assert figures(yard) == (2, 1, 0, 1)
    yard.redrive("door", "work", now=NOW, **WHO)
    assert figures(yard) == (2, 2, 0, 0)
    yard.complete_many([(second, None), *((job, None) for job in take(yard))], now=NOW)
    assert set(callbacks(yard)) == {"on_success", "on_end"}


def test_a_retry_after_the_end_repeats_no_callback(yard):
    yard.batch(items(2), id="b", now=NOW, **CALLBACKS)
    for job in take(yard):
        yard.fail(job, "no", now=NOW)
    assert set(callbacks(yard)) == {"on_failure", "on_end"}
    yard.redrive("door", "work", now=NOW, **WHO)
    first, second = take(yard)
    yard.complete(first, now=NOW)
    yard.fail(second, "no", now=NOW)
    assert (figures(yard), callbacks(yard)) == ((2, 0, 1, 1), {})
    yard.redrive("door", "work", now=NOW, **WHO)
    yard.complete(*take(yard), now=NOW + 9)
    assert set(callbacks(yard)) == {"on_success"}, "now all are done"
    assert yard.get_batch("door", "b").ended == NOW
    yard.purge("door", "work", place="dead", now=NOW, **WHO)
    assert figures(yard) == (2, 0, 2, 0)


def test_a_job_of_a_batch_can_add_others(yard):
    yard.batch(items(1), id="b", on_end=CALLBACKS["on_end"], now=NOW)
    (job,) = take(yard)
    grown = yard.add_to_batch("door", "b", items(70), key="children", now=NOW)
    assert yard.add_to_batch("door", "b", items(70), key="children", now=NOW) == grown, "a key adds once"
    assert figures(yard) == (71, 71, 0, 0)
    yard.complete_many([(each, None) for each in [job, *take(yard, count=70)]], now=NOW)
    assert set(callbacks(yard)) == {"on_end"}
    with pytest.raises(BadInput, match="the batch has ended"):
        yard.add_to_batch("door", "b", items(1))


def test_no_key_of_a_caller_is_that_of_the_first_jobs(yard):
    yard.batch(items(3), id="b", now=NOW)
    assert yard.add_to_batch("door", "b", items(3), key="first", now=NOW).total == 6
    with pytest.raises(BadInput, match="NUL"):
        yard.add_to_batch("door", "b", items(3), key=FIRST, now=NOW)


def test_a_call_that_was_interrupted_is_completed_by_the_same_call(yard):
    root, words = yard.keys.partition("door").root, ("work", "work", "", 5, 0, "", 1, 0, 9000, 0, "1", "")
    yard.client.fcall("sb_batch", 1, root, NOW, "b", FIRST, 60, 0, "{}", *words * 50)
    batch = yard.get_batch("door", "b")
    assert (batch.total, batch.open, batch.added) == (60, 60, 50)
    assert 0 < yard.client.pttl(yard.keys.partition("door").batch("b")) <= 7 * DAYS
    yard.complete_many([(job, None) for job in take(yard)], now=NOW)
    assert yard.get_batch("door", "b").ended == 0, "ten are missing"
    for _ in range(2):
        assert yard.batch(items(60), id="b", now=NOW).added == 60
    assert yard.client.pttl(yard.keys.partition("door").batch("b")) == -1
    yard.complete_many([(job, None) for job in take(yard)], now=NOW)
    assert figures(yard) == (60, 0, 60, 0)
    assert 0 < yard.client.pttl(yard.keys.partition("door").batch("b")) <= 7 * DAYS
    with pytest.raises(BadInput, match="this addition began with 60 jobs"):
        yard.batch(items(61), id="b")


def test_jobs_outlive_the_record_of_their_batch(yard):
    yard.batch(items(2), id="b", now=NOW, **CALLBACKS)
    yard.client.delete(yard.keys.partition("door").batch("b"))
    first, second = take(yard)
    yard.complete(first, now=NOW)
    yard.fail(second, "no", now=NOW)
    with pytest.raises(LookupFailed, match="has no batch 'b'"):
        yard.get_batch("door", "b")
    assert callbacks(yard) == {}


def test_a_job_of_an_earlier_batch_does_not_count_in_a_later_one_of_the_same_id(yard):
    yard.batch(items(4), id="b", now=NOW, **CALLBACKS)
    old = take(yard)
    for job in old[:3]:
        yard.fail(job, "no", now=NOW)
    yard.client.delete(yard.keys.partition("door").batch("b"))  # as after a week
    yard.batch(items(1), id="b", now=NOW, **CALLBACKS)
    yard.withdraw("door", old[0], now=NOW, **WHO)
    assert yard.redrive("door", "work", now=NOW, **WHO) == 2
    assert figures(yard) == (1, 1, 0, 0)
    failing, *done, new = sorted([old[3], *take(yard)], key=lambda job: job.id)
    yard.fail(failing, "no", now=NOW)
    yard.complete_many([(job, None) for job in done], now=NOW)
    assert (figures(yard), callbacks(yard)) == ((1, 1, 0, 0), {})
    assert yard.get_batch_of(new).open == 1
    with pytest.raises(LookupFailed):
        yard.get_batch_of(failing)
    yard.complete(new, now=NOW)
    assert (figures(yard), set(callbacks(yard))) == ((1, 0, 1, 0), {"on_success", "on_end"})


@pytest.mark.parametrize("field", ["total", "open", "done", "added", "after"])
def test_a_job_ends_whatever_became_of_its_batch(yard, field):
    yard.batch(items(2), id="b", now=NOW, **CALLBACKS)
    yard.client.hset(yard.keys.partition("door").batch("b"), field, "x")
    first, second = take(yard)
    yard.complete(first, now=NOW)
    assert yard.fail(second, "no", now=NOW) == "dead"
    assert yard.jobs("door", "work", place="leased") == []


def test_all_or_none_of_a_part_is_added(yard):
    yard.client.set(yard.keys.partition("door").ready("broken"), "no sorted set")
    with unchanged(yard), pytest.raises(EngineFault):
        yard.batch([*items(3), *items(1, queue="broken")], id="b", now=NOW, **CALLBACKS)


def test_a_callback_that_cannot_be_enqueued_is_named(yard):
    yard.batch(items(1), id="b", now=NOW, **CALLBACKS)
    yard.client.set(yard.keys.partition("door").ready("after"), "no sorted set")
    yard.complete(*take(yard), now=NOW)
    batch = yard.get_batch("door", "b")
    assert (batch.done, batch.ended) == (1, NOW)
    assert batch.error.startswith("on_end: ")
    assert "WRONGTYPE" in batch.error


@for_each(
    "jobs, options, why",
    [
        ([], {}, "from 1 to 1000000, not 0"),
        (items(1, unique="u"), {}, "has no unique"),
        (items(1, key="k"), {}, "has no unique"),
        ([*items(1), {"machine": "gate", "src": "work"}], {}, "of one machine"),
        (items(1), {"on_end": {"machine": "gate", "src": "work"}}, "of one machine"),
        (items(1), {"id": "x" * 201}, "at most 200 bytes"),
    ],
)
def test_what_is_no_batch_is_refused(yard, jobs, options, why):
    with unchanged(yard), pytest.raises(BadInput, match=why):
        yard.batch(jobs, **options)


def test_an_addition_to_a_batch_that_went_meanwhile_finds_none(yard, monkeypatch):
    batch = yard.batch(items(1), id="b", now=NOW)
    root = yard.keys.partition("door").root
    yard.client.delete(yard.keys.partition("door").batch("b"))
    monkeypatch.setattr(yard, "_require_batch", lambda machine, id: (root, batch))
    with unchanged(yard), pytest.raises(LookupFailed, match="has no batch 'b'"):
        yard.add_to_batch("door", "b", items(1))


def test_a_machine_that_is_not_published_has_no_batch(yard):
    with pytest.raises(UnknownMachine):
        yard.batch([{"machine": "gate", "src": "work"}])


def test_racing_workers_end_a_batch_once(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    publish(engine, door())
    batch = engine.batch(items(400), **CALLBACKS)

    def work():
        while jobs := engine.take("door", "work", "w", count=7):
            failed = [job for job in jobs if job.input % 10 == 0]
            engine.complete_many([(job, None) for job in jobs if job not in failed])
            for job in failed:
                engine.fail(job, "no")

    in_threads([work] * 6)
    ended = engine.get_batch("door", batch.id)
    assert (ended.open, ended.done, ended.failed) == (0, 360, 40)
    assert [job.src for job in engine.take("door", "after", "w", count=9)] == ["on_failure", "on_end"]
    engine.client.close()
