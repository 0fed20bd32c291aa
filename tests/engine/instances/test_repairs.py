"""edit, reset, retry, skip and cancel: repairs that stand in the history, and what previews say of them."""

import pytest

from machines.engine import BadInput, BadPayload, Conflict, Refused, Suspended
from tests.engine.builders import NOW, counter, door, errand, fields, machine, publish, started
from tests.engine.dumps import unchanged

from .racing import in_threads, kinds

WHO = {"actor": "alice", "reason": "stuck"}


def regions(**top):
    """Two regions, one with work and a deadline, one with a history and a child."""
    left = {
        "initial": "Idle",
        "states": {
            "Idle": {"on": {"go": "Busy"}},
            "Busy": {
                "invoke": {"src": "work", "id": "job", "onDone": "Over"},
                "after": {"60000": "Idle"},
            },
            "Over": {},
        },
    }
    right = {
        "initial": "Calm",
        "states": {"Calm": {"on": {"run": "Running"}}, "Running": {"invoke": {"src": "machine:door"}}},
    }
    both = {"type": "parallel", "states": {"Left": left, "Right": right}}
    return machine("pair", {"Both": both, "Off": {}}, context=fields(n="integer"), **top)


def pair(engine):
    publish(engine, door())
    return started(engine, regions())


def consistent(engine, name, id="x"):
    """Counts, index and the instance itself tell the same."""
    instance = engine.get(name, id)
    counts = {state: number for state, number in engine.counts(name).items() if number}
    assert counts == dict.fromkeys(instance.configuration, 1)
    for state in instance.configuration:
        assert [one.id for one in engine.find(name, state=state)] == [id]
    return instance


# Editing


def test_an_edit_is_a_step_of_its_own_without_a_transition(engine):
    started(engine, counter())
    edited = engine.edit("counter", "x", {"n": 2}, now=NOW + 5, **WHO)
    assert (edited.state, edited.revision, edited.data, edited.entered) == ("On", 2, {"n": 2}, NOW)
    step = engine.history("counter", "x")[0]
    assert (step.event, step.actor, step.reason, step.transitions, step.changes) == (
        "(edit)", "alice", "stuck", [], {"n": 2},
    )  # fmt: skip
    assert engine.live("counter").flow == {}
    assert engine.fire("counter", "x", "add").data == {"n": 3}
    consistent(engine, "counter")


def test_none_unsets_and_everything_else_stays(engine):
    started(engine, machine("m", {"A": {}}, context=fields(a="string", b="integer")), data={"a": "old", "b": 1})
    assert engine.edit("m", "x", {"a": None}, **WHO).data == {"b": 1}


@pytest.mark.parametrize("changes", [{"n": "two"}, {"n": 1.5}, {"m": 1}, {"n": 1, "m": 2}])
def test_an_edit_that_does_not_fit_changes_nothing(engine, changes):
    started(engine, counter())
    with unchanged(engine), pytest.raises(BadPayload):
        engine.edit("counter", "x", changes, **WHO)


def test_an_edit_of_nothing_is_refused(engine):
    started(engine, counter())
    with unchanged(engine), pytest.raises(BadInput, match="names no data field"):
        engine.edit("counter", "x", {}, **WHO)


def test_an_instance_at_its_end_can_be_edited_and_its_jobs_stay_where_there_are_any(engine):
    busy = started(engine, machine("m", errand()["states"] | {"Z": {"type": "final"}}, context=fields(n="integer")))
    busy = engine.fire("m", busy.id, "start")
    assert engine.edit("m", "x", {"n": 1}, **WHO).jobs == busy.jobs
    engine.force("m", "x", "Z", **WHO)
    edited = engine.edit("m", "x", {"n": 2}, **WHO)
    assert edited.done
    assert edited.data == {"n": 2}


# Resetting


def test_a_reset_is_the_beginning_without_its_actions(engine):
    noted = {"set": {"n": "n + 10"}}
    states = {"A": {"entry": noted, "exit": noted, "on": {"go": "B"}}, "B": {"type": "final", "entry": noted}}
    started(engine, machine("m", states, context={"n": 0}))
    engine.fire("m", "x", "go")
    reset = engine.reset("m", "x", now=NOW + 9, **WHO)
    assert (reset.state, reset.data, reset.done, reset.revision, reset.entered) == ("A", {"n": 0}, False, 3, NOW + 9)
    assert engine.history("m", "x")[0].event == "(reset)"
    consistent(engine, "m")


