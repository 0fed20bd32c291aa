"""Names people choose: anything that can be read is taken and kept apart, anything that breaks keys is refused."""

import pytest

from machines.engine import BadInput, DefinitionError, Refused
from tests.cases import for_each
from tests.engine.builders import door, machine, publish
from tests.engine.dumps import unchanged

IDS = [
    "a", "ATV-123:NBCSports", "a b", " a", "a ", "a/b", "../../etc", "{a}", "}{", "{m:0}", "a:b:c", ":", "::", "h:a",
    "i:a", '"', "'", "\\", "\\x41", "%41", "%", "?", "#", "&", "<b>", "$(x)", "`", "*", "[a]", "é", "日本語", "😀",
    "👩‍👩‍👧", "\u202eabc", "\u00a0x", "ß", "0", "-1", "1.5", "null", "None", "true", "nan", "__index", "x" * 200,
    "é" * 100, "😀" * 50,
]  # fmt: skip
NO_IDS = [
    "",
    " ",
    "   ",
    "\u3000",
    "a\x00b",
    "a\nb",
    "\t",
    "\x7f",
    "\x1b[31m",
    "\u2028",
    "\u0085",
    "x" * 201,
    "é" * 101,
    "\ud800",
    None,
    5,
    b"a",
    ["a"],
]
STATES = [
    "A",
    "On hold",
    "a:b",
    "a/b",
    "{x}",
    '"quoted"',
    "it's",
    "é😀",
    "100 %",
    "<b>",
    "a\\b",
    "[0]",
    "In",
    "x" * 100,
    "#A#",
    "a,b",
    "t1",
    "n\u00a0b",
]
NO_STATES = ["", " A", "A ", "a\nb", "a\x00", "x" * 101, "\ud800"]
EVENTS = [
    "go",
    "a.b.c",
    "go!",
    "a/b",
    "{x}",
    '"',
    "it's",
    "é😀",
    "100%",
    "<b>",
    "a\\b",
    "x" * 100,
    "a,b",
    "_",
    "0",
    "doneness",
    "errors",
]
NO_EVENTS = ["", "a b", " a", "a\tb", "a\nb", "a\x00", "x" * 101, "\ud800", "a*", "*", None, 5, b"a"]
NO_MACHINES = [
    "",
    "a b",
    "a:b",
    "a/b",
    "{a}",
    "1a",
    "-a",
    "é",
    "x" * 65,
    "a\n",
    "a\x00",
    "\ud800",
    None,
    5,
    b"door",
    ["door"],
]


def test_every_odd_id_lives_a_life_of_its_own(engine):
    publish(engine, door())
    for id in IDS:
        assert engine.create("door", id, key="k").id == id
    for id in IDS[::2]:
        assert engine.fire("door", id, "open", key="k").id == id
    assert {id: engine.get("door", id).state for id in IDS} == {
        id: "Shut" if number % 2 else "Open" for number, id in enumerate(IDS)
    }
    assert sorted(found.id for found in engine.find("door", limit=100)) == sorted(IDS)
    assert all(len(engine.history("door", id)) == 1 for id in IDS[1::2])
    for id in IDS:
        engine.delete("door", id)
    assert engine.counts("door") == {"Shut": 0, "Open": 0}


def test_an_id_that_breaks_keys_logs_or_terminals_is_refused_everywhere(engine):
    publish(engine, door())

    @for_each("id", NO_IDS)
    def check(id):
        calls = [
            lambda: engine.create("door", id) if id is not None else engine.get("door", id),
            lambda: engine.get("door", id),
            lambda: engine.fire("door", id, "open"),
            lambda: engine.explain("door", id, "open"),
            lambda: engine.history("door", id),
            lambda: engine.force("door", id, "Open", actor="a", reason="r"),
            lambda: engine.delete("door", id),
        ]
        with unchanged(engine):
            for call in calls:
                with pytest.raises(BadInput, match="instance id"):
                    call()
            assert isinstance(engine.fire_many([("door", id, "open")])[0], BadInput)

    check()


