"""Dead jobs that their instances no longer wait for: handled, apart from those that need a person."""

import pytest

from machines.engine import JobHandled
from tests.engine.builders import NOW, errand, publish

from .queueing import busy, places, take

WHO = {"actor": "ada", "reason": "a trial"}


def chart():
    """A parallel state whose work fails on one side, while the other side goes on."""
    return {
        "id": "twin",
        "initial": "Both",
        "states": {
            "Both": {
                "type": "parallel",
                "states": {
                    "Left": {
                        "initial": "Work",
                        "states": {
                            "Work": {"invoke": {"id": "job", "src": "do", "queue": "work", "retry": {"attempts": 1}},
                                     "on": {"on": "Rest"}},
                            "Rest": {"on": {"again": "Work"}},
                        },
                    },
                    "Right": {"initial": "A", "states": {"A": {"on": {"step": "B"}}, "B": {"on": {"step": "A"}}}},
                },
            },
        },
    }  # fmt: skip


def waiting():
    """An errand that stays in its state when the job died, until somebody decides."""
    definition = errand(retry={"attempts": 1})
    busy_state = definition["states"]["Busy"]
    busy_state["invoke"].pop("onError", None)
    busy_state["on"] = busy_state.get("on", {}) | {"give_up": "Failed"}
    return definition


def die(engine, name="errand", now=NOW):
    (job,) = engine.take(name, "work", "w", now=now)
    engine.fail(job, "no such bank", kind="Refusal", retry=False, now=now)
    return job


def depth(engine, name="errand"):
    found = engine.stats(name)["work"].depth
    return found["dead"], found["handled"]


def stuck(engine, *ids):
    publish(engine, waiting(), *ids)
    for id in ids:
        engine.fire("errand", id, "start", now=NOW)


def test_a_job_whose_death_moved_its_instance_is_handled_at_once(engine):
    busy(engine, "x", retry={"attempts": 1})
    job = die(engine, now=NOW + 5)
    assert (depth(engine), places(engine)) == ((0, 1), {job.id: "handled"})
    found = engine.job("errand", job.id)
    assert (found.place, found.finished, found.handled) == ("handled", NOW + 5, NOW + 5)
    assert engine.stats("errand")["work"].died == 1
    assert engine.live("errand").queues["work"]["handled"] == 1


@pytest.mark.parametrize("leave", ["fire", "force", "delete"])
def test_a_job_is_dead_until_its_instance_leaves_the_state(engine, leave):
    stuck(engine, "x", "y")
    (first, second) = (die(engine), die(engine))
    job = first if first.instance == "x" else second
    assert depth(engine) == (2, 0)
    if leave == "fire":
        engine.fire("errand", "x", "give_up", now=NOW + 1)
    elif leave == "force":
        engine.force("errand", "x", state="Failed", **WHO)
    else:
        engine.delete("errand", "x", **WHO)
    assert depth(engine) == (1, 1)
    found = engine.job("errand", job.id)
    assert found.place == "handled"
    assert found.instance_is == ("gone" if leave == "delete" else "present")
    assert "_dead" not in engine.client.hgetall(engine.keys.partition("errand").instance("x"))


def test_a_step_of_another_region_leaves_the_job_dead(engine):
    publish(engine, chart(), "x")
    job = die(engine, "twin")
    engine.fire("twin", "x", "step")
    assert depth(engine, "twin") == (1, 0)
    engine.fire("twin", "x", "on")
    assert depth(engine, "twin") == (0, 1)
    engine.fire("twin", "x", "again")
    assert engine.job("twin", job.id).place == "handled"


@pytest.mark.parametrize("keys", [{}, {"guard": "n < 10"}])
def test_a_step_that_stays_at_the_death_leaves_the_job_dead(engine, keys):
    definition = waiting()
    definition["context"] = definition.get("context", {}) | {"n": 0}
    stay = {"actions": {"set": {"n": "n + 1"}}} | keys
    definition["states"]["Busy"]["invoke"]["onError"] = stay
    publish(engine, definition, "x")
    engine.fire("errand", "x", "start", now=NOW)
    job = die(engine)
    instance = engine.get("errand", "x")
    assert (instance.state, instance.data["n"], engine.job("errand", job.id).place) == ("Busy", 1, "dead")


def test_a_dead_job_of_an_earlier_stay_is_not_awaited_again(engine):
    """An engine that kept no list of dead jobs left them dead when their instance went on."""
    stuck(engine, "x")
    job = die(engine)
    engine.client.hdel(engine.keys.partition("errand").instance("x"), "_dead")
    engine.force("errand", "x", state="Idle", **WHO, now=NOW + 1)
    engine.fire("errand", "x", "start", now=NOW + 2)
    die(engine, now=NOW + 3)
    engine.redrive("errand", "work", job.id, **WHO)
    (again,) = engine.take("errand", "work", "w")
    assert again.id == job.id
    engine.complete(again)
    assert engine.get("errand", "x").state == "Busy"


