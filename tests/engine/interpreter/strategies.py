"""Random flat machines that can be published."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from machines.engine.definitions import check

EVENTS = ["a", "b", "c"]
CONTEXT = {
    "type": "object",
    "properties": {
        "n": {"type": "number", "default": 0},
        "m": {},
        "l": {"type": "array", "default": []},
    },
}
GUARDS = [
    "n < 3",
    "n >= 2",
    "event.x == n",
    "event.x > 1",
    "m is None",
    "len(l) < 2",
    "n % 2 == 0 and not m",
    "In('S0')",
]
ACTIONS = [
    {"set": {"n": "n + 1"}},
    {"set": {"n": "0"}},
    {"set": {"m": "event.x"}},
    {"unset": "m"},
    {"append": {"l": "n"}},
    {"set": {"l": "[]"}},
    {"raise": "b"},
    {"raise": {"event": "c", "data": {"x": "n"}}},
    {"enqueue": {"src": "mail", "input": {"n": "n"}}},
    {"emit": {"type": "told", "data": {"n": "n"}}},
    {"log": "m"},
    {"set": {"n": "10 / n"}},  # fails now and then
]


@st.composite
def transitions(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if draw(st.integers(0, 2)):
        made["target"] = draw(st.sampled_from(names))
        made["reenter"] = draw(st.booleans())
    if draw(st.integers(0, 2)) == 2:
        made["guard"] = draw(st.sampled_from(GUARDS))
    made["actions"] = draw(st.lists(st.sampled_from(ACTIONS), max_size=3))
    return made


@st.composite
def states(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    if draw(st.integers(0, 9)) == 9:
        return {"type": "final"}
    several = st.lists(transitions(names), min_size=1, max_size=3)
    made: dict[str, Any] = {"on": {event: draw(several) for event in EVENTS}}
    for key in ("entry", "exit"):
        made[key] = draw(st.lists(st.sampled_from(ACTIONS), max_size=1))
    if draw(st.integers(0, 3)) == 3:
        made["always"] = draw(transitions(names)) | {"guard": draw(st.sampled_from(["n > 3", "len(l) > 2"]))}
    if draw(st.integers(0, 1)) == 1:
        made["invoke"] = {
            "src": "work",
            "retry": {"attempts": 2},
            "onDone": draw(transitions(names)),
            "onError": draw(transitions(names)),
        }
    return made


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    names = [f"S{number}" for number in range(draw(st.integers(2, 5)))]
    found = {name: draw(states(names)) for name in names}
    return {"id": "m", "initial": "S0", "context": CONTEXT, "states": found, "history": 10_000}


def publishable() -> st.SearchStrategy[dict[str, Any]]:
    return definitions().filter(lambda made: not any(finding.is_error for finding in check(made)))
