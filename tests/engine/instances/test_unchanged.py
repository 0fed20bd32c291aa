"""A call that is refused, conflicts, fails or makes no sense changes no key at all."""

import json

import pytest

from machines.engine import (
    BadInput,
    BadPayload,
    Conflict,
    InstanceExists,
    LeaseLost,
    LookupFailed,
    Refused,
    SignalboxError,
    UnknownEvent,
    UnknownInstance,
    UnknownMachine,
)
from tests.cases import for_each
from tests.engine.builders import NOW, fields, machine, publish
from tests.engine.dumps import unchanged

BUSY = {
    "entry": {"set": {"seen": "seen + 1"}},
    "invoke": {"src": "work", "input": {"n": "n"}, "onDone": {"target": "Done", "guard": "event.result != 'no'"},
               "onError": "Idle"},
    "on": {"break": {"target": "Idle", "actions": [{"emit": {"type": "x"}}, {"set": {"n": "1 / n"}}]}},
}  # fmt: skip
HALF = [
    {"set": {"n": "n + 1"}},
    {"append": {"list": "n"}},
    {"enqueue": {"src": "mail"}},
    {"emit": {"type": "half"}},
    {"log": "'half'"},
    {"raise": "more"},
    {"set": {"text": "event.text"}},
]
IDLE = {
    "exit": {"set": {"seen": "seen + 10"}},
    "on": {
        "start": "Busy",
        "half": {"target": "Done", "actions": HALF},
        "deep": {"actions": {"log": [[["event.x"]]]}},
        "wide": {"actions": {"emit": {"type": "wide", "data": {"x": ["event.x"] * 30}}}},
        "job": {"actions": {"enqueue": {"src": "mail", "input": {"x": ["event.x"] * 30}}}},
        "guarded": {"guard": "n > 5", "target": "Done"},
        "typed": {"target": "Busy"},
        "chain": "Chained",
    },
}
CONTEXT = fields(
    n={"type": "number", "default": 0},
    seen={"type": "integer", "default": 0},
    text={"type": "string", "default": ""},
    list={"type": "array", "default": []},
)
MACHINE = machine(
    "m",
    {
        "Idle": IDLE,
        "Busy": BUSY,
        "Chained": {"always": {"target": "Busy", "actions": {"set": {"n": "1 / n"}}}},
        "Done": {"type": "final"},
    },
    context=CONTEXT,
    events={"typed": {"payload": {"n": {"type": "integer", "required": True}}}},
)


@pytest.fixture
def busy(engine):
    """An engine with an idle instance, one whose job is held, and one that is done; answers engine and job."""
    publish(engine, MACHINE, "idle", "busy", "done")
    engine.fire("m", "busy", "start", key="first")
    engine.force("m", "done", "Done", actor="a", reason="r")
    (job,) = engine.take("m", "work", "w")
    engine.sweep("m")  # the first one of a partition notes that it has no dead jobs of an earlier release
    return engine, job


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


EVENTS = {
    "a guard that does not hold": (Refused, "idle", "guarded", {}),
    "an event of another state": (Refused, "idle", "break", {}),
    "an event nobody knows": (UnknownEvent, "idle", "slam", {}),
    "anything in a final state": (Refused, "done", "start", {}),
    "an action that fails half-way through a list": (Refused, "idle", "half", {"text": 5}),
    "an action that fails after a message was emitted": (Refused, "busy", "break", {}),
    "an action that fails in a later microstep": (Refused, "idle", "chain", {}),
    "a log line nested too deep": (Refused, "idle", "deep", {"x": deep(30)}),
    "a message that is too large": (Refused, "idle", "wide", {"x": "x" * 5000}),
    "a job's input that is too large": (Refused, "idle", "job", {"x": "x" * 5000}),
    "a field of the wrong type": (BadPayload, "idle", "typed", {"n": "1"}),
    "a field that is unknown": (BadPayload, "idle", "typed", {"n": 1, "m": 1}),
    "a field that is missing": (BadPayload, "idle", "typed", {}),
    "NaN": (BadPayload, "idle", "start", {"n": float("nan")}),
    "infinity": (BadPayload, "idle", "start", {"n": [float("-inf")]}),
    "an integer no double carries": (BadPayload, "idle", "start", {"n": 2**60}),
    "a payload nested too deep": (BadPayload, "idle", "start", {"n": deep(40)}),
    "a payload that is too large": (BadPayload, "idle", "start", {"n": "x" * 70_000}),
    "a payload that is no object": (BadPayload, "idle", "start", [1]),
    "a payload of bytes": (BadPayload, "idle", "start", {"n": b"x"}),
    "a payload with a key that is no text": (BadPayload, "idle", "start", {1: 2}),
    "a payload with NUL": (BadPayload, "idle", "start", {"n": "a\x00b"}),
    "a payload with half a surrogate pair": (BadPayload, "idle", "start", {"n": "\ud800"}),
    "an unknown instance": (UnknownInstance, "nobody", "start", {}),
    "an empty id": (BadInput, "", "start", {}),
    "an event with a space": (BadInput, "idle", "st art", {}),
    "an event of the engine's own": (BadInput, "busy", "done.invoke.Busy", {}),
}


