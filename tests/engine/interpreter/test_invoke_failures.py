"""Children that cannot begin, cannot be reached, or whose end nobody can take."""

import pytest
from redis.exceptions import ResponseError

from tests.engine.builders import machine, publish
from tests.engine.dumps import unchanged
from tests.engine.families import child, only, parent, tell
from tests.engine.messages.mailing import corrupt, fill_outbox, in_minutes, mend, noter, told, waiting

BYE = {
    "exit": [
        {"enqueue": {"queue": "first", "src": "bye"}},
        {"enqueue": {"queue": "second", "src": "bye"}},
        {"emit": {"type": "bye"}},
        {"send": {"event": "note", "to": {"machine": "noter", "id": "'x'"}, "data": {"n": "n"}}},
    ]
}


@pytest.fixture
def family(engine):
    """A parent ``p`` that has started its child."""
    publish(engine, child())
    publish(engine, parent(input={"n": "start"}), "p")
    engine.fire("parent", "p", "start")
    return engine


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        (None, "no machine 'child' is published"),
        (child(A={"entry": {"set": {"n": "1 / 0"}}}), "division by zero"),
        (machine("child", {"A": {}}, context={"n": "text"}), "n takes string, not number"),
    ],
)
def test_a_child_that_cannot_begin_is_an_error_of_the_invocation(engine, definition, why):
    if definition:
        publish(engine, definition)
    publish(engine, parent(input={"n": "start"}), "p")
    engine.fire("parent", "p", "start")
    after = engine.get("parent", "p")
    assert (after.state, after.children) == ("Failed", {})
    assert why in after.data["why"]
    assert (waiting(engine, "parent"), engine.tick()) == (0, 0)


def test_where_nobody_listens_for_that_it_is_an_error_of_communication(engine):
    publish(
        engine,
        machine("p", {"A": {"invoke": {"src": "machine:ghost"}, "on": {"error.communication": "B"}}, "B": {}}),
        "x",
    )
    assert engine.get("p", "x").state == "B"


def test_and_where_nobody_listens_for_that_either_the_child_is_simply_not_there(engine):
    publish(engine, machine("p", {"A": {"invoke": {"src": "machine:ghost"}, "on": {"go": "B"}}, "B": {}}), "x")
    after = engine.get("p", "x")
    assert (after.state, after.children) == ("A", {})
    assert engine.fire("p", "x", "go").state == "B"


def test_a_failed_beginning_does_not_hit_the_child_of_the_next_time(family):
    """The answer to a start comes late: meanwhile the state was left and entered again."""
    root = family.keys.partition("parent").root
    family.fire("parent", "p", "quit")
    before = family.get("parent", "p").revision
    family.client.fcall("sb_fire", 1, root, "p", "start", "", "", "", "", "", "")
    (message,) = family.client.xrange(family.keys.partition("parent").outbox)
    family.client.fcall("sb_fire", 1, root, "p", "quit", "", "", "", "", "", "")
    family.client.fcall("sb_fire", 1, root, "p", "start", "", "", "", "", "", "")
    family.client.fcall("sb_settle", 1, root, "", message[0], "failed", "an old story")
    after = family.get("parent", "p")
    assert (after.state, after.revision) == ("Busy", before + 3)
    family.tick()
    assert family.get("parent", "p").children["k"]["id"] == only(family).id


def test_a_parent_made_again_under_its_id_gets_a_child_of_its_own(engine):
    """The finished child of the one before is still there."""
    publish(engine, child())
    publish(engine, parent(), "p")
    engine.fire("parent", "p", "start")
    first = only(engine).id
    tell(engine, "end")
    engine.delete("parent", "p")
    engine.create("parent", "p")
    after = engine.fire("parent", "p", "start")
    assert after.children["k"]["id"] != first
    assert engine.counts("child") == {"A": 1, "Z": 1}


def test_an_id_that_is_taken_is_no_child(engine):
    publish(engine, child(), "squatter")
    publish(engine, parent(), "p")
    root = engine.keys.partition("parent").root
    engine.client.fcall("sb_fire", 1, root, "p", "start", "", "", "", "", "", "")
    outbox = engine.keys.partition("parent").outbox
    ((id, message),) = engine.client.xrange(outbox)
    engine.client.xdel(outbox, id)
    engine.client.xadd(outbox, message | {"id": "squatter"})
    engine.tick()
    assert only(engine).parent is None
    assert engine.get("parent", "p").state == "Busy", "the answer is about another child than it waits for"