def test_a_reset_can_keep_the_data(engine):
    started(engine, counter())
    engine.fire("counter", "x", "add")
    assert engine.reset("counter", "x", keep_data=True, **WHO).data == {"n": 1}
    assert engine.reset("counter", "x", **WHO).data == {"n": 0}


def test_a_reset_of_regions_ends_jobs_timers_and_children(engine):
    pair(engine)
    engine.fire("pair", "x", "go", now=NOW)
    running = engine.fire("pair", "x", "run", now=NOW)
    assert running.jobs
    assert running.timers
    assert running.children
    (child,) = running.children.values()
    reset = engine.reset("pair", "x", **WHO)
    assert (reset.configuration, reset.jobs, reset.timers, reset.children) == (["Idle", "Calm"], [], [], {})
    assert engine.queues("pair")["work"] == {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}
    assert engine.live("pair").timers == 0
    engine.tick()
    assert child["id"] not in [one.id for one in engine.find("door") if not one.done]
    consistent(engine, "pair")


def test_a_reset_forgets_histories_and_delayed_events_of_its_own(engine):
    later = {"send": {"event": "late", "delay": 60000}}
    inner = {"initial": "A", "states": {"A": {"on": {"next": "B"}}, "B": {}, "H": {"type": "history"}}}
    states = {"In": inner | {"on": {"out": {"target": "Out", "actions": later}}}, "Out": {"on": {"back": "H"}}}
    started(engine, machine("m", states))
    for event in ("next", "out"):
        engine.fire("m", "x", event, now=NOW)
    assert engine.live("m").timers == 1
    engine.reset("m", "x", **WHO)
    assert engine.live("m").timers == 0
    engine.force("m", "x", "Out", **WHO)
    assert engine.fire("m", "x", "back").configuration == ["A"]


# Forcing several regions


def test_states_of_two_top_states_are_never_forced_together(engine):
    states = {name: {"initial": f"{name}1", "states": {f"{name}1": {}, f"{name}2": {}}} for name in ("A", "B")}
    started(engine, machine("two", states))
    with unchanged(engine), pytest.raises(BadInput, match="never active together"):
        engine.force("two", "x", ["A1", "B2"], **WHO)


def test_force_takes_a_configuration_of_regions_and_records_it(engine):
    pair(engine)
    forced = engine.force("pair", "x", ["Busy", "Running"], **WHO)
    assert forced.configuration == ["Busy", "Running"]
    assert forced.jobs
    assert forced.timers
    assert forced.children
    step = engine.history("pair", "x")[0]
    assert (step.event, step.source, step.configuration) == ("(force)", ["Idle", "Calm"], ["Busy", "Running"])
    consistent(engine, "pair")


# Retry, skip, cancel


def dead(engine, now=NOW):
    """An errand whose job died without anyone listening; the job's id."""
    started(engine, errand(onError=[], retry={"attempts": 1}))
    (job,) = engine.fire("errand", "x", "start", now=now).jobs
    (held,) = engine.take("errand", "work", "w", now=now)
    engine.fail(held, "no luck", now=now)
    assert engine.get("errand", "x").jobs == []
    return job


def test_a_dead_job_of_the_state_is_found_and_tried_again(engine):
    job = dead(engine)
    (wait,) = engine.waits("errand", "x")
    assert (wait.job, wait.place, wait.repairs) == (job, "dead", ["retry", "skip"])
    retried = engine.retry("errand", "x", wait.invoke, **WHO)
    assert (retried.jobs, retried.state) == ([job], "Busy")
    step = engine.history("errand", "x")[0]
    assert (step.event, step.actor, step.payload["job"]) == ("(retry)", "alice", job)
    (held,) = engine.take("errand", "work", "w")
    assert engine.complete(held).state == "Done"


def test_a_job_that_waits_for_its_next_attempt_is_tried_at_once(engine):
    started(engine, errand())
    engine.fire("errand", "x", "start", now=NOW)
    (held,) = engine.take("errand", "work", "w", now=NOW)
    engine.fail(held, "later", delay=3_600_000, now=NOW)
    (wait,) = engine.waits("errand", "x")
    engine.retry("errand", "x", wait.invoke, now=NOW, **WHO)
    assert engine.queues("errand")["work"]["ready"] == 1


def test_a_job_under_way_is_not_tried_again(engine):
    started(engine, errand(id="it"))
    engine.fire("errand", "x", "start")
    with unchanged(engine), pytest.raises(BadInput, match="its job is ready"):
        engine.retry("errand", "x", "it", **WHO)


