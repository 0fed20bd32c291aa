"""Compiled and interpreted steps of charts agree: nested and parallel states, histories, timers, ends."""

from __future__ import annotations

import json

import pytest

from . import charts, twins
from .definitions import TEXTS
from .twins import NOW, ROOT, SEEDS, Twins


def test_generated_charts_agree(pair):
    twins.play_many(pair, charts.Writer, range(60))


@pytest.mark.hostile
@pytest.mark.timeout(0)
def test_many_generated_charts_agree(pair):
    twins.play_many(pair, charts.Writer, SEEDS)


def machine(**states):
    properties = {"n": {"type": "integer", "default": 0}, "s": {"type": "string", "default": ""}}
    return {"id": "m", "initial": "A", "context": {"type": "object", "properties": properties}, "states": states}


def create(pair: Twins) -> None:
    pair.call("sb_create", "x", "{}", "", "", "", "", NOW)


def fire(pair: Twins, event: str, now: int = NOW, payload: object = None) -> object:
    text = "" if payload is None else json.dumps(payload)
    return pair.call("sb_fire", "x", event, text, "", "", "", "", now)


def names_of(trick: str) -> str:
    fits = 0 < len(trick.encode()) <= 100 and trick.isprintable() and trick.strip() == trick
    return trick if fits else "Plain"


def test_no_name_or_text_of_a_chart_becomes_code(pair):
    """Names of regions, histories, events of timers and texts stay texts."""
    tricks = [
        *TEXTS, '"..redis.call("FLUSHALL").."', "]] error('out') --[[", "\\", '\\"', "\u2028", "%s%d%n",
        "end end end return redis.call('SET','out','1')", "plan.edges", "x" * 5000,
    ]  # fmt: skip
    for number, trick in enumerate(tricks):
        quoted, name = json.dumps(trick, ensure_ascii=False), names_of(trick)
        inner = {
            "on": {"go": {"target": "Out", "guard": f"s != {quoted}", "actions": {"set": {"s": quoted}}}},
            "after": {"2s": "Out"},
        }
        inside = {"initial": name, "states": {name: inner, "last": {"type": "history", "history": "deep"}}}
        out = {
            "on": {"go": {"target": "last", "guard": f"s == {quoted}", "actions": {"set": {"s": "''", "n": "n + 1"}}}}
        }
        if not pair.publish(machine(A=inside, Out=out)):
            continue
        create(pair)
        for turn in range(4 if trick else 1):
            reply = fire(pair, "go", NOW + number + turn)
            assert reply[0] == (b"OK" if trick else b"REFUSED"), trick
        pair.compare()
        assert pair.both("EXISTS", "out") == [0, 0]
        assert pair.count_compiled() == (4 if trick else 0), trick


TOGGLED = {"on": {"go": {"target": "B", "actions": {"set": {"n": "n + 1"}}}}}
BUSY = {"on": {"go": "A"}, "invoke": {"src": "work", "queue": "q"}, "entry": {"enqueue": {"src": "tell", "queue": "r"}}}
REGIONS = {
    "R": {"initial": "A", "states": {"A": TOGGLED | {"after": {"1s": "B"}}, "B": BUSY}},
    "Q": {"initial": "C", "states": {"C": {"on": {"go": "D"}}, "D": {"after": {"5s": "C"}}}},
}


@pytest.mark.parametrize(
    "key", ["in:B", "in:D", "h:x", "flow", "by:n", "timers", "by:instance.transition", "q:q", "q:r"]
)
def test_a_step_of_a_chart_whose_write_fails_writes_nothing(pair, key):
    states = {"P": {"type": "parallel", "states": REGIONS}}
    definition = machine(**states) | {"initial": "P", "index": ["n", "instance.actor", "instance.transition"]}
    assert pair.publish(definition)
    create(pair)
    held = f"{ROOT}:{key}"
    kept = [client.dump(held) for client in pair.clients]
    for client in pair.clients:
        client.delete(held)
        client.set(held, "foreign")
    before = twins.contents(pair.clients[0])
    pair.count_compiled()
    assert fire(pair, "go")[0] == b"FAULT"
    pair.compare()
    assert twins.contents(pair.clients[0]) == before
    for client, dumped in zip(pair.clients, kept, strict=True):
        client.delete(held)
        if dumped:
            client.restore(held, 0, dumped)
    assert fire(pair, "go", NOW + 5)[0] == b"OK"
    pair.compare()
    assert pair.count_compiled() == 1


