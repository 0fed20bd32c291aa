"""What operators do with the jobs of a queue: purge, retry, run now, withdraw; and pages of them."""

import pytest

from machines.engine import BadInput, EngineFault, LeaseLost, LookupFailed, Miscounted
from tests.cases import for_each
from tests.engine.builders import NOW, door, errand, machine, publish
from tests.engine.dumps import unchanged

from .queueing import busy, places, take

WHO = {"actor": "ann", "reason": "because"}


def put(engine, count, **facts):
    publish(engine, door())
    return engine.enqueue_many(
        [{"machine": "door", "src": "work", "now": NOW, "input": n} | facts for n in range(count)]
    )


def bury(engine, *ids, **invoke):
    """Suspended instances of ``errand`` whose work has failed for good: they deal with that when they are resumed."""
    busy(engine, *ids, **invoke)
    for id in ids:
        engine.suspend("errand", id, **WHO)
    for job in take(engine, count=len(ids)):
        engine.fail(job, "no", kind="ValueError", retry=False, now=NOW)


def stuck(engine, *ids):
    """Instances that stay in the state whose work has failed for good: nobody listens for errors."""
    states = {
        "Busy": {"invoke": {"src": "work", "onDone": "Done"}, "on": {"again": {"target": "Busy", "reenter": True}}}
    }
    publish(engine, machine("errand", states | {"Done": {}}), *ids)
    for job in take(engine, count=len(ids)):
        engine.fail(job, "no", retry=False, now=NOW)


def test_a_purge_takes_one_place_away_and_no_other(engine):
    put(engine, 700)
    put(engine, 3, delay=1000)
    (held,) = engine.take("door", "work", "w", now=NOW)
    assert engine.purge("door", "work", place="ready", expect=699, **WHO) == 699
    assert engine.queues("door")["work"] == {"ready": 0, "leased": 1, "delayed": 3, "dead": 0, "handled": 0}
    assert engine.purge("door", "work", place="delayed", **WHO) == 3
    assert engine.purge("door", "work", place="dead", **WHO) == 0
    assert list(places(engine, name="door")) == [held.id]
    left = set(engine.client.scan_iter(match=f"{engine.keys.prefix}*:job:*"))  # SCAN may name a key twice
    assert left == {engine.keys.partition("door").job(held.id)}


def test_a_purge_that_expects_another_number_does_nothing(engine):
    put(engine, 3)
    with unchanged(engine), pytest.raises(Miscounted, match="queue work has 3 ready jobs, not 2") as caught:
        engine.purge("door", "work", place="ready", expect=2, **WHO)
    assert (caught.value.expected, caught.value.actual, caught.value.code) == (2, 3, "SB441")


@pytest.mark.parametrize(
    "options",
    [{"place": "leased"}, {"place": ""}, {"place": "ready", "expect": -1}, {"place": "ready", "reason": ""}],
)
def test_what_cannot_be_purged_is_bad_input(engine, options):
    put(engine, 1)
    with unchanged(engine), pytest.raises(BadInput):
        engine.purge("door", "work", **(WHO | options))


def test_who_waits_for_a_purged_job_is_told(engine):
    failed = {"target": "Failed", "actions": {"set": {"why": "[event.kind, event.error, event.attempts]"}}}
    states = {"Busy": {"invoke": {"src": "work", "onError": failed}}, "Failed": {}}
    publish(engine, machine("m", states, context={"why": []}), "x")
    assert engine.purge("m", "work", place="ready", **WHO) == 1
    assert engine.get("m", "x").data == {"why": ["Purged", "the job was purged", 0]}
    publish(engine, machine("n", states, context={"why": []}), "x")
    engine.withdraw("n", "0-1", **WHO)
    assert engine.get("n", "x").data == {"why": ["Withdrawn", "the job was withdrawn", 0]}


def test_the_log_tells_who_did_what(engine):
    put(engine, 600)
    (job,) = engine.take("door", "work", "w", now=NOW)
    engine.fail(job, "no", retry=False)
    engine.redrive("door", "work", **WHO)
    engine.withdraw("door", "0-600", **WHO)
    engine.purge("door", "work", place="ready", **WHO)
    entries = [entry for _, entry in engine.client.xrange(engine.keys.partition("door").log)]
    assert [(e["name"], e["actor"], e["reason"]) for e in entries] == [
        (name, "ann", "because") for name in ("redrive", "withdraw", "purge")
    ]
    assert '"jobs":"599"' in entries[2]["data"]