@for_each("error, id, event, payload", EVENTS.values())
def test_an_event_that_fails_changes_nothing(busy, error, id, event, payload):
    engine, _ = busy
    with unchanged(engine), pytest.raises(error) as caught:
        engine.fire("m", id, event, payload, key="k", actor="a", reason="r")
    assert type(caught.value) is error
    with unchanged(engine):
        (result,) = engine.fire_many([("m", id, event, payload)])
        assert type(result) is error


FIRED = {
    "another version": (Conflict, {"expect": 7}),
    "a version that is text": (BadInput, {"expect": "1"}),
    "an actor too long": (BadInput, {"actor": "a" * 151}),
    "a reason too long": (BadInput, {"reason": "a" * 1001}),
    "a key too long": (BadInput, {"key": "a" * 201}),
    "a key that is no text": (BadInput, {"key": 5}),
    "an actor with NUL": (BadInput, {"actor": "a\x00"}),
    "a time before the epoch": (BadInput, {"now": -1}),
    "a time that is no whole number": (BadInput, {"now": 1.5}),
    "a time after the year 5138": (BadInput, {"now": 10**14}),
}


@for_each("error, options", FIRED.values())
def test_arguments_that_do_not_fit_change_nothing(busy, error, options):
    engine, _ = busy
    with unchanged(engine), pytest.raises(error):
        engine.fire("m", "idle", "start", **options)


OTHERS = {
    "create: taken": (InstanceExists, lambda e, j: e.create("m", "idle", key="k")),
    "create: unknown field": (BadPayload, lambda e, j: e.create("m", "new", {"x": 1}, key="k")),
    "create: wrong type": (BadPayload, lambda e, j: e.create("m", "new", {"n": "1"})),
    "create: too much": (BadPayload, lambda e, j: e.create("m", "new", {"text": "x" * 70_000})),
    "create: no such version": (UnknownMachine, lambda e, j: e.create("m", "new", version=9)),
    "create: no such machine": (UnknownMachine, lambda e, j: e.create("n", "new")),
    "create: id too long": (BadInput, lambda e, j: e.create("m", "é" * 101)),
    "force: no such state": (BadInput, lambda e, j: e.force("m", "busy", "Off", actor="a", reason="r")),
    "force: no reason": (BadInput, lambda e, j: e.force("m", "busy", "Idle", actor="a", reason=" ")),
    "force: wrong type": (
        BadPayload,
        lambda e, j: e.force("m", "busy", "Idle", actor="a", reason="r", data={"n": "x"}),
    ),
    "force: conflict": (Conflict, lambda e, j: e.force("m", "busy", "Idle", actor="a", reason="r", expect=1)),
    "delete: conflict": (Conflict, lambda e, j: e.delete("m", "busy", expect=1)),
    "delete: unknown": (UnknownInstance, lambda e, j: e.delete("m", "nobody")),
    "explain": (None, lambda e, j: e.explain("m", "idle", "start")),
    "explain: unknown": (UnknownInstance, lambda e, j: e.explain("m", "nobody", "start")),
    "reading": (None, lambda e, j: (e.get("m", "busy"), e.history("m", "busy"), e.find("m"), e.live("m"))),
    "looking at jobs": (None, lambda e, j: (e.jobs("m", "work", place="leased"), e.job("m", j.id))),
    "take: nothing there": (None, lambda e, j: e.take("m", "work", "w")),
    "take: too many": (BadInput, lambda e, j: e.take("m", "work", "w", count=1001)),
    "take: no lease": (BadInput, lambda e, j: e.take("m", "work", "w", lease=0)),
    "complete: too large": (BadPayload, lambda e, j: e.complete(j, "x" * 70_000)),
    "complete: not JSON": (BadPayload, lambda e, j: e.complete(j, {1, 2})),
    "complete: not mine": (LeaseLost, lambda e, j: e.complete(stolen(j))),
    "fail: not mine": (LeaseLost, lambda e, j: e.fail(stolen(j), "no")),
    "hand back: not mine": (LeaseLost, lambda e, j: e.hand_back(stolen(j))),
    "extend: not mine": (None, lambda e, j: e.extend(stolen(j), 1000)),
    "extend: no lease": (BadInput, lambda e, j: e.extend(j, 0)),
    "sweep: nothing due": (None, lambda e, j: e.sweep("m")),
    "a job that never was": (LookupFailed, lambda e, j: e.job("m", "0-99")),
    "jobs: no such place": (BadInput, lambda e, j: e.jobs("m", "work", place="lost")),
}


