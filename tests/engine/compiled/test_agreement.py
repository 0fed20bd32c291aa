"""Compiled steps and interpreted ones agree on state, data, indexes, histories, answers and errors."""

from __future__ import annotations

import json

import pytest

from . import twins
from .definitions import TEXTS, Writer
from .twins import NOW, ROOT, SEEDS, Twins


def test_generated_machines_agree(pair):
    twins.play_many(pair, Writer, range(30))


@pytest.mark.hostile
@pytest.mark.timeout(0)
def test_many_generated_machines_agree(pair):
    twins.play_many(pair, Writer, SEEDS)


def machine(**states):
    properties = {"n": {"type": "integer", "default": 0}, "s": {"type": "string", "default": ""}}
    return {"id": "m", "initial": "A", "context": {"type": "object", "properties": properties}, "states": states}


def fire(pair: Twins, event: str, payload: object = None, now: int = NOW) -> object:
    text = "" if payload is None else json.dumps(payload)
    return pair.call("sb_fire", "x", event, text, "", "", "", "", now)


def test_no_name_or_text_of_a_definition_becomes_code(pair):
    """Whatever a literal, a name of a state or of a field holds, it stays a text."""
    tricks = [
        *TEXTS, '"..redis.call("FLUSHALL").."', "]] error('out') --[[", "\\", '\\"', "\r\n", "\u2028", "%s%d%n", "-- x",
        "end end end return redis.call('SET','out','1')", "x" * 5000,
    ]  # fmt: skip
    for number, trick in enumerate(tricks):
        quoted = json.dumps(trick, ensure_ascii=False)
        name = trick if 0 < len(trick.encode()) <= 100 and trick.isprintable() and trick.strip() == trick else "Plain"
        states = {
            "A": {"on": {"go": {"target": name, "guard": f"s != {quoted}", "actions": {"set": {"s": quoted}}}}},
            name: {
                "on": {"go": {"target": "A", "guard": f"s == {quoted}", "actions": {"set": {"s": "''", "n": "n + 1"}}}}
            },
        }
        if not pair.publish(machine(**states)):
            assert trick != "-- x", "most of the tricks are allowed texts"
            continue
        pair.call("sb_create", "x", "{}", "", "", "", "", NOW)
        for turn in range(4 if trick else 1):
            reply = fire(pair, "go", now=NOW + number + turn)
            assert reply[0] == (b"OK" if trick else b"REFUSED"), trick
        pair.compare()
        assert pair.both("EXISTS", "out") == [0, 0]
        assert pair.count_compiled() == (4 if trick else 0)


@pytest.mark.parametrize("key", ["in:B", "h:x", "flow", "by:n"])
def test_a_step_whose_write_fails_writes_nothing(pair, key):
    states = {"A": {"on": {"go": {"target": "B", "actions": {"set": {"n": "n + 1"}}}}}, "B": {"on": {"go": "A"}}}
    assert pair.publish(machine(**states) | {"index": ["n", "instance.actor"]})
    pair.call("sb_create", "x", "{}", "", "", "", "", NOW)
    pair.both("DEL", f"{ROOT}:{key}")
    pair.both("SET", f"{ROOT}:{key}", "foreign")
    pair.compare()
    before = twins.contents(pair.clients[0])
    assert fire(pair, "go")[0] == b"FAULT"
    pair.compare()
    assert twins.contents(pair.clients[0]) == before
    pair.both("DEL", f"{ROOT}:{key}")
    assert fire(pair, "go", now=NOW + 5)[0] == b"OK"
    pair.compare()
    assert pair.count_compiled() == 1


def test_instances_with_other_fields_have_steps_of_their_own(pair):
    """The order of fields in a hash is of the instance; a long text stores it in another order."""
    properties = {f"f{n}": {"type": "string"} for n in range(12)} | {"n": {"type": "integer", "default": 0}}
    on = {"on": {"go": {"target": "A", "reenter": True, "actions": {"set": {"n": "n + 1", "f3": "event.text"}}}}}
    definition = {
        "id": "m",
        "initial": "A",
        "context": {"type": "object", "properties": properties},
        "states": {"A": on},
    }
    assert pair.publish(definition)
    for number in range(12):
        data = {f"f{n}": "y" * (70 if n == number else 3) for n in range(number, 12)}
        pair.call("sb_create", f"i{number}", json.dumps(data), "", "", "", "", NOW)
        for turn, text in enumerate(["", "z" * 80, 'q"']):
            sent = json.dumps({"text": text})
            assert pair.call("sb_fire", f"i{number}", "go", sent, "", "", "ann", "", NOW + turn)[0] == b"OK"
    pair.compare()
    assert pair.count_compiled() == 36


