"""All that a page about one instance shows, in one round trip; and the states before a step, told with it."""

from __future__ import annotations

import pytest

from machines.engine import BadPayload, Permit, Suspended, UnknownInstance, UnknownMachine
from tests import wire

WORK = {
    "id": "works",
    "initial": "Idle",
    "context": {"type": "object", "properties": {"n": {"type": "integer", "sensitive": True, "default": 1}}},
    "events": {"count": {"payload": {"by": {"type": "integer", "required": True}}}},
    "states": {
        "Idle": {"on": {"start": "Busy", "count": {"actions": {"set": {"n": "n + event.by"}}}}},
        "Busy": {"invoke": {"src": "work", "retry": {"attempts": 1}, "onDone": "Idle"}, "on": {"stop": "Idle"}},
    },
}
PAIR = {
    "id": "pair",
    "type": "parallel",
    "states": {
        "left": {"initial": "a", "states": {"a": {"on": {"go": "b"}}, "b": {}}},
        "right": {"initial": "c", "states": {"c": {"on": {"go": "d"}}, "d": {}}},
    },
}
ANYBODY = Permit(None)


@pytest.fixture
def works(engine):
    engine.publish(WORK)
    engine.create("works", "w")
    engine.inspect("works", "w")  # learns the partitions and how data reads
    return engine


def test_everything_is_as_the_single_calls_say_it(works):
    works.fire("works", "w", "start")
    with wire.recorded() as traffic:
        found = works.inspect("works", "w", events=["start", "stop", "nothing"], steps=5)
    assert len(traffic.trips) == 1
    assert found.instance == works.get("works", "w")
    assert found.steps == works.history("works", "w", limit=5)
    assert found.waits == works.waits("works", "w")
    assert found.jobs == [works.job("works", id) for id in found.instance.jobs] != []
    assert found.explanations == {name: works.explain("works", "w", name) for name in ("start", "stop", "nothing")}
    assert found.sensitive == works.sensitive("works")


def test_a_dead_job_that_it_waits_for_is_among_its_jobs(works):
    works.fire("works", "w", "start")
    (job,) = works.take("works", "work", "w-1", count=1)
    works.fail(job, "no", retry=False)
    found = works.inspect("works", "w")
    assert [(one.id, one.place) for one in found.jobs] == [(job.id, "dead")]


def test_what_cannot_be_explained_says_why(works):
    assert isinstance(works.inspect("works", "w", events=["count"]).explanations["count"], BadPayload)
    works.suspend("works", "w", actor="ann", reason="a test")
    found = works.inspect("works", "w", events=["start"])
    assert isinstance(found.explanations["start"], Suspended)
    assert works.explain_all("works", "w", ["start"]).keys() == {"start"}


def test_what_is_not_there_is_said_as_by_get(works):
    with pytest.raises(UnknownInstance):
        works.inspect("works", "nobody")
    with pytest.raises(UnknownMachine):
        works.inspect("nothing", "w")


def test_steps_are_no_more_than_were_asked_for(works):
    for _ in range(3):
        works.fire("works", "w", "count", {"by": 1})
    assert [step.revision for step in works.inspect("works", "w", steps=2).steps] == [4, 3]


def test_a_person_is_told_the_states_before_and_a_program_is_not(works):
    assert works.fire("works", "w", "start").outcome.before == []
    after = works.fire("works", "w", "stop", permit=ANYBODY, key="k")
    assert (after.outcome.before, after.state) == (["Busy"], "Idle")
    again = works.fire("works", "w", "stop", permit=ANYBODY, key="k")
    assert (again.outcome.replayed, again.outcome.before) == (True, ["Busy"])
    forced = works.force("works", "w", "Busy", actor="ann", reason="a test", permit=ANYBODY)
    assert (forced.outcome.before, forced.state) == (["Idle"], "Busy")


def test_all_leaves_before_are_told(engine):
    engine.publish(PAIR)
    engine.create("pair", "p")
    after = engine.fire("pair", "p", "go", permit=ANYBODY)
    assert (after.outcome.before, after.configuration) == (["a", "c"], ["b", "d"])