def test_a_skipped_job_goes_and_the_instance_moves_with_the_result(engine):
    done = {"target": "Done", "actions": {"set": {"n": "event.result.n"}}}
    definition = errand(id="it", onDone=done) | {"context": {"n": 0}}
    started(engine, definition)
    engine.fire("errand", "x", "start")
    (held,) = engine.take("errand", "work", "w")
    skipped = engine.skip("errand", "x", "it", {"n": 7}, **WHO)
    assert (skipped.state, skipped.data, skipped.jobs) == ("Done", {"n": 7}, [])
    step = engine.history("errand", "x")[0]
    assert (step.event, step.actor, step.reason, step.payload) == (
        "(skip)", "alice", "stuck", {"invoke": "it", "result": {"n": 7}},
    )  # fmt: skip
    assert step.transitions == skipped.outcome.transitions != []
    assert engine.renew([held], 1000) == ["withdrawn"]
    assert engine.queues("errand")["work"] == {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}
    assert engine.live("errand").flow[f"1:{step.transitions[0]}"] == 1
    consistent(engine, "errand")


def test_skipping_where_the_job_is_dead_takes_it_away(engine):
    dead(engine)
    (wait,) = engine.waits("errand", "x")
    assert engine.skip("errand", "x", wait.invoke, **WHO).state == "Done"
    assert engine.queues("errand")["work"]["dead"] == 0


def test_skipping_what_no_guard_lets_pass_is_refused_with_the_reason(engine):
    started(engine, errand(id="it", onDone={"target": "Done", "guard": "event.result == 1"}))
    engine.fire("errand", "x", "start")
    with unchanged(engine), pytest.raises(Refused) as caught:
        engine.skip("errand", "x", "it", 2, **WHO)
    assert caught.value.explanation.candidates[0].verdict == "guard"
    assert engine.skip("errand", "x", "it", 1, **WHO).state == "Done"


def test_skipping_what_nobody_listens_for_is_refused(engine):
    started(engine, errand(id="it", onDone=[]))
    engine.fire("errand", "x", "start")
    assert engine.waits("errand", "x")[0].repairs == ["cancel"]
    with unchanged(engine), pytest.raises(BadInput, match="nothing listens"):
        engine.skip("errand", "x", "it", **WHO)


def test_a_cancelled_job_goes_and_the_instance_hears_of_it(engine):
    started(engine, errand(id="it"))
    engine.fire("errand", "x", "start")
    cancelled = engine.cancel("errand", "x", "it", **WHO)
    assert (cancelled.state, cancelled.jobs) == ("Failed", [])
    assert engine.history("errand", "x")[0].event == "(cancel)"
    assert engine.stats("errand")["work"].withdrawn == 1
    consistent(engine, "errand")


def test_where_nothing_listens_it_waits_no_longer_and_can_be_retried_no_more(engine):
    started(engine, errand(id="it", onError=[]))
    engine.fire("errand", "x", "start")
    assert engine.cancel("errand", "x", "it", **WHO).state == "Busy"
    (wait,) = engine.waits("errand", "x")
    assert (wait.job, wait.repairs) == ("", ["skip"])
    with unchanged(engine), pytest.raises(BadInput, match="its job is gone"):
        engine.retry("errand", "x", "it", **WHO)


def test_of_two_regions_only_the_one_moves(engine):
    pair(engine)
    engine.fire("pair", "x", "go", now=NOW)
    engine.fire("pair", "x", "run", now=NOW)
    skipped = engine.skip("pair", "x", "job", **WHO)
    assert (skipped.configuration, skipped.timers, len(skipped.children)) == (["Over", "Running"], [], 1)
    assert engine.queues("pair")["work"]["ready"] == 0
    consistent(engine, "pair")


def test_a_suspended_instance_is_resumed_before_its_job_is_skipped(engine):
    started(engine, errand(id="it"))
    engine.fire("errand", "x", "start")
    engine.suspend("errand", "x", **WHO)
    assert engine.waits("errand", "x")[0].repairs == []
    for repair in (engine.skip, engine.cancel):
        with unchanged(engine), pytest.raises(Suspended):
            repair("errand", "x", "it", **WHO)


def test_what_is_not_waited_for_is_no_work(engine):
    started(engine, errand(id="it"))
    with unchanged(engine), pytest.raises(BadInput, match="does not wait for a job of 'it'"):
        engine.skip("errand", "x", "it", **WHO)


# What all have in common