def test_a_field_that_a_step_sets_twice(pair):
    """Compiled where its first value differs from the stored one, on which its place in the history depends."""
    twice = {
        "A": {"exit": {"set": {"n": "event.n"}}, "on": {"go": "B"}},
        "B": {"entry": {"set": {"n": "n * 2", "s": "'b'"}}},
    }
    gone = {"C": {"exit": {"set": {"s": "'c'"}}, "on": {"go": "D"}}, "D": {"entry": {"unset": "s"}}}
    for number, (states, compiled) in enumerate([(twice, 1), (gone, 1)]):
        assert pair.publish(machine(**states) | {"initial": next(iter(states)), "index": ["n", "s"]})
        create(pair, "x", "y")
        pair.call("sb_fire", "x", "go", '{"n": 4}', "", "", "", "", NOW)
        assert pair.count_compiled() == compiled
        pair.call("sb_explain", "y", "go", '{"n": 0}', NOW)
        pair.call("sb_fire", "y", "go", '{"n": 0}', "", "", "", "", NOW)
        assert pair.count_compiled() == number, "the first value of n is the stored one"
        pair.compare()


def test_a_republished_definition_has_steps_of_its_own(pair):
    for target in ("B", "C"):
        states = {"A": {"on": {"go": target}}, "B": {"on": {"back": "A"}}, "C": {"on": {"back": "A"}}}
        for engine in pair.engines:
            engine.publish(machine(**states))
        pair.call("sb_create", f"x-{target}", "{}", "", "", "", "", NOW)
        assert pair.call("sb_fire", f"x-{target}", "go", "", "", "", "", "", NOW)[3]["_state"] == target
    assert pair.call("sb_fire", "x-B", "back", "", "", "", "", "", NOW)[3]["_state"] == "A"
    assert pair.call("sb_fire", "x-B", "go", "", "", "", "", "", NOW)[3]["_state"] == "B"
    pair.compare()


# Refusals and explanations


def test_refusals_say_why_in_the_words_of_the_interpreter(pair):
    guard = "(n < 0 or s == event.text) and (ok or not (now > n and event.any))"
    on = {
        "go": [{"target": "B", "guard": guard}, {"guard": "n == 1 and n == 2"}, {"target": "B", "guard": "s == 'q\"'"}]
    }
    properties = {
        "n": {"type": "integer", "default": 1},
        "s": {"type": "string", "default": 'a"\n'},
        "x": {"type": "number"},
    }
    schema = {"type": "object", "properties": properties | {"ok": {"type": "boolean", "default": False}}}
    assert pair.publish(
        {"id": "m", "initial": "A", "context": schema, "states": {"A": {"on": on}, "B": {"type": "final"}}}
    )
    create(pair, "x")
    sent = [
        ("go", {"text": 'a"\n', "any": [1, {"b": None}]}),
        ("go", {"text": "z" * 300, "any": None}),
        ("other", None),
    ]
    for number, (event, payload) in enumerate(sent):
        text = json.dumps(payload) if payload else ""
        pair.same_text("sb_fire", "x", event, text, "", "", "ann", "", NOW + number)
        pair.same_text("sb_explain", "x", event, text, NOW + number)
    assert pair.same_text("sb_fire", "x", "go", '{"text":3}', "", "", "", "", NOW)[0] == b"REFUSED"
    assert pair.count_refused() == 3
    taken = pair.same_text("sb_explain", "x", "go", json.dumps({"text": 'a"\n'}), NOW)
    assert json.loads(taken[1])["outcome"] == {
        "configuration": ["B"], "data": {"n": 1, "ok": False, "s": 'a"\n'}, "transitions": "t1"
    }  # fmt: skip
    assert pair.call("sb_fire", "x", "go", json.dumps({"text": 'a"\n'}), "", "", "", "", NOW)[0] == b"OK"
    for event in ("go", "other"):
        assert pair.same_text("sb_fire", "x", event, "", "", "", "", "", NOW)[0] == b"REFUSED"
        pair.same_text("sb_explain", "x", event, "", NOW)
    pair.compare()


# Jobs