def test_a_dead_job_comes_back_with_all_its_attempts(engine):
    bury(engine, *"abc")
    assert engine.redrive("errand", "work", "0-2", now=NOW + 5, **WHO) == 1
    assert places(engine) == {"0-1": "dead", "0-2": "ready", "0-3": "dead"}
    (job,) = take(engine, now=NOW + 5)
    assert (job.id, job.attempt, job.attempts, job.error, job.finished) == ("0-2", 1, 3, "no", 0)
    assert engine.redrive("errand", "work", "0-2", **WHO) == 0, "it is not dead"
    assert engine.redrive("errand", "work", **WHO) == 2


def test_hundreds_of_dead_jobs_come_back(engine):
    put(engine, 600)
    for job in engine.take("door", "work", "w", count=600, now=NOW):
        engine.fail(job, "no", retry=False)
    assert engine.redrive("door", "work", **WHO) == 600
    assert [job.input for job in engine.take("door", "work", "w", count=600)] == list(range(600)), "in their order"


def test_an_instance_that_is_still_there_waits_again(engine):
    stuck(engine, "x")
    assert engine.get("errand", "x").jobs == []
    engine.redrive("errand", "work", **WHO)
    assert engine.get("errand", "x").jobs == ["0-1"]
    (job,) = take(engine)
    assert engine.complete(job).state == "Done"


def test_an_instance_that_moved_on_or_began_anew_is_left_alone(engine):
    stuck(engine, "x")
    engine.fire("errand", "x", "again", now=NOW + 5)
    engine.redrive("errand", "work", "0-1", force=True, **WHO)
    assert engine.get("errand", "x").jobs == ["0-2"]
    (job,) = take(engine)
    assert (job.id, engine.complete(job), engine.get("errand", "x").state) == ("0-1", None, "Busy")
    bury(engine, "y")
    engine.redrive("errand", "work", **WHO)
    engine.delete("errand", "y")
    for job in take(engine, count=5):
        engine.complete(job)
    assert places(engine) == {}


def test_a_chart_waits_again_too(engine):
    inside = {"initial": "A", "states": {"A": {"invoke": {"src": "work", "onDone": "B"}}, "B": {}}}
    publish(engine, machine("c", {"Box": inside}), "x")
    (job,) = engine.take("c", "work", "w")
    engine.fail(job, "no", retry=False)
    engine.redrive("c", "work", **WHO)
    (job,) = engine.take("c", "work", "w")
    assert engine.complete(job).state == "B"


def test_delayed_jobs_run_at_once(engine):
    put(engine, 3, delay=60_000)
    assert engine.move_now("door", "work", "0-2", now=NOW, **WHO) == 1
    (job,) = engine.take("door", "work", "w", now=NOW)
    assert (job.id, job.due) == ("0-2", NOW)
    assert engine.move_now("door", "work", now=NOW, **WHO) == 2
    assert engine.move_now("door", "work", "0-2", **WHO) == 0


def test_a_job_is_moved_only_while_it_is_where_it_was_seen(engine):
    put(engine, 2, delay=1000)
    late = engine.job("door", "0-1")
    engine.reschedule("door", late, until=NOW + 5000, now=NOW, **WHO)
    died = []
    for now in (NOW + 1000, NOW + 2000):
        engine.redrive("door", "work", "0-2", now=now, **WHO)
        (job,) = engine.take("door", "work", "w", now=now)
        engine.fail(job, "no", retry=False, now=now)
        died.append(engine.job("door", "0-2"))
    with unchanged(engine):
        assert engine.move_now("door", "work", late, unchanged=True, **WHO) == 0
        assert engine.redrive("door", "work", died[0], unchanged=True, **WHO) == 0
    assert engine.move_now("door", "work", engine.job("door", "0-1"), unchanged=True, **WHO) == 1
    assert engine.redrive("door", "work", died[1], unchanged=True, **WHO) == 1


def test_a_job_is_withdrawn_where_it_was_seen_alone(engine):
    put(engine, 2, delay=1000)
    seen = engine.job("door", "0-1")
    (job,) = engine.take("door", "work", "w", now=NOW + 1000, count=1)
    engine.fail(job, "no", now=NOW + 1000)
    with unchanged(engine):
        assert not engine.withdraw("door", seen, unchanged=True, **WHO), "it is delayed anew"
        with pytest.raises(BadInput):
            engine.withdraw("door", "0-1", unchanged=True, **WHO)
    assert engine.withdraw("door", engine.job("door", "0-1"), unchanged=True, **WHO)
    assert engine.withdraw("door", "0-2", **WHO)
    assert not any(engine.stats("door")["work"].depth.values())


def test_a_running_handler_learns_that_its_job_was_withdrawn(engine):
    busy(engine, *"abc")
    held = take(engine, count=3)
    engine.withdraw("errand", held[0], **WHO)
    engine.fire("errand", "b", "abandon")
    engine.delete("errand", "c")
    assert engine.renew(held, 1000) == ["withdrawn"] * 3
    for job in held:
        for call in (
            lambda j=job: engine.complete(j),
            lambda j=job: engine.progress(j, 1),
            lambda j=job: engine.fail(j, "no"),
        ):
            with unchanged(engine), pytest.raises(LeaseLost, match="withdrawn"):
                call()