def test_regions_end_and_the_machine_with_them(pair):
    def region(name):
        return {
            "initial": name,
            "states": {name: {"on": {f"end_{name}": f"{name} ended"}}, f"{name} ended": {"type": "final"}},
        }

    both = {
        "type": "parallel",
        "states": {"P": region("p"), "Q": region("q")},
        "onDone": "Over",
        "exit": {"set": {"n": "n + 1"}},
    }
    assert pair.publish(machine(A=both, Over={"type": "final", "entry": {"set": {"s": "'over'"}}}))
    create(pair)
    assert fire(pair, "end_q", NOW + 1)[3]["_state"] == "p\nq ended"
    reply = fire(pair, "end_p", NOW + 2)
    assert (reply[1], reply[3]["_state"], reply[3]["_done"], reply[3]["n"]) == (b"t2 t1", "Over", "1", "1")
    assert fire(pair, "end_p", NOW + 3)[0] == b"REFUSED"
    pair.compare()
    assert pair.count_compiled() == 2


def test_all_regions_of_a_machine_that_ends_are_left_the_last_one_first(pair):
    def region(name):
        def note(text):
            return {"set": {"s": f"s + '{text} '"}}

        states = {
            name: {"on": {f"end_{name}": f"{name} ended"}},
            f"{name} ended": {"type": "final", "exit": note(f"{name}-end")},
        }
        return {"initial": name, "states": states, "exit": note(name)}

    definition = machine(P=region("p"), Q=region("q"))
    del definition["initial"]
    assert pair.publish(definition | {"type": "parallel"})
    create(pair)
    fire(pair, "end_p", NOW + 1)
    after = fire(pair, "end_q", NOW + 2)[3]
    assert (after["_state"], after["_done"]) == ("p ended\nq ended", "1")
    assert after["s"] == "q-end q p-end p "
    pair.compare()
    assert pair.count_compiled() == 2


def test_what_one_way_of_a_step_records_is_not_what_another_restores(pair):
    """The first transition enters and leaves the state of the history, which only the second one restores."""
    whole = {
        "initial": "kept",
        "states": {
            "kept": {"on": {"leave": "A"}},
            "passed": {"always": "Side"},
            "back": {"type": "history", "target": "kept"},
        },
    }
    out = {"on": {"add": {"actions": {"set": {"n": "n + 1"}}}, "go": [{"guard": "n == 0", "target": "passed"}, "back"]}}
    assert pair.publish(machine(A=out, W=whole, Side={}) | {"initial": "W"})
    create(pair)
    fire(pair, "leave", NOW + 1)
    fire(pair, "add", NOW + 2)
    pair.count_compiled()
    assert fire(pair, "go", NOW + 3)[3]["_state"] == "kept"
    assert pair.count_compiled() == 1
    pair.compare()


@pytest.mark.parametrize("ids", ["x", "xyz"])
def test_ends_of_jobs_of_a_chart_run_compiled(pair, ids):
    """Alone and in a batch; whether an error leaves the state of the job, the interpreter finds out."""
    working = {
        "on": {"again": "Working"},
        "invoke": {"id": "w", "src": "work", "queue": "q", "onDone": "B", "onError": "C"},
    }
    states = {"P": {"initial": "Working", "states": {"Working": working, "B": {"on": {"again": "Working"}}, "C": {}}}}
    assert pair.publish(machine(**states) | {"initial": "P", "index": ["instance.transition"]})
    for id in ids:
        pair.call("sb_create", id, "{}", "", "", "", "", NOW)
    ended = [word for job in take(pair, "first") for word in (*job, '{"n":1}')]
    assert len(pair.call("sb_complete", NOW + 5, "", *ended)) == 1 + len(ids)
    assert pair.both("HGET", f"{ROOT}:i:x", "_state") == [b"B", b"B"]
    pair.compare()
    assert pair.count_compiled() == len(ids)
    pair.call("sb_fire", "x", "again", "", "", "", "", "", NOW + 6)
    pair.count_compiled()
    assert pair.call("sb_fail", *take(pair, "second")[0], "no", "Broken", "", "0", NOW + 7)[1] == b"dead"
    assert pair.both("HGET", f"{ROOT}:i:x", "_state") == [b"C", b"C"]
    pair.compare()
    assert pair.count_compiled() == 0


def take(pair: Twins, call: str) -> list[tuple[bytes, bytes]]:
    reply = pair.call("sb_take", "q", "w", 9, "", NOW + 4, call)
    return [(reply[at], reply[at + 2]) for at in range(3, len(reply), 6)]