INVOKE = {"id": "w", "src": "work", "queue": "q", "onDone": "B", "onError": "C"}
WORKING = {"A": {"on": {"go": "B"}, "invoke": INVOKE}, "B": {"on": {"go": "A"}}, "C": {"on": {"go": "A"}}}


def create(pair: Twins, *ids: str) -> None:
    for id in ids:
        pair.call("sb_create", id, "{}", "", "", "", "", NOW)


def take(pair: Twins, count: int = 9) -> list[tuple[str, str]]:
    reply = pair.call("sb_take", "q", "w", count, "", NOW, "n")
    return [(reply[at], reply[at + 2]) for at in range(3, len(reply), 6)]


def complete(pair: Twins, held: list[tuple[str, str]], returning: str = "") -> list:
    return pair.call("sb_complete", NOW + 9, returning, *(word for job, token in held for word in (job, token, "")))


def test_the_end_of_a_job_runs_compiled(pair):
    assert pair.publish(machine(**WORKING))
    create(pair, "x")
    assert complete(pair, take(pair))[1][3]["_state"] == "B"
    assert fire(pair, "go")[3]["_jobs"] == "0-2", "a step adds a job"
    assert pair.call("sb_fail", *take(pair)[0], "no", "Broken", "", "0", NOW)[:2] == [b"OK", b"dead"]
    assert pair.both("HGET", f"{ROOT}:i:x", "_state") == [b"C", b"C"]
    pair.compare()
    assert pair.count_compiled() == 3


def test_the_steps_of_a_batch_run_compiled(pair):
    assert pair.publish(machine(**WORKING))
    create(pair, *"abcd")
    held = take(pair)
    fire(pair, "go")
    assert complete(pair, [held[0], (held[1][0], "other"), *held[2:], held[0]], "short") == [
        b"OK", b"t2", [b"LOST", b"taken back"], b"t2", b"t2", [b"LOST", b"gone"],
    ]  # fmt: skip
    pair.compare()
    assert pair.count_compiled() == 3


def test_a_step_that_leaves_the_state_withdraws_its_job(pair):
    assert pair.publish(machine(**WORKING))
    create(pair, "x")
    held = take(pair)
    assert fire(pair, "go")[3]["_jobs"] == ""
    assert complete(pair, held)[1] == [b"LOST", b"withdrawn"]
    pair.compare()
    assert pair.count_compiled() == 1


@pytest.mark.parametrize("key", ["in:B", "h:x", "flow", "by:n"])
@pytest.mark.parametrize("alone", [True, False])
def test_the_end_of_a_job_whose_write_fails_writes_nothing(pair, key, alone):
    done = {**INVOKE, "onDone": {"target": "B", "actions": {"set": {"n": "n + 1"}}}}
    assert pair.publish(machine(**WORKING | {"A": {"invoke": done}}) | {"index": ["n"]})
    create(pair, "x", *("" if alone else "y"))
    held = take(pair)
    pair.both("DEL", f"{ROOT}:{key}")
    pair.both("SET", f"{ROOT}:{key}", "foreign")
    before = twins.contents(pair.clients[0])
    assert complete(pair, held)[1][0] == b"FAULT"
    pair.compare()
    if alone:
        assert twins.contents(pair.clients[0]) == before
    pair.both("DEL", f"{ROOT}:{key}")
    assert complete(pair, held)[1][0] == b"OK"
    pair.compare()


@pytest.mark.parametrize(
    ("key", "foreign"),
    [("q:q", ("SET", "foreign")), ("meta", ("HSET", "jobs", "foreign")), ("job:0-1", ("SET", "foreign"))],
)
def test_a_step_whose_job_cannot_be_added_writes_nothing(pair, key, foreign):
    states = {**WORKING, "S": {"on": {"go": {"target": "A", "actions": {"set": {"n": "n + 1"}}}}}}
    assert pair.publish(machine(**states) | {"initial": "S", "index": ["n"]})
    create(pair, "x")
    pair.both(foreign[0], f"{ROOT}:{key}", *foreign[1:])
    before = twins.contents(pair.clients[0])
    assert fire(pair, "go")[0] == b"FAULT"
    assert twins.contents(pair.clients[0]) == before
    pair.compare()
    pair.both(*(("HDEL", f"{ROOT}:meta", "jobs") if key == "meta" else ("DEL", f"{ROOT}:{key}")))
    assert fire(pair, "go")[3]["_jobs"] == "0-1"
    pair.compare()
    assert pair.count_compiled() == 1