def every(engine):
    """Repair -> a call of it on the errand in Busy, whose invoke is ``it``."""
    return {
        "force": lambda **more: engine.force("errand", "x", "Idle", **WHO | more),
        "edit": lambda **more: engine.edit("errand", "x", {"n": 5}, **WHO | more),
        "reset": lambda **more: engine.reset("errand", "x", **WHO | more),
        "skip": lambda **more: engine.skip("errand", "x", "it", **WHO | more),
        "cancel": lambda **more: engine.cancel("errand", "x", "it", **WHO | more),
    }


REPAIRS = ["force", "edit", "reset", "skip", "cancel"]


@pytest.fixture
def busy(engine):
    started(engine, errand(id="it") | {"context": {"n": 0}})
    return engine.fire("errand", "x", "start")


@pytest.mark.parametrize("repair", REPAIRS)
def test_a_repair_on_another_version_or_without_a_reason_changes_nothing(engine, busy, repair):
    call = every(engine)[repair]
    with unchanged(engine), pytest.raises(Conflict):
        call(expect=1)
    with unchanged(engine), pytest.raises(BadInput, match="needs a reason"):
        call(reason=" ")
    assert call(expect=2).revision == 3


@pytest.mark.parametrize("repair", REPAIRS)
def test_the_same_key_counts_once(engine, busy, repair):
    call = every(engine)[repair]
    results = in_threads([lambda: call(key="k")] * 4)
    assert kinds(results) == {"Instance": 4}
    assert sorted(result.outcome.replayed for result in results) == [False, True, True, True]
    assert engine.get("errand", "x").revision == 3
    assert len(engine.history("errand", "x")) == 3


PREVIEWS = {
    "force": {"state": "Idle", "data": {"n": 3}},
    "edit": {"changes": {"n": 5}},
    "reset": {},
    "skip": {"invoke": "it"},
    "cancel": {"invoke": "it"},
    "suspend": {},
    "delete": {},
}


@pytest.mark.parametrize("repair", PREVIEWS)
def test_a_preview_changes_nothing_and_tells_what_the_repair_then_does(engine, busy, repair):
    asked = PREVIEWS[repair]
    with unchanged(engine):
        seen = engine.preview("errand", "x", repair, expect=2, **asked)
    assert (seen.before, seen.revision) == (["Busy"], 2)
    rest = dict(asked)
    first = [rest.pop("state")] if repair == "force" else [*rest.values()]
    after = getattr(engine, repair)("errand", "x", *first, **(rest if repair == "force" else {}), **WHO)
    if repair != "delete":
        assert seen.configuration == after.configuration
        assert seen.changes == {name: value for name, value in after.data.items() if value != busy.data.get(name)}
    gone = set(busy.jobs) - (set(after.jobs) if repair != "delete" else set())
    assert {job["id"] for job in seen.withdrawn} == gone


def test_a_preview_tells_of_jobs_timers_and_children_to_come_and_to_go(engine):
    pair(engine)
    with unchanged(engine):
        seen = engine.preview("pair", "x", "force", state=["Busy", "Running"], data={"n": 1}, now=NOW)
    assert (seen.configuration, seen.changes) == (["Busy", "Running"], {"n": 1})
    assert [(job["src"], job["invoke"]) for job in seen.added] == [("work", "job")]
    assert [(timer["state"], timer["due"]) for timer in seen.armed] == [("Busy", NOW + 60000)]
    assert [child["machine"] for child in seen.started] == ["door"]
    engine.force("pair", "x", ["Busy", "Running"], **WHO)
    back = engine.preview("pair", "x", "reset")
    assert (len(back.withdrawn), len(back.disarmed), len(back.ended)) == (1, 1, 1)
    assert (back.added, back.armed, back.started) == ([], [], [])
    assert len(engine.preview("pair", "x", "delete").ended) == 1


def test_a_preview_of_what_would_be_refused_is_refused(engine, busy):
    with unchanged(engine):
        with pytest.raises(BadInput, match="no state 'Ajar'"):
            engine.preview("errand", "x", "force", state="Ajar")
        with pytest.raises(BadPayload):
            engine.preview("errand", "x", "edit", changes={"n": "x"})
        with pytest.raises(Conflict):
            engine.preview("errand", "x", "reset", expect=1)
        with pytest.raises(BadInput, match="its job is ready"):
            engine.preview("errand", "x", "retry", invoke="it")
        with pytest.raises(BadInput, match="the repairs are force"):
            engine.preview("errand", "x", "explode")


def test_a_preview_of_resuming_tells_what_waits(engine, busy):
    engine.suspend("errand", "x", **WHO)
    (held,) = engine.take("errand", "work", "w")
    engine.complete(held)
    with unchanged(engine):
        assert engine.preview("errand", "x", "resume").held == 1