def stolen(job):
    from dataclasses import replace

    return replace(job, token="1-somebody-elses")


@for_each("error, call", OTHERS.values())
def test_any_other_call_that_fails_or_only_looks_changes_nothing(busy, error, call):
    engine, job = busy
    with unchanged(engine):
        if error is None:
            call(engine, job)
        else:
            with pytest.raises(error) as caught:
                call(engine, job)
            assert type(caught.value) is error


def test_a_job_whose_step_fails_is_still_held(engine):
    failing = {
        "src": "work",
        "onDone": {"target": "Done", "actions": [{"emit": {"type": "x"}}, {"set": {"n": "1 / n"}}]},
    }
    publish(engine, machine("m", {"Busy": {"invoke": failing}, "Done": {}}, context={"n": 0.0}), "x")
    (job,) = engine.take("m", "work", "w")
    with unchanged(engine), pytest.raises(Refused, match="division by zero"):
        engine.complete(job, {"ok": True})
    assert engine.extend(job, 1000) == [True]


RAW = {
    "no id": ("sb_fire",),
    "no event": ("sb_fire", "idle"),
    "an event that is empty": ("sb_fire", "idle", ""),
    "a payload that is no JSON": ("sb_fire", "idle", "start", "{"),
    "a payload that is a list": ("sb_fire", "idle", "start", "[]"),
    "a payload with a key twice": ("sb_fire", "idle", "start", '{"a":1,"a":2}'),
    "a payload with NaN": ("sb_fire", "idle", "start", '{"a":NaN}'),
    "a payload out of range": ("sb_fire", "idle", "start", '{"a":1e999}'),
    "a payload with NUL": ("sb_fire", "idle", "start", '{"a":"\\u0000"}'),
    "a payload with a control character": ("sb_fire", "idle", "start", '{"a":"\n"}'),
    "a payload nested too deep": ("sb_fire", "idle", "start", json.dumps({"a": deep(40)})),
    "a payload too large": ("sb_fire", "idle", "start", json.dumps({"a": "x" * 70_000})),
    "expect no number": ("sb_fire", "idle", "start", "", "one"),
    "expect negative": ("sb_fire", "idle", "start", "", "-1"),
    "expect past 2**53": ("sb_fire", "idle", "start", "", "9" * 30),
    "a key too long": ("sb_fire", "idle", "start", "", "", "k" * 801),
    "now no number": ("sb_fire", "idle", "start", "", "", "", "", "", "soon"),
    "an instance without an id": ("sb_create", ""),
    "an instance with a newline": ("sb_create", "a\nb"),
    "an instance of spaces": ("sb_create", "  "),
    "data that is no JSON": ("sb_create", "new", "{]"),
    "a repair without a reason": ("sb_force", "busy", "Idle", "", "", "me"),
    "a result that is no JSON": ("sb_complete", "0-1", "", "{"),
    "a lease of nothing": ("sb_extend", "", "0"),
    "a take of nothing": ("sb_take", "work", "w", "0", "", ""),
    "a sweep without a limit": ("sb_sweep", "", ""),
}


@for_each("words", RAW.values())
def test_a_program_that_speaks_to_redis_itself_breaks_nothing_either(busy, words):
    engine, _ = busy
    function, *args = words
    with unchanged(engine):
        try:
            reply = engine._caller.call(function, engine.keys.partition("m").root, *args)
        except SignalboxError:
            return
        assert reply[0] in ("BADARG", "BADPAYLOAD", "LOST", "NOINSTANCE")


def test_a_replay_changes_nothing(busy):
    engine, _ = busy
    with unchanged(engine):
        assert engine.fire("m", "busy", "start", key="first", now=NOW + 5).outcome.replayed