def test_what_is_finished_is_gone_and_what_another_has_was_taken_back(engine):
    busy(engine, *"ab")
    done, late = take(engine, count=2, lease=10)
    engine.complete(done)
    engine.sweep("errand", now=NOW + 10)
    assert engine.renew([done, late], 1000) == ["gone", "taken back"]


def test_a_job_that_is_not_there_is_named(engine):
    publish(engine, errand())

    @for_each("call", ["withdraw", "redrive", "move_now"])
    def check(call):
        args = ["errand"] if call == "withdraw" else ["errand", "work"]
        with unchanged(engine), pytest.raises(LookupFailed, match="has no job"):
            getattr(engine, call)(*args, "7-1", **WHO)

    check()


def test_what_cannot_be_taken_away_stays(engine):
    busy(engine, "x")
    history = engine.keys.partition("errand").history("x")
    engine.client.delete(history)
    engine.client.set(history, "foreign")
    with unchanged(engine):
        with pytest.raises(EngineFault):
            engine.withdraw("errand", "0-1", **WHO)
        with pytest.raises(EngineFault):
            engine.purge("errand", "work", place="ready", **WHO)


def test_jobs_are_listed_page_by_page(engine):
    put(engine, 25)
    pages = [[j.input for j in engine.jobs("door", "work", limit=10, offset=at)] for at in (0, 10, 20, 30)]
    assert pages == [list(range(10)), list(range(10, 20)), list(range(20, 25)), []]
    with pytest.raises(BadInput):
        engine.jobs("door", "work", offset=-1)


def test_pages_go_over_all_partitions(redis_url, prefix):
    from machines.engine import Engine

    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    put(engine, 50)
    pages = [engine.jobs("door", "work", limit=7, offset=at) for at in range(0, 56, 7)]
    assert [len(page) for page in pages] == [7] * 7 + [1]
    assert len({job.id for page in pages for job in page}) == 50
    assert engine.purge("door", "work", place="ready", expect=50, **WHO) == 50
    engine.client.close()


def test_the_newest_of_the_dead_come_first(engine):
    put(engine, 3)
    for at, job in enumerate(engine.take("door", "work", "w", count=3, now=NOW)):
        engine.fail(job, "no", retry=False, now=NOW + at)
    dead = engine.jobs("door", "work", place="dead")
    assert [(job.input, job.finished) for job in dead] == [(2, NOW + 2), (1, NOW + 1), (0, NOW)]


@pytest.mark.parametrize("job", [None, "0-1", 7, {"id": "0-1"}])
def test_who_ends_or_renews_a_job_has_to_hold_it(engine, job):
    put(engine, 1)
    calls = [
        lambda: engine.complete(job),
        lambda: engine.fail(job, "no"),
        lambda: engine.hand_back(job),
        lambda: engine.progress(job, 1),
        lambda: engine.renew([job], 1000),
    ]
    for call in calls:
        with pytest.raises(BadInput, match=r"take\(\) gave out"):
            call()
    assert isinstance(engine.complete_many([(job, 1)])[0], BadInput)


def test_an_operator_names_a_job_by_its_id(engine):
    put(engine, 1)

    @for_each("job", [7, 1.5, {"id": "0-1"}])
    @for_each("call", ["withdraw", "redrive", "move_now"])
    def check(call, job):
        queue = [] if call == "withdraw" else ["work"]
        with pytest.raises(BadInput, match="a job or its id"):
            getattr(engine, call)("door", *queue, job, **WHO)

    check()


@pytest.mark.parametrize("field", ["error", "kind", "trace"])
def test_what_is_told_of_a_failure_is_text(engine, field):
    put(engine, 1)
    (job,) = engine.take("door", "work", "w", now=NOW)
    with pytest.raises(BadInput, match=f"{field} is text"):
        engine.fail(job, **{"error": "no"} | {field: ValueError("no")})
    assert places(engine, name="door") == {job.id: "leased"}


def test_an_error_cuts_what_was_far_too_long(engine):
    put(engine, 1)
    huge = "x" * 10_000
    for call in (
        lambda: engine.job("door", huge),
        lambda: engine.jobs("door", "work", place=huge),
        lambda: engine.limit("door", "work", rate=huge),
        lambda: engine.direct("w", huge, actor="ann", reason="because"),
    ):
        with pytest.raises((BadInput, LookupFailed)) as caught:
            call()
        assert len(str(caught.value)) < 300