def test_a_job_without_an_invoke_waits_for_a_person(engine):
    stuck(engine, "x")
    engine.take("errand", "work", "w")
    engine.enqueue("errand", "alone", queue="work", attempts=1)
    die(engine)
    assert depth(engine) == (1, 0)


def test_a_later_instance_of_the_same_id_is_not_the_jobs(engine):
    stuck(engine, "x")
    job = die(engine)
    engine.delete("errand", "x", **WHO)
    engine.create("errand", "x", now=NOW + 1000)
    found = engine.job("errand", job.id)
    assert (found.place, found.instance_is, found.data, found.instance_state) == ("handled", "later", {}, ())
    (listed,) = engine.jobs("errand", "work", place="handled")
    assert (listed.id, listed.data) == (job.id, {})


def test_the_place_of_the_instance_is_told(engine):
    stuck(engine, "x")
    job = die(engine)
    found = engine.job("errand", job.id)
    assert (found.instance_is, found.instance_state) == ("present", ("Busy",))


def test_a_handled_job_is_retried_only_by_force(engine):
    busy(engine, "x", retry={"attempts": 1})
    job = die(engine)
    with pytest.raises(JobHandled) as caught:
        engine.redrive("errand", "work", job, **WHO)
    assert (caught.value.code, depth(engine)) == ("SB443", (0, 1))
    assert engine.redrive("errand", "work", **WHO) == 0
    before = engine.get("errand", "x")
    assert engine.redrive("errand", "work", job, force=True, **WHO) == 1
    (again,) = take(engine)
    engine.complete(again, now=NOW)
    assert engine.get("errand", "x").revision == before.revision
    assert depth(engine) == (0, 0)


def test_a_forced_retry_that_fails_is_handled_again(engine):
    busy(engine, "x", retry={"attempts": 1})
    job = die(engine)
    engine.redrive("errand", "work", job, force=True, **WHO)
    die(engine)
    assert depth(engine) == (0, 1)


def test_a_retried_dead_job_is_waited_for_again(engine):
    stuck(engine, "x")
    job = die(engine)
    assert engine.redrive("errand", "work", job, **WHO) == 1
    assert "_dead" not in engine.client.hgetall(engine.keys.partition("errand").instance("x"))
    (again,) = take(engine)
    engine.complete(again, now=NOW)
    assert engine.get("errand", "x").state != "Busy"


def test_handled_jobs_are_purged_without_a_word_to_their_instances(engine):
    busy(engine, "x", retry={"attempts": 1})
    die(engine)
    before = engine.get("errand", "x").revision
    assert engine.purge("errand", "work", place="handled", expect=1, **WHO) == 1
    assert (depth(engine), engine.get("errand", "x").revision) == ((0, 0), before)


def as_before(engine, job, name="errand"):
    """Put a job where the release before left it: dead, and unknown to its instance."""
    partition, client = engine.keys.partition(name), engine.client
    client.zrem(partition.handled("work"), job.id)
    client.zadd(partition.dead("work"), {job.id: NOW})
    client.hset(partition.job(job.id), "place", "dead")
    client.hdel(partition.job(job.id), "handled")
    client.hdel(partition.meta, "settled")
    client.hdel(partition.instance(job.instance), "_dead")


@pytest.mark.parametrize("by", ["sweep", "mend"])
def test_dead_jobs_of_an_earlier_release_are_told_apart(engine, by):
    stuck(engine, "x", "y")
    (first, second) = (die(engine), die(engine))
    engine.fire("errand", first.instance, "give_up", now=NOW + 1)
    as_before(engine, first), as_before(engine, second)
    assert depth(engine) == (2, 0)
    engine.sweep("errand", now=NOW + 2) if by == "sweep" else engine.mend("errand", now=NOW + 2)
    assert depth(engine) == (1, 1)
    assert engine.job("errand", first.id).place == "handled"
    engine.fire("errand", second.instance, "give_up", now=NOW + 3)
    assert depth(engine) == (0, 2)


def test_a_move_to_a_version_without_the_state_handles_the_job(engine):
    stuck(engine, "x")
    job = die(engine)
    changed = waiting()
    del changed["states"]["Busy"]
    changed["states"] |= {"Idle": {"on": {"start": "Held"}}, "Held": {"on": {"give_up": "Failed"}}}
    engine.publish(changed)
    assert engine.migrate(engine.plan("errand", 2, states={"Busy": "Held"}), **WHO).refused == []
    assert engine.job("errand", job.id).place == "handled"
