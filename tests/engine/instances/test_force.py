"""force: a repair. It asks no transition and runs no action, and it says who did it and why."""

import pytest

from machines.engine import BadInput, BadPayload, Conflict, UnknownInstance
from tests.engine.builders import NOW, counter, door, errand, fields, machine, publish, started
from tests.engine.dumps import unchanged

from .racing import in_threads, kinds


def force(engine, name, state, **options):
    return engine.force(name, "x", state, **({"actor": "alice", "reason": "stuck"} | options))


def test_the_state_is_set_whatever_the_transitions_say(engine):
    started(engine, door())
    forced = force(engine, "door", "Open", now=NOW + 7)
    assert (forced.state, forced.revision, forced.entered, forced.outcome.transitions) == ("Open", 2, NOW + 7, [])
    assert engine.counts("door") == {"Shut": 0, "Open": 1}


def test_it_gets_an_instance_out_of_a_final_state(engine):
    started(engine, counter())
    engine.fire("counter", "x", "stop")
    assert not force(engine, "counter", "On").done
    assert engine.fire("counter", "x", "add").data == {"n": 1}


def test_no_action_runs_and_no_edge_is_counted(engine):
    note = {"set": {"n": "n + 1"}}
    started(engine, machine("m", {"A": {"exit": note, "on": {"go": "B"}}, "B": {"entry": note}}, context={"n": 0}))
    assert force(engine, "m", "B").data == {"n": 0}
    assert engine.live("m").flow == {}


def test_data_is_changed_and_none_unsets(engine):
    context = fields(a="string", b="integer", c={"type": ["string", "null"], "default": "here"})
    started(engine, machine("m", {"A": {}}, context=context), data={"a": "old", "b": 1})
    assert force(engine, "m", "A", data={"a": None, "b": 2, "c": None}).data == {"b": 2, "c": None}
    assert engine.history("m", "x")[0].changes == {"a": None, "b": 2, "c": None}


def test_the_history_says_who_and_why(engine):
    started(engine, door())
    force(engine, "door", "Open")
    step = engine.history("door", "x")[0]
    assert (step.event, step.actor, step.reason, step.source, step.configuration) == (
        "(force)",
        "alice",
        "stuck",
        ["Shut"],
        ["Open"],
    )


def test_work_of_the_state_left_is_withdrawn_and_that_of_the_state_entered_enqueued(engine):
    started(engine, errand())
    busy = force(engine, "errand", "Busy")
    assert [job.id for job in engine.jobs("errand", "work")] == busy.jobs
    (held,) = engine.take("errand", "work", "w")
    again = force(engine, "errand", "Busy")
    assert again.jobs != busy.jobs
    assert [job.id for job in engine.jobs("errand", "work")] == again.jobs
    assert force(engine, "errand", "Idle").jobs == []
    assert engine.queues("errand")["work"] == {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}
    assert held.id == busy.jobs[0]


def test_the_same_state_is_entered_anew(engine):
    started(engine, door())
    assert force(engine, "door", "Shut", now=NOW + 5).entered == NOW + 5
    assert engine.counts("door") == {"Shut": 1, "Open": 0}


@pytest.mark.parametrize("reason", ["", "  ", None])
def test_a_reason_is_required(engine, reason):
    started(engine, door())
    with unchanged(engine), pytest.raises(BadInput, match="needs a reason"):
        force(engine, "door", "Open", reason=reason)
    root = engine.keys.partition("door").root
    assert engine.client.fcall("sb_force", 1, root, "x", "Open", "", "", "me", " ")[0] == "BADARG"


def test_a_state_the_definition_does_not_have_is_refused(engine):
    started(engine, door())
    with unchanged(engine), pytest.raises(BadInput, match="the definition has no state 'Ajar'"):
        force(engine, "door", "Ajar")


def test_the_state_is_one_of_the_instances_own_version(engine):
    started(engine, machine("m", {"Old": {}}))
    publish(engine, machine("m", {"New": {}}))
    with pytest.raises(BadInput, match="no state 'New'"):
        force(engine, "m", "New")
    assert force(engine, "m", "Old").version == 1


@pytest.mark.parametrize(("data", "field"), [({"m": 1}, "m"), ({"n": "1"}, "n"), ({"n": 1.5}, "n")])
def test_data_that_does_not_fit_changes_nothing(engine, data, field):
    started(engine, counter())
    with unchanged(engine), pytest.raises(BadPayload) as caught:
        force(engine, "counter", "Off", data=data)
    assert caught.value.field == field


def test_too_much_data_changes_nothing(engine):
    started(engine, machine("m", {"A": {}}, context={"a": "x" * 40_000, "b": ""}))
    with unchanged(engine), pytest.raises(BadPayload, match="at most 65536 bytes"):
        force(engine, "m", "A", data={"b": "y" * 30_000})


def test_another_version_is_a_conflict(engine):
    started(engine, door())
    with unchanged(engine), pytest.raises(Conflict):
        force(engine, "door", "Open", expect=7)
    assert force(engine, "door", "Open", expect=1).revision == 2


def test_of_two_repairs_on_one_version_one_wins(engine):
    started(engine, door())
    calls = [lambda s=state: force(engine, "door", s, expect=1) for state in ("Open", "Shut") * 3]
    assert kinds(in_threads(calls)) == {"Instance": 1, "Conflict": 5}


def test_a_job_input_that_fails_changes_nothing(engine):
    started(engine, errand(input={"n": "1 / 0"}))
    with unchanged(engine), pytest.raises(BadInput, match="division by zero"):
        force(engine, "errand", "Busy")


def test_an_unknown_instance_is_named(engine):
    publish(engine, door())
    with pytest.raises(UnknownInstance):
        force(engine, "door", "Open")
