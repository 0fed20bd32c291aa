"""Charts to write and read: small ones by hand, random ones with names that look like syntax."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

# Names a diagram language would trip over if they reached it unescaped.
HOSTILE = [
    'say "hi"',
    "x --> y",
    "<script>alert(1)</script>",
    "[*]",
    "😀 é 漢字",
    "end note",
    "%%{init: {}}%%",
    "a;b:c",
    "#quot; #59;",
    "1. one",
    "__b__ **x** ~~y~~",
    "!include secret",
    '%getenv("HOME")',
    "/' comment '/",
    "back\\slash\\n\\l",
    "}",
    "{",
    "@enduml",
    "||",
    "--",
    "<b>&lt;</b>",
    "<U+0041>",
    "$var <$sprite>",
    "`code`",
    "state x",
    "on hold",
    "null",
    "'",
]


def order(**changes: Any) -> dict[str, Any]:
    """Every kind of state there is, a timer, an invoke, guards and actions."""
    return {
        "id": "order",
        "initial": "Draft",
        "context": {"n": 0, "note": ""},
        "states": {
            "Draft": {
                "entry": {"log": "n"},
                "exit": {"set": {"n": 0}},
                "on": {
                    "send": [{"target": "Checks", "guard": "n < 3", "actions": {"set": {"n": "n + 1"}}}, "Lost"],
                    "note": {"actions": {"set": {"note": "event.text"}}},
                    "both": {"target": ["packed", "paid"]},
                    "back": "H",
                },
                "after": {"30s": "Lost"},
            },
            "Checks": {
                "type": "parallel",
                "onDone": "Done",
                "on": {"stop": "Draft"},
                "states": {
                    "Pack": {"initial": "packing", "states": {"packing": {"on": {"ok": "packed"}}, "packed": _FINAL}},
                    "Pay": {"initial": "paying", "states": {"paying": {"invoke": _WORK}, "paid": _FINAL}},
                    "H": {"type": "history", "history": "deep"},
                },
            },
            "Lost": {"always": {"target": "Draft", "guard": "n > 100"}, "on": {"again": "Draft"}},
            "Done": {"type": "final"},
        },
    } | changes


_FINAL = {"type": "final"}
_WORK = {"src": "charge", "onDone": "paid", "onError": "#Lost"}

GUARDS = ["n < 3", "event.x == 'a\"b' and not In('top')", "note in ['<b>', '-->']", True, False]
ACTIONS = [
    {"set": {"n": "n + 1", "note": "'calm'"}},
    {"set": {"n": "len(note)", "note": "str(n)"}},
    {"unset": "note"},
    {"raise": "again"},
    {"raise": {"event": "again", "data": {"n": "n", "type": "'x'"}}},
    {"raise": {"event": {"expr": "'ag' + 'ain'"}}},
    {"send": {"event": "again", "delay": "30s", "id": "late", "data": {"who": "note"}}},
    {"send": {"event": "again", "delay": {"expr": "n * 10"}}},
    {"send": {"event": "again", "to": "'#_parent'"}},
    {"send": {"event": "again", "to": "'#_work'", "delay": 20}},
    {"send": {"event": "again", "to": {"machine": "other", "id": "note"}}},
    {"send": "again"},
    {"cancel": "late"},
    {"cancel": {"expr": "note"}},
    {"enqueue": {"src": "mail", "input": {"to": "note"}}},
    {"emit": {"type": "moved", "data": {"deep": {"n": ["n", "'{{ x }}'", None, 1.5]}}}},
    {"log": "'plain'"},
    {"log": ["n", {"at": "now"}]},
    {"if": [{"guard": "n > 1", "do": [{"log": "n"}]}, {"do": [{"unset": "n"}]}]},
    {"block": [{"log": "n"}]},
    {"type": "set", "params": {"n": 5}},
]
EVENTS = ["go", "door", "door.open", "door.*", "*", "again"]


@st.composite
def charts(draw: st.DrawFn, names: list[str] | None = None) -> dict[str, Any]:
    """Definitions without errors, up to three levels deep; every name occurs once."""
    pool = draw(st.permutations(names or ["A", "B", "C", "D", "E", "F", "G", "on hold", "a.b"]))
    kept = iter([*pool, *(f"S{number}" for number in range(60))])
    all_names: list[str] = []
    top = _states(draw, kept, all_names, 0)
    initial = next(name for name, body in top.items() if body.get("type") != "history")
    chart: dict[str, Any] = {"id": "m", "initial": initial, "context": {"n": 0, "note": ""}, "states": top}
    _connect(draw, chart, all_names, [])
    return chart


def _states(draw: st.DrawFn, kept: Any, all_names: list[str], depth: int) -> dict[str, Any]:
    states: dict[str, Any] = {}
    for _ in range(draw(st.integers(1, 3))):
        name = next(kept)
        all_names.append(name)
        kind = draw(st.sampled_from(["atomic", "atomic", "final", "compound", "parallel"] if depth < 2 else ["atomic"]))
        states[name] = {} if kind in ("atomic", "compound") else {"type": kind}
        if kind in ("compound", "parallel"):
            states[name]["states"] = _states(draw, kept, all_names, depth + 1)
        if kind == "compound":
            states[name]["initial"] = next(iter(states[name]["states"]))
    if depth and draw(st.booleans()):
        name = next(kept)
        all_names.append(name)
        states[name] = {"type": "history", "history": draw(st.sampled_from(["shallow", "deep"]))}
    return states


def _connect(draw: st.DrawFn, body: dict[str, Any], targets: list[str], path: list[str]) -> None:
    """Gives a state, and all in it, something to do."""
    some = st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=3)
    transition = st.sampled_from(targets) | st.fixed_dictionaries(
        {},
        optional={
            "target": st.sampled_from(targets),
            "guard": st.sampled_from(GUARDS),
            "actions": some | st.sampled_from(ACTIONS),
            "reenter": st.booleans(),
            "description": st.just("why"),
        },
    )
    if path and body.get("type") not in ("final", "history"):
        chain = transition | st.lists(transition, min_size=1, max_size=2)
        parts = {
            "on": st.dictionaries(st.sampled_from(EVENTS), chain, min_size=1, max_size=3),
            "after": st.dictionaries(st.sampled_from(["1000", "30s", "n * 2"]), chain, min_size=1, max_size=2),
            "entry": some,
            "exit": st.sampled_from(ACTIONS),
            "tags": st.just(["busy"]),
            "description": st.just("words"),
            "invoke": _invokes(path[-1], transition),
        }
        body |= draw(st.fixed_dictionaries({}, optional=parts))
        if body.get("states") and draw(st.booleans()):
            body["onDone"] = draw(st.sampled_from(targets))
    for name, below in body.get("states", {}).items():
        _connect(draw, below, targets, [*path, name])


def _invokes(name: str, transition: Any) -> Any:
    handler = {"src": st.just("load"), "queue": st.just("slow"), "input": st.just({"n": "n", "who": "'me'"})}
    child = {"src": st.just("machine:other"), "autoforward": st.just(True), "finalize": st.just([{"set": {"n": 1}}])}
    options = {"onDone": transition, "onError": transition}
    return st.fixed_dictionaries(handler, optional=options) | st.fixed_dictionaries(child, optional=options)