def test_every_odd_state_can_be_entered_counted_found_and_asked_for(engine):
    on = {f"to{number}": name for number, name in enumerate(STATES)}
    guards = {name: f"In({name!r})" for name in STATES}
    states = {name: {"on": on | {"here": {"guard": guards[name]}}} for name in STATES}
    publish(engine, machine("m", states), "x")
    for number, name in enumerate(STATES):
        assert engine.fire("m", "x", f"to{number}").state == name
        assert engine.fire("m", "x", "here").state == name
        assert {state for state, count in engine.counts("m").items() if count} == {name}
        assert [found.state for found in engine.find("m", state=name)] == [name]
        assert engine.history("m", "x")[0].configuration == [name]
        assert engine.force("m", "x", name, actor="a", reason="r").state == name
    assert engine.explain("m", "x", "to0").outcome["configuration"] == [STATES[0]]


@pytest.mark.parametrize("name", NO_STATES, ids=repr)
def test_a_state_name_that_breaks_things_is_refused(engine, name):
    with pytest.raises(DefinitionError):
        engine.publish(machine("m", {name: {}}))
    publish(engine, door(), "x")
    with unchanged(engine):
        with pytest.raises(BadInput):
            engine.force("door", "x", name, actor="a", reason="r")
        with pytest.raises(BadInput):
            engine.find("door", state=name)


def test_every_odd_event_can_be_fired_and_is_told(engine):
    publish(engine, machine("m", {"A": {"on": {event: {} for event in EVENTS}}}), "x")
    for event in EVENTS:
        engine.fire("m", "x", event, {"event": event})
        assert engine.history("m", "x")[0].event == event
        assert engine.explain("m", "x", event).event == event
    with pytest.raises(Refused) as caught:
        engine.fire("m", "x", "nothing")
    assert sorted(caught.value.explanation.known_events) == sorted(EVENTS)


def test_an_event_name_that_breaks_things_is_refused(engine):
    publish(engine, machine("m", {"A": {"on": {"*": {}}}}), "x")

    @for_each("event", NO_EVENTS)
    def check(event):
        with unchanged(engine):
            for call in (engine.fire, engine.explain):
                with pytest.raises(BadInput, match="event"):
                    call("m", "x", event)

    check()


@for_each("name", NO_MACHINES)
def test_a_machine_name_that_breaks_keys_is_refused(engine, name):
    for call in (engine.versions, engine.definition, engine.counts, engine.queues, engine.sweep, engine.find):
        with pytest.raises(BadInput, match="machine name"):
            call(name)
    with pytest.raises(BadInput):
        engine.create(name, "x")
    with pytest.raises(DefinitionError):
        engine.publish({"id": name, "initial": "A", "states": {"A": {}}})


@pytest.mark.parametrize("name", ["a", "_", "new_device", "A.b-c", "x" * 64])
def test_a_plain_machine_name_is_taken(engine, name):
    assert engine.publish(machine(name, {"A": {}})).name == name
    engine.create(name, "x")
    assert engine.machines() == {name: 1}


@pytest.mark.parametrize("name", ["", "a b", "a:leased", "{a}", "é", None, 5])
def test_a_queue_name_that_breaks_keys_is_refused(engine, name):
    publish(engine, door())
    with pytest.raises(BadInput, match="queue"):
        engine.take("door", name, "w")
    with pytest.raises(BadInput, match="queue"):
        engine.jobs("door", name)


@pytest.mark.parametrize("text", ["é", "a\nb", '"q"', "😀 {x}", "\x1b[31m", "</script>"])
def test_actor_and_reason_are_any_text(engine, text):
    publish(engine, door(), "x")
    engine.fire("door", "x", "open", actor=text, reason=text)
    step = engine.history("door", "x")[0]
    assert (step.actor, step.reason) == (text, text)


def test_data_fields_and_payload_keys_never_meet_the_engines_own(engine):
    """Fields of an instance's hash that begin with an underscore are the engine's."""
    with pytest.raises(DefinitionError):
        engine.publish(machine("m", {"A": {}}, context={"_state": "B"}))
    publish(engine, machine("m", {"A": {"on": {"go": {"actions": {"set": {"x": "event"}}}}}}, context={"x": None}), "x")
    fired = engine.fire("m", "x", "go", {"_state": "B", "_version": 99, "_def": "x"})
    assert (fired.state, fired.revision, fired.data["x"]) == ("A", 2, {"_state": "B", "_version": 99, "_def": "x"})


@pytest.mark.parametrize(
    "id", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\x80", "\x80a".encode("latin-1")]
)
def test_an_id_that_is_not_utf8_is_refused_from_every_writer(engine, id):
    publish(engine, door())
    with unchanged(engine):
        reply = engine.client.fcall("sb_create", 1, engine.keys.partition("door").root, id)
    assert reply == ["BADARG", "an instance id is UTF-8"]
