"""Fifty small definitions, each with one defect and the code that names it."""

from __future__ import annotations

from typing import Any

from tests.engine.builders import fields, machine

Body = dict[str, Any]
END: Body = {"type": "final"}


def one(code: str, what: str, states: Body, **top: Any) -> tuple[str, str, Body]:
    return code, what, machine("m", states, **top)


def on(**transitions: Any) -> Body:
    return {"on": transitions}


ONE_OF = {"payload": {"kind": {"type": "string", "required": True}}}
AMOUNT = {"payload": {"amount": {"type": "integer", "required": True}}}

DEFECTS = [
    # Never reached
    one("SB801", "no way in", {"A": on(go="B"), "B": END, "Lost": on(go="B")}),
    one(
        "SB801", "only from a state that is lost itself", {"A": on(go="B"), "B": END, "L": on(go="M"), "M": on(go="L")}
    ),
    one(
        "SB801",
        "behind a guard on a constant",
        {
            "A": on(go=[{"guard": "mode == 'x'", "target": "X"}, "B"], add={"actions": {"set": {"mode": "'y'"}}}),
            "X": on(go="B"),
            "B": END,
        },
        context={"mode": "y"},
    ),
    one(
        "SB801",
        "behind a contradiction",
        {
            "A": on(
                go=[{"guard": "n > 3 and n < 2", "target": "X"}, "B"], add={"actions": {"set": {"n": "(n + 1) % 6"}}}
            ),
            "X": on(go="B"),
            "B": END,
        },
        context={"n": 0},
    ),
    one(
        "SB801",
        "behind a counter that stops earlier",
        {
            "A": on(
                add={"guard": "n < 3", "actions": {"set": {"n": "n + 1"}}}, go=[{"guard": "n > 3", "target": "X"}, "B"]
            ),
            "X": on(go="B"),
            "B": END,
        },
        context={"n": 0},
    ),
    one(
        "SB801",
        "a region that is never left for it",
        {
            "A": {
                "type": "parallel",
                "states": {
                    "L": {"initial": "L1", "states": {"L1": on(go="L2"), "L2": {}, "L3": {}}},
                    "R": {"initial": "R1", "states": {"R1": on(end="#B")}},
                },
            },
            "B": END,
        },
    ),
    one(
        "SB801",
        "the onError of an invoke that is the onDone",
        {"A": {"invoke": {"src": "w", "onDone": "B", "onError": "B"}}, "B": END, "Failed": on(go="B")},
    ),
    # Never taken
    one(
        "SB802",
        "behind one that always holds",
        {
            "A": on(go=["B", {"target": "C", "guard": "n > 0"}], x="C", add={"actions": {"set": {"n": "1 - n"}}}),
            "B": END,
            "C": END,
        },
        context={"n": 0},
    ),
    one(
        "SB802",
        "a guard that the one before implies",
        {
            "A": on(
                go=[{"guard": "n > 5", "target": "B"}, {"guard": "n > 10", "target": "C"}],
                x="C",
                add={"actions": {"set": {"n": "(n + 3) % 20"}}},
            ),
            "B": END,
            "C": END,
        },
        context={"n": 0},
    ),
    one(
        "SB802",
        "a contradicting guard on a payload",
        {
            "A": on(pay=[{"guard": "event.amount > 3 and event.amount < 2", "target": "B"}, "C"], x="B"),
            "B": END,
            "C": END,
        },
        events={"pay": AMOUNT},
    ),
    one(
        "SB802",
        "whole numbers have none between",
        {
            "A": on(pay=[{"guard": "event.amount > 3 and event.amount < 4", "target": "B"}, "C"], x="B"),
            "B": END,
            "C": END,
        },
        events={"pay": AMOUNT},
    ),
    one(
        "SB802",
        "a text that is never set",
        {
            "A": on(go={"actions": {"set": {"s": "'b'"}}}, end=[{"guard": "s == 'c'", "target": "B"}, "C"], x="B"),
            "B": END,
            "C": END,
        },
        context={"s": "a"},
    ),
    one(
        "SB802",
        "a flag that is never set",
        {
            "A": on(end=[{"guard": "ready", "target": "B"}, "C"], x="B", add={"actions": {"set": {"ready": "False"}}}),
            "B": END,
            "C": END,
        },
        context={"ready": False},
    ),
    one(
        "SB802",
        "a state that is not active then",
        {"A": on(go=[{"guard": "In('B')", "target": "C"}, "B"]), "B": on(go="C"), "C": END},
    ),
    one(
        "SB802",
        "two payload texts at once",
        {
            "A": on(put=[{"guard": "event.kind == 'a' and event.kind == 'b'", "target": "B"}, "C"], x="B"),
            "B": END,
            "C": END,
        },
        events={"put": ONE_OF},
    ),
    one(
        "SB802",
        "an else behind both cases",
        {
            "A": on(
                go=[{"guard": "n < 3", "target": "B"}, {"guard": "n >= 3", "target": "C"}, "D"],
                x="D",
                add={"actions": {"set": {"n": "(n + 1) % 9"}}},
            ),
            "B": END,
            "C": END,
            "D": END,
        },
        context={"n": 0},
    ),
    one(
        "SB802",
        "an eventless one whose guard never holds",
        {
            "A": {"on": {"go": {"target": "B", "actions": {"set": {"n": "0"}}}, "x": "C"}},
            "B": {"always": {"guard": "n == 9", "target": "C"}, "on": {"end": "C"}},
            "C": END,
        },
        context={"n": 0},
    ),
    one(
        "SB802",
        "an event that the inner state always takes",
        {
            "P": {"initial": "Q", "on": {"go": {"target": "B"}, "x": "B"}, "states": {"Q": on(go="#C")}},
            "B": END,
            "C": END,
        },
    ),
    # Deadlock
    one("SB803", "no way out", {"A": on(go="B", end="C"), "B": {}, "C": END}),
    one(
        "SB803",
        "guards that no longer hold",
        {
            "A": on(go={"target": "B", "actions": {"set": {"n": "n + 1"}}}),
            "B": on(end={"guard": "n == 0", "target": "C"}, back={"guard": "n == 7", "target": "A"}),
            "C": END,
        },
        context={"n": 0},
    ),
    one(
        "SB803",
        "regions that wait for each other",
        {
            "P": {
                "type": "parallel",
                "states": {
                    "L": {"initial": "L1", "states": {"L1": on(go={"guard": "In('R2')", "target": "L2"}), "L2": END}},
                    "R": {"initial": "R1", "states": {"R1": on(go={"guard": "In('L2')", "target": "R2"}), "R2": END}},
                },
                "onDone": "E",
            },
            "E": END,
        },
    ),
    one(
        "SB803",
        "a counter that is used up",
        {
            "A": on(go={"guard": "n > 0", "actions": {"set": {"n": "n - 1"}}}, end={"guard": "n == 5", "target": "B"}),
            "B": END,
        },
        context={"n": 2},
    ),
    one(
        "SB803",
        "a lost region",
        {
            "P": {
                "type": "parallel",
                "states": {
                    "L": {"initial": "L1", "states": {"L1": on(go="L2"), "L2": {}}},
                    "R": {"initial": "R1", "states": {"R1": on(go="R2"), "R2": END}},
                },
                "onDone": "E",
            },
            "E": END,
        },
    ),
    one(
        "SB803", "a timer leads into a trap", {"A": {"on": {"end": "E"}, "after": {"5m": "Late"}}, "Late": {}, "E": END}
    ),
    # Livelock
    one(
        "SB804",
        "a circle whose guards always hold",
        {
            "A": on(go="B"),
            "B": {"always": {"guard": "n < 5", "target": "C"}},
            "C": {"always": {"guard": "n < 9", "target": "B"}, "on": {"end": "E"}},
            "E": END,
        },
        context={"n": 0},
    ),
    one("SB804", "an event that raises itself", {"A": on(go={"actions": {"raise": "go"}}, end="E"), "E": END}),
    one(
        "SB804",
        "two events that raise each other",
        {"A": on(ping={"actions": {"raise": "pong"}}, pong={"actions": {"raise": "ping"}}, end="E"), "E": END},
    ),
    one(
        "SB804",
        "an event sent to itself without end",
        {"A": on(go={"actions": {"send": {"event": "go"}}}, end="E"), "E": END},
    ),
    one(
        "SB804",
        "a circle from a flag",
        {
            "A": on(on={"target": "B", "actions": {"set": {"loop": "True"}}}, end="E"),
            "B": {"always": {"guard": "loop", "target": "C"}, "on": {"end": "E"}},
            "C": {"always": {"guard": "loop", "target": "B"}},
            "E": END,
        },
        context={"loop": False},
    ),
    # No way to an end
    one(
        "SB805", "a circle that nothing leaves", {"A": on(go="B", end="E"), "B": on(go="C"), "C": on(go="B"), "E": END}
    ),
    one(
        "SB805",
        "a flag that stays",
        {
            "A": on(
                lock={"actions": {"set": {"locked": "True"}}},
                end={"guard": "not locked", "target": "E"},
                note={"actions": {"log": "locked"}},
            ),
            "E": END,
        },
        context={"locked": False},
    ),
    one(
        "SB805",
        "a counter that passed its mark",
        {"A": on(add={"actions": {"set": {"n": "min(n + 2, 4)"}}}, end={"guard": "n == 0", "target": "E"}), "E": END},
        context={"n": 0},
    ),
    one(
        "SB805",
        "a timer into a circle",
        {
            "A": {"on": {"end": "E"}, "after": {"1m": "W"}},
            "W": {"after": {"1m": {"target": "W", "reenter": True}}},
            "E": END,
        },
    ),
    # Timers
    one(
        "SB806",
        "a shorter timer leaves first",
        {"A": {"after": {"5s": "B", "10s": "C"}, "on": {"x": "C"}}, "B": END, "C": END},
    ),
    one(
        "SB806",
        "the timer of the state around is reset",
        {
            "A": {
                "initial": "B",
                "states": {"B": {"after": {"2s": {"target": "#A", "reenter": True}}, "on": {"end": "#E"}}},
                "after": {"3s": "#E"},
            },
            "E": END,
        },
    ),
    one(
        "SB806",
        "its guard never holds",
        {
            "A": {
                "after": {"5s": {"guard": "late", "target": "B"}},
                "on": {"x": "B", "add": {"actions": {"set": {"late": "False"}}}},
            },
            "B": END,
        },
        context={"late": False},
    ),
    one(
        "SB806",
        "the second of the same moment",
        {
            "A": {"after": {"5s": [{"target": "B"}, {"target": "C", "guard": "n == 0"}]}, "on": {"x": "C"}},
            "B": END,
            "C": END,
        },
        context={"n": 0},
    ),
    # Invokes
    one("SB807", "no onDone", {"A": {"invoke": {"src": "w", "onError": "B"}, "on": {"end": "B"}}, "B": END}),
    one(
        "SB807",
        "neither onDone nor onError",
        {"A": on(go="B"), "B": {"invoke": {"src": "w"}, "on": {"end": "C"}}, "C": END},
    ),
    one(
        "SB807",
        "one of two",
        {"A": {"invoke": [{"id": "a", "src": "w", "onDone": "B"}, {"id": "b", "src": "v"}]}, "B": END},
    ),
    one("SB807", "a child", {"A": {"invoke": {"id": "kid", "src": "machine:other"}, "on": {"end": "B"}}, "B": END}),
    # Locked out
    one(
        "SB808",
        "a group before everybody",
        {"A": on(go=[{"target": "B", "allow": ["boss"]}, {"target": "C"}], x="C"), "B": END, "C": END},
    ),
    one(
        "SB808",
        "a group before everybody, with a guard",
        {
            "A": on(go=[{"target": "B", "allow": ["boss"]}, {"target": "C", "guard": "n == 0"}], x="C"),
            "B": END,
            "C": END,
        },
        context={"n": 0},
    ),
    # Read before set
    one(
        "SB809",
        "a guard",
        {"A": on(check={"guard": "limit > 3", "target": "B"}, give={"actions": {"set": {"limit": "5"}}}), "B": END},
        context=fields(limit="integer"),
    ),
    one(
        "SB809",
        "an action",
        {
            "A": on(
                add={"actions": {"set": {"total": "total + 1"}}}, start={"actions": {"set": {"total": "0"}}}, end="B"
            ),
            "B": END,
        },
        context=fields(total="integer"),
    ),
    one(
        "SB809",
        "after it was unset",
        {
            "A": on(
                clear={"actions": {"unset": "n"}},
                give={"actions": {"set": {"n": "1"}}},
                end={"guard": "n < 5", "target": "B"},
            ),
            "B": END,
        },
        context=fields(n="integer"),
    ),
    # Failing guards
    one(
        "SB810",
        "a division by zero",
        {
            "A": on(
                go={"guard": "10 / n > 1", "target": "B"},
                dec={"guard": "n > 0", "actions": {"set": {"n": "n - 1"}}},
                end="B",
            ),
            "B": END,
        },
        context={"n": 2},
    ),
    one(
        "SB810",
        "a field that may be missing",
        {"A": on(pay=[{"guard": "event.amount > 3", "target": "B"}, "C"]), "B": END, "C": END},
        events={"pay": {"payload": {"amount": {"type": "integer"}}}},
    ),
    one(
        "SB810",
        "a text compared with a number",
        {"A": on(put=[{"guard": "event.kind > 3", "target": "B"}, "C"], x="B"), "B": END, "C": END},
        events={"put": {"payload": {"kind": {"type": ["string", "integer"], "required": True}}}},
    ),
    one(
        "SB810",
        "a text that is no number",
        {
            "A": on(
                go=[{"guard": "number(s) > 1", "target": "B"}, "C"], set={"actions": {"set": {"s": "'none'"}}}, x="B"
            ),
            "B": END,
            "C": END,
        },
        context={"s": "2"},
    ),
    # Properties
    one(
        "SB811",
        "never",
        {"A": on(pay="Paid", ok="B"), "B": on(pay="Paid"), "Paid": END},
        context={"n": 0},
        properties=[{"never": "In('Paid')"}],
    ),
    one(
        "SB811",
        "always",
        {"A": on(add={"guard": "n < 5", "actions": {"set": {"n": "n + 1"}}}, end="B"), "B": END},
        context={"n": 0},
        properties=[{"always": "n <= 3"}],
    ),
    one(
        "SB811",
        "leads",
        {
            "A": on(go="Fulfilling"),
            "Fulfilling": on(done="Done", drop="Lost"),
            "Lost": on(go="Lost2"),
            "Lost2": on(go="Lost"),
            "Done": END,
        },
        properties=[{"leads": ["Fulfilling", "In('Done')"]}],
    ),
]
