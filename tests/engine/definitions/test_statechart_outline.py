"""The readable form of a chart: its tree, where instances are counted, what they listen for."""

from __future__ import annotations

from machines.engine.definitions import outline

from .builders import inside, machine, player


def test_a_state_knows_its_place():
    found = {state.name: state for state in outline(player()).states}
    idle = found["on.volume.idle"]
    assert (idle.parent, idle.path, idle.depth, idle.type) == ("volume", "on.volume.idle", 2, "atomic")
    assert (found["off"].parent, found["off"].depth) == (None, 0)
    assert found["volume"].children == ("on.volume.idle", "loud", "silent")


def test_a_state_knows_what_is_entered_by_default():
    found = {state.name: state.initial for state in outline(player()).states}
    assert found["on"] == ("volume", "track")
    assert found["volume"] == ("on.volume.idle",)
    assert found["last"] == ("volume", "track")
    assert found["off"] == ()


def test_kinds_have_their_names():
    found = {state.name: (state.type, state.history) for state in outline(player()).states}
    assert found["on"] == ("parallel", "")
    assert found["volume"] == ("compound", "")
    assert found["last"] == ("history", "deep")
    assert found["silent"] == ("final", "")
    shallow = outline(inside({"a": {}, "h": {"type": "history"}})).state("h")
    assert shallow is not None
    assert shallow.history == "shallow"


def test_the_output_of_final_states_and_the_machine_is_text():
    found = outline(player(output={"at": "now"}))
    silent = found.state("silent")
    assert silent is not None
    assert (silent.output, found.output) == ("{was: 'loud'}", "{at: now}")


def test_leaves_are_where_an_instance_is_counted():
    found = outline(player())
    assert found.leaves == (
        "off",
        "on.volume.idle",
        "loud",
        "silent",
        "on.track.idle",
        "playing",
        "over",
        "end",
    )
    assert found.leaves_of("volume") == ("on.volume.idle", "loud", "silent")
    assert found.leaves_of("on") == found.leaves[1:-1]
    assert found.leaves_of("loud") == ("loud",)
    assert found.leaves_of("last") == found.leaves_of("nowhere") == ()


def test_a_state_counts_what_is_inside_and_a_parallel_state_counts_it_once():
    counts = {"off": 7, "on.volume.idle": 3, "loud": 2, "on.track.idle": 1, "playing": 4, "gone": 9}
    assert outline(player()).sum_counts(counts) == {
        "off": 7,
        "on": 5,
        "last": 0,
        "volume": 5,
        "on.volume.idle": 3,
        "loud": 2,
        "silent": 0,
        "track": 5,
        "on.track.idle": 1,
        "playing": 4,
        "over": 0,
        "end": 0,
    }


def test_the_machine_itself_counts_all():
    found = outline(machine({"A": {"on": {"x": "B"}}, "B": {"type": "final"}}, entry={"log": "now"}))
    assert found.root == "door"
    assert found.states[0].index == 1
    assert (found.states[1].parent, found.states[1].depth, found.initial) == ("door", 1, "A")
    assert found.sum_counts({"A": 2, "B": 3}) == {"door": 5, "A": 2, "B": 3}
    assert outline(machine()).root is None


def test_a_parallel_machine_begins_with_itself():
    found = outline({"id": "both", "type": "parallel", "states": {"A": {"on": {"x": {}}}, "B": {}}})
    assert (found.initial, found.states[0].initial) == ("both", ("A", "B"))


def test_active_states_and_those_around_them_listen():
    found = outline(player())
    assert [event.name for event in found.events_of("off")] == ["power", "resume"]
    assert [event.name for event in found.events_of("loud")] == ["down", "stop", "power"]
    assert [event.name for event in found.events_of(["loud", "playing"])] == ["down", "stop", "power"]
    assert [event.name for event in found.events_of(["on.volume.idle", "on.track.idle"])] == ["up", "power", "play"]


def test_timers_and_ends_are_no_events_from_outside():
    definition = inside(
        {"a": {"on": {"x": "z"}, "after": {"1s": "z"}}, "z": {"type": "final"}}, onDone="out", after={"2s": "out"}
    )
    assert [event.name for event in outline(definition).events_of("a")] == ["x", "leave"]


def test_a_transition_tells_its_cause_its_targets_and_its_delay():
    states = {
        "A": {
            "after": {"30s": "B", "1000": "B", "now * 2": {"target": "A", "reenter": True}},
            "invoke": {"src": "h", "onDone": "B", "onError": "B"},
            "always": {"guard": "now < 0", "target": "B"},
            "on": {"x": "B"},
        },
        "B": {"type": "final"},
    }
    transitions = outline(machine(states)).states[0].transitions
    assert [(t.cause, t.delay) for t in transitions] == [
        ("on", ""),
        ("done", ""),
        ("error", ""),
        ("after", "30 s"),
        ("after", "1000 ms"),
        ("after", "now * 2"),
        ("always", ""),
    ]
    ended = outline(inside({"a": {"on": {"x": "z"}}, "z": {"type": "final"}}, onDone="out")).states[0].transitions
    assert [t.cause for t in ended] == ["on", "state done"]
    both = outline(player({"off": {"on": {"go": {"target": ["loud", "playing"]}}}})).states[0].transitions[0]
    assert (both.target, both.targets) == ("loud", ("loud", "playing"))


def test_an_invoke_of_a_machine_has_no_queue():
    work = [{"src": "machine:other", "autoforward": True}, {"src": {"expr": "'m' + str(now)"}}, {"src": "h"}]
    found = outline(machine({"A": {"invoke": work, "on": {"x": "A"}}}))
    assert [(i.machine, i.src, i.queue, i.autoforward) for i in found.states[0].invokes] == [
        ("other", "machine:other", "", True),
        ("'m' + str(now)", "machine:'m' + str(now)", "", False),
        ("", "h", "h", False),
    ]
    assert found.queues == ("h",)