def test_done_data_whose_actions_fail_are_an_error_of_the_invocation(engine):
    publish(engine, child())
    done = {"target": "Done", "actions": {"set": {"got": "1 / 0"}}}
    publish(engine, parent(onDone=done), "p")
    engine.fire("parent", "p", "start")
    tell(engine, "end")
    after = engine.get("parent", "p")
    assert (after.state, after.data["why"], after.children) == ("Failed", "division by zero", {})


def test_and_where_those_fail_too_the_instance_waits_no_longer(engine):
    publish(engine, child())
    bad = {"target": "Done", "actions": {"set": {"got": "1 / 0"}}}
    publish(engine, parent(onDone=bad, onError=bad), "p")
    engine.fire("parent", "p", "start")
    tell(engine, "end")
    after = engine.get("parent", "p")
    assert (after.state, after.children) == ("Busy", {})
    assert (waiting(engine, "child"), engine.tick()) == (0, 0)
    ((_, entry),) = engine.client.xrange(engine.keys.partition("child").log)
    assert (entry["name"], entry["machine"]) == ("undelivered", "child")


def test_a_machine_that_invokes_itself_for_ever_is_stopped(engine):
    """Sixteen deep, and the last one is told why it has no child."""
    on = {"error.communication": {"actions": {"set": {"why": "event.message"}}}}
    states = {"A": {"invoke": {"src": "machine:mirror"}, "on": on}}
    publish(engine, machine("mirror", states, context={"why": ""}), "x")
    while engine.tick():
        pass
    found = list(engine.find("mirror", limit=50))
    assert len(found) == 17, "the first, and sixteen that were invoked"
    assert [i.data["why"] for i in found if not i.children] == ["machines invoke each other at most 16 deep"]
    engine.delete("mirror", "x")
    while engine.tick():
        pass
    assert engine.live("mirror").total == 0


def test_a_child_that_cannot_be_written_waits_for_its_end(family):
    id = only(family).id
    corrupt(family, id, "child")
    family.fire("parent", "p", "quit")
    assert waiting(family, "parent") == 1
    mend(family, id, "child")
    family.tick()
    assert family.live("child").total == 0


def test_and_is_given_up_after_ten_minutes(family):
    corrupt(family, only(family).id, "child")
    family.fire("parent", "p", "quit")
    family.tick(now=in_minutes(11))
    assert waiting(family, "parent") == 0


@pytest.fixture
def leaving(engine):
    """A parent that has left the state of its child, whose exit actions have effects; the message to stop it waits."""
    publish(engine, noter(), "x")
    publish(engine, child(A=BYE))
    publish(engine, parent(), "p")
    engine.fire("parent", "p", "start")
    root = engine.keys.partition("parent").root
    engine.client.fcall("sb_fire", 1, root, "p", "quit", "", "", "", "", "", "")
    return engine


def stop(engine):
    """The outcome of the message, and why."""
    source, root = (engine.keys.partition(name).root for name in ("parent", "child"))
    ((id, message),) = engine.client.xrange(f"{source}:out")
    words = (id, message["kind"], message["id"], message["body"])
    try:
        return engine.client.fcall("sb_deliver", 1, root, source, id, "", "", *words)[2:]
    except ResponseError as error:  # where the outbox cannot be read, the call has no reply
        return "fault", str(error)


@pytest.mark.parametrize("key", ["outbox", "log", "second"])
def test_a_child_that_cannot_be_stopped_has_no_effects_yet(leaving, key):
    keys = leaving.keys.partition("child")
    broken = keys.ready("second") if key == "second" else getattr(keys, key)
    leaving.client.set(broken, "foreign")
    stop(leaving)  # notes the sender
    with unchanged(leaving):
        outcome, why = stop(leaving)
    assert (outcome, "WRONGTYPE" in why) == ("fault", True)
    leaving.client.delete(broken)
    leaving.tick()
    assert leaving.live("child").total == 0
    assert [leaving.queues("child")[queue]["ready"] for queue in ("first", "second")] == [1, 1]
    assert told(leaving) == [0]


def test_a_full_outbox_takes_the_messages_of_a_child_that_is_stopped(leaving):
    outbox = fill_outbox(leaving, "child")
    assert stop(leaving)[0] == "applied"
    assert waiting(leaving, "child") == 100_001
    ((_, message),) = leaving.client.xrevrange(outbox, count=1)
    assert (message["kind"], message["machine"], message["id"]) == ("event", "noter", "x")
    assert leaving.live("child").total == 0
