"""The same charts here and in python-statemachine, another interpreter of the SCXML recommendation: the same leaves.

Charts are written once, in a neutral form, and rendered for both. A chart is a table of states by name; no two states
have the same name. A state may have ``states`` (the first is the initial one), ``type``, ``entry`` and ``exit`` (events
to raise), ``on``, ``always``, ``done`` (its done event), and a history state ``default``: what it stands for at first.
A way out is the name of its target, or a dict: ``to`` (names, with spaces between them), ``raise`` (events), ``inside``
and ``outside`` (guards: a state that must be active, or must not be), ``internal`` (SCXML's ``type="internal"``).

Where the two disagree, ``DIFFERENCES`` says why and which rule of the recommendation decides. Both results are held
there, so that neither can change unseen.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from statemachine import StateChart
from statemachine.io.class_factory import create_machine_class_from_definition

from machines.engine import Engine, Refused

State = dict[str, Any]
NOT_CHECKED = ["validate_disconnected_states", "validate_final_reachability", "validate_trap_states"]
# A callback of ours that fails must fail the test, not become an event.
SETTINGS = dict.fromkeys([*NOT_CHECKED, "catch_errors_as_events"], False)


@dataclass(frozen=True)
class Chart:
    states: dict[str, State]
    runs: tuple[str, ...]  # events, with spaces between them

    @property
    def events(self) -> list[str]:
        return sorted({event for run in self.runs for event in run.split()})


@dataclass(frozen=True)
class Difference:
    """``here`` and ``there`` are the leaves at the start and after each event."""

    chart: Chart
    why: str
    rule: str
    here: tuple[str, ...]
    there: tuple[str, ...]


TWO = {"type": "parallel"}
END = {"type": "final"}

CHARTS = {
    "the innermost transition wins": Chart(
        {
            "work": {
                "on": {"next": "rest", "quit": "rest"},
                "states": {"one": {"on": {"next": "two"}}, "two": {"states": {"deep": {}}, "on": {"back": "one"}}},
            },
            "rest": {"on": {"next": "work", "back": "two"}},
        },
        ("next next next quit", "next back next next", "quit back quit"),
    ),
    "regions move side by side": Chart(
        {
            "all": TWO
            | {
                "states": {
                    "left": {"states": {"l1": {"on": {"both": "l2", "l": "l2"}}, "l2": {"on": {"both": "l1"}}}},
                    "right": {"states": {"r1": {"on": {"both": "r2", "r": "r2"}}, "r2": {"on": {"both": "r1"}}}},
                }
            }
        },
        ("both both l both", "r both l both"),
    ),
    "leaving from one region ends the other": Chart(
        {
            "all": TWO
            | {
                "on": {"off": "out"},
                "states": {
                    "left": {"states": {"l1": {"on": {"x": "l2"}}, "l2": {"on": {"x": "out"}}}},
                    "right": {"states": {"r1": {"on": {"x": "r2", "off": "r2"}}, "r2": {"on": {"x": "r1"}}}},
                },
            },
            "out": {"on": {"in": "all", "x": "r2"}},
        },
        ("x x in off off in", "off off x x in", "x x x x"),
    ),
    "conflicts at first entry: the earlier region wins": Chart(
        {
            "all": TWO
            | {
                "states": {
                    "left": {"states": {"l1": {"on": {"x": "a"}}}},
                    "right": {"states": {"r1": {"on": {"x": "b", "y": "b"}}}},
                }
            },
            "a": {"on": {"in": "all"}},
            "b": {"on": {"in": "all"}},
        },
        ("x in y in x",),
    ),
    "done event of a compound state": Chart(
        {
            "job": {"done": "after", "states": {"run": {"on": {"end": "ended"}}, "ended": END}},
            "after": {"on": {"again": "job", "jump": "ended"}},
        },
        ("end again end jump",),
    ),
    "done event of a parallel state": Chart(
        {
            "all": TWO
            | {
                "done": "after",
                "states": {
                    "left": {"states": {"l1": {"on": {"l": "l2"}}, "l2": END}},
                    "right": {"done": "r3", "states": {"r1": {"on": {"r": "r2"}}, "r2": END, "r3": {}}},
                },
            },
            "after": {"on": {"again": "all"}},
        },
        ("l r again r l", "r r l l again"),
    ),
    "done events of a parallel state in a region": Chart(
        {
            "all": TWO
            | {
                "states": {
                    "left": {
                        "states": {
                            "both": TWO
                            | {
                                "done": "over",
                                "states": {
                                    "p": {"states": {"p1": {"on": {"p": "p2"}}, "p2": END}},
                                    "q": {"states": {"q1": {"on": {"q": "q2"}}, "q2": END}},
                                },
                            },
                            "over": {"on": {"again": "both"}},
                        },
                    },
                    "right": {"states": {"r1": {"on": {"p": "r2"}}, "r2": {"on": {"q": "r1"}}}},
                }
            }
        },
        ("p q again q p", "q q p again p p"),
    ),
    "shallow history": Chart(
        {
            "work": {
                "on": {"out": "away"},
                "states": {
                    "one": {"on": {"next": "two"}},
                    "two": {"states": {"t1": {"on": {"next": "t2"}}, "t2": {}}},
                    "was": {"type": "history", "history": "shallow", "default": "two"},
                },
            },
            "away": {"on": {"back": "was", "in": "work"}},
        },
        ("out back out in", "next next out back out back", "next out back next out in"),
    ),
    "deep history": Chart(
        {
            "work": {
                "on": {"out": "away"},
                "states": {
                    "one": {"on": {"next": "two"}},
                    "two": {"states": {"t1": {"on": {"next": "t2"}}, "t2": {"on": {"next": "one"}}}},
                    "was": {"type": "history", "history": "deep", "default": "t2"},
                },
            },
            "away": {"on": {"back": "was", "in": "work"}},
        },
        ("out back", "next next out back next out in", "next out back out back"),
    ),
    "deep history of regions": Chart(
        {
            "away": {"on": {"in": "all", "back": "was"}},
            "all": TWO
            | {
                "on": {"out": "away"},
                "states": {
                    "was": {"type": "history", "history": "deep", "default": "r2"},
                    "left": {"states": {"l1": {"on": {"x": "l2"}}, "l2": {"on": {"x": "l1"}}}},
                    "right": {
                        "states": {"r1": {"on": {"y": "r2"}}, "r2": {"states": {"r3": {"on": {"y": "r4"}}, "r4": {}}}}
                    },
                },
            },
        },
        ("in x y out back y out back", "back x out in out back"),
    ),
    "history of one region": Chart(
        {
            "all": TWO
            | {
                "on": {"out": "away"},
                "states": {
                    "left": {
                        "states": {
                            "was": {"type": "history", "history": "shallow", "default": "l2"},
                            "l1": {"on": {"x": "l2"}},
                            "l2": {"on": {"x": "l1"}},
                        }
                    },
                    "right": {"states": {"r1": {"on": {"x": "r2"}}, "r2": {"on": {"x": "r1"}}}},
                },
            },
            "away": {"on": {"back": "was", "in": "all"}},
        },
        ("x out back", "out back x out in", "x x out back"),
    ),
    "eventless chains": Chart(
        {
            "start": {"on": {"go": "pass1"}},
            "pass1": {"always": "pass2"},
            "pass2": {"always": [{"to": "start", "inside": "start"}, {"to": "group"}]},
            "group": {"on": {"home": "start"}, "states": {"g1": {"always": "g2"}, "g2": {"on": {"go": "g1"}}}},
        },
        ("go go home go",),
    ),
    "guards on other regions": Chart(
        {
            "all": TWO
            | {
                "states": {
                    "lock": {"states": {"shut": {"on": {"turn": "free"}}, "free": {"on": {"turn": "shut"}}}},
                    "door": {
                        "states": {
                            "closed": {"on": {"push": {"to": "open", "inside": "free"}}},
                            "open": {
                                "on": {"push": {"to": "closed", "outside": "shut"}},
                                "always": {"to": "stuck", "inside": "shut"},
                            },
                            "stuck": {"always": {"to": "open", "inside": "free"}},
                        }
                    },
                }
            }
        },
        ("push turn push turn push turn", "turn push push turn push"),
    ),
    "internal events come before external ones, in order": Chart(
        {
            "a": {"on": {"go": {"to": "b", "raise": ["one", "two"]}}},
            "b": {"entry": ["three"], "on": {"one": "c", "two": "wrong", "three": "wrong", "go": "a"}},
            "c": {"on": {"two": {"to": "d", "raise": ["four"]}, "three": "wrong", "four": "wrong"}},
            "d": {"on": {"three": "e", "four": "wrong"}, "exit": ["five"]},
            "e": {"on": {"four": "f", "five": "wrong"}},
            "f": {"on": {"five": "g"}},
            "g": {"on": {"go": "a", "one": "wrong"}},
            "wrong": {"on": {"go": "a"}},
        },
        ("go go go one go",),
    ),
    "transitions without a target": Chart(
        {
            "all": TWO
            | {
                "on": {"ring": {"raise": ["heard"]}},
                "states": {
                    "left": {"states": {"l1": {"on": {"x": {"raise": ["poke"]}, "heard": "l2"}}, "l2": {}}},
                    "right": {"states": {"r1": {"on": {"poke": "r2"}}, "r2": {"on": {"heard": "r1"}}}},
                },
            }
        },
        ("x ring ring x", "ring x ring"),
    ),
    "internal and external transitions": Chart(
        {
            "work": {
                "entry": ["began"],
                "on": {"inner": {"to": "two", "internal": True}, "outer": "two", "self": "work"},
                "states": {"one": {}, "two": {"on": {"began": "three"}}, "three": {}},
            }
        },
        ("inner inner outer inner", "outer self outer self"),
    ),
    "internal is external for a parallel state": Chart(
        {
            "all": TWO
            | {
                "on": {"inner": {"to": "l2", "internal": True}, "outer": "l1"},
                "states": {
                    "left": {"states": {"l1": {}, "l2": {}}},
                    "right": {"states": {"r1": {"on": {"x": "r2"}}, "r2": {}}},
                },
            }
        },
        ("x inner x outer", "inner outer x inner"),
    ),
    "several targets": Chart(
        {
            "away": {"on": {"in": "l3 r2", "half": "r2"}},
            "all": TWO
            | {
                "on": {"out": "away", "set": "r2 l2"},
                "states": {
                    "left": {"states": {"l1": {"on": {"x": "l2"}}, "l2": {"states": {"l4": {}, "l3": {}}}}},
                    "right": {"states": {"r1": {"on": {"x": "r2"}}, "r2": {"on": {"x": "r1"}}}},
                },
            },
        },
        ("in x set out half x", "half out in set x"),
    ),
    "descriptors": Chart(
        {
            "a": {"on": {"mail.new": "b", "mail.*": "c", "*": "d"}},
            "b": {"on": {"*": "a"}},
            "c": {"on": {"mail.*": "a"}},
            "d": {"on": {"call.*": "a"}},
        },
        ("mail.new call mail.old mail mail.new mail.new.big", "call call.me call mail call call.me.now"),
    ),
    "the end is the end": Chart(
        {
            "a": {"on": {"go": "b", "end": "over"}},
            "b": {"states": {"b1": {"on": {"go": "a", "end": "over"}}}},
            "over": END,
        },
        ("go end go end", "end go"),
    ),
}

REGIONS_LEAVE = {
    "all": TWO
    | {
        "states": {
            "left": {"states": {"l1": {"on": {"move": "l2"}}, "l2": {"on": {"x": "a"}}}},
            "right": {"states": {"r1": {"on": {"x": "b"}}}},
        }
    },
    "a": {},
    "b": {},
}
DEEP_ENTRY = {
    "away": {"on": {"in": "all"}},
    "all": TWO
    | {
        "on": {"first": "a", "second": "b"},
        "states": {
            "left": {"states": {"l1": {"states": {"l2": {"entry": ["first"]}}}}},
            "right": {"entry": ["second"], "states": {"r1": {}}},
        },
    },
    "a": {},
    "b": {},
}
ALL_FINAL = {
    "all": TWO
    | {
        "on": {"reset": "away"},
        "states": {
            "left": {"states": {"l1": {"on": {"x": "l2"}}, "l2": END}},
            "right": {"states": {"r1": {"on": {"x": "r2"}}, "r2": END}},
        },
    },
    "away": {},
}
HISTORY_CONTENT = {
    "away": {"on": {"back": {"to": "was", "raise": ["step"]}}},
    "work": {
        "on": {"out": "away"},
        "states": {
            "was": {"type": "history", "history": "shallow", "default": "one"},
            "one": {"on": {"step": "two"}},
            "two": {"on": {"step": "three"}},
            "three": {},
        },
    },
}
HISTORY_OF_TWO = {
    "away": {"on": {"back": "was"}},
    "all": TWO
    | {
        "states": {
            "was": {"type": "history", "history": "deep", "default": "l2 r2"},
            "left": {"states": {"l1": {}, "l2": {}}},
            "right": {"states": {"r1": {}, "r2": {}}},
        },
    },
}
INTERNAL_SELF = {
    "all": TWO
    | {
        "states": {
            "left": {
                "states": {
                    "l1": {"on": {"go": "l2"}},
                    "l2": {"entry": ["in"], "exit": ["out"], "on": {"again": {"to": "l2", "internal": True}}},
                }
            },
            "right": {
                "states": {
                    "r1": {"on": {"in": "r2"}},
                    "r2": {"on": {"in": "entered", "out": "r3"}},
                    "r3": {"on": {"in": "left-and-entered"}},
                    "entered": {},
                    "left-and-entered": {},
                }
            },
        }
    },
}
DIFFERENCES = {
    "conflicts after a region has moved": Difference(
        Chart(REGIONS_LEAVE, ("move x",)),
        why="There leaves are asked in the order they were entered: the left region has moved, so the right is first.",
        rule="Appendix D, selectTransitions: atomic states in document order; removeConflictingTransitions: the first.",
        here=("l1 r1", "l2 r1", "a"),
        there=("l1 r1", "l2 r1", "b"),
    ),
    "entering regions of unequal depth": Difference(
        Chart(DEEP_ENTRY, ("in",)),
        why="There a state's number leaves out what is inside earlier siblings: the right region is before deep ones.",
        rule="Appendix D, enterStates: in entry order, which is document order: all of the left, then the right.",
        here=("away", "a"),
        there=("away", "b"),
    ),
    "a top parallel state whose regions are all final": Difference(
        Chart(ALL_FINAL, ("x reset",)),
        why="There the whole machine ends then, and hears nothing any more.",
        rule="3.7: the machine ends with a final child of scxml. Appendix D, enterStates: done.state.all is raised.",
        here=("l1 r1", "l2 r2", "away"),
        there=("l1 r1", "l2 r2", "l2 r2"),
    ),
    "actions of a transition to a history state": Difference(
        Chart(HISTORY_CONTENT, ("back out back",)),
        why="There they are carried out a second time when the parent of the history state is entered.",
        rule="Appendix D, executeTransitionContent: once. enterStates adds the content of the history's default.",
        here=("away", "two", "away", "three"),
        there=("away", "three", "away", "three"),
    ),
    "a history state that stands for two states": Difference(
        Chart(HISTORY_OF_TWO, ("back",)),
        why="There only the first target of its default transition is entered.",
        rule="Appendix D, addDescendantStatesToEnter: for every target of the history state's transition.",
        here=("away", "l2 r2"),
        there=("away", "l2 r1"),
    ),
    "internal transition of an atomic state to itself": Difference(
        Chart(INTERNAL_SELF, ("go again",)),
        why="Without reenter, JSON means what XState means: not left, not entered. There it is entered, but not left.",
        rule="3.13: internal needs a compound source, so SCXML leaves and enters it: its reader here writes reenter.",
        here=("l1 r1", "l2 r2", "l2 r2"),
        there=("l1 r1", "l2 r2", "l2 entered"),
    ),
}


def _ways(given: Any) -> list[dict[str, Any]]:
    ways = given if isinstance(given, list) else [given]
    return [{"to": way} if isinstance(way, str) else way for way in ways]


# Here


def definition(name: str, chart: Chart) -> dict[str, Any]:
    return {"id": _id(name), "initial": next(iter(chart.states)), "states": _states_here(chart.states)}


def _id(name: str) -> str:
    return re.sub(r"\W+", "-", name)


def _states_here(states: dict[str, State]) -> dict[str, Any]:
    return {name: _state_here(state) for name, state in states.items()}


def _state_here(state: State) -> dict[str, Any]:
    if state.get("type") == "history":
        return {"type": "history", "history": state["history"], "target": _targets_here(state["default"])}
    made: dict[str, Any] = {"type": state["type"]} if "type" in state else {}
    made |= {key: _raised_here(state[key]) for key in ("entry", "exit") if key in state}
    if "states" in state:
        made["states"] = _states_here(state["states"])
        if "type" not in state:
            made["initial"] = _first(state)
    if "on" in state:
        made["on"] = {event: [_way_here(way) for way in _ways(ways)] for event, ways in state["on"].items()}
    if "always" in state:
        made["always"] = [_way_here(way) for way in _ways(state["always"])]
    if "done" in state:
        made["onDone"] = [_way_here(way) for way in _ways(state["done"])]
    return made


def _first(state: State) -> str:
    return next(name for name, child in state["states"].items() if child.get("type") != "history")


def _targets_here(names: str) -> list[str]:
    return [f"#{name}" for name in names.split()]


def _raised_here(events: list[str]) -> list[dict[str, str]]:
    return [{"raise": event} for event in events]


def _way_here(way: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"target": _targets_here(way["to"])} if "to" in way else {}
    if "to" in way and not way.get("internal"):
        made["reenter"] = True
    if "inside" in way:
        made["guard"] = f"In('{way['inside']}')"
    if "outside" in way:
        made["guard"] = f"not In('{way['outside']}')"
    if "raise" in way:
        made["actions"] = _raised_here(way["raise"])
    return made


class Here:
    def __init__(self, engine: Engine, name: str, number: str) -> None:
        self._engine, self._name, self._number = engine, _id(name), number
        self.leaves = " ".join(engine.create(self._name, number).configuration)

    def fire(self, event: str) -> None:
        """An event that nothing listens to is refused, which leaves all as it was."""
        try:
            self.leaves = " ".join(self._engine.fire(self._name, self._number, event).configuration)
        except Refused:
            assert " ".join(self._engine.get(self._name, self._number).configuration) == self.leaves


# There


def machine_class(chart: Chart) -> type[StateChart]:
    return create_machine_class_from_definition("Chart", _states_there(chart.states), **SETTINGS)


def _states_there(states: dict[str, State]) -> dict[str, Any]:
    return {name: _state_there(name, state) for name, state in states.items() if state.get("type") != "history"}


def _state_there(name: str, state: State) -> dict[str, Any]:
    kind = state.get("type")
    made: dict[str, Any] = {"final": kind == "final", "parallel": kind == "parallel"}
    if "states" in state:
        made["states"] = _states_there(state["states"])
        made["history"] = _histories_there(state["states"])
    for key, there in (("entry", "enter"), ("exit", "exit")):
        if key in state:
            made[there] = _raiser(state[key])
    ways = [(event, way) for event, found in state.get("on", {}).items() for way in _ways(found)]
    ways += [(None, way) for way in _ways(state.get("always", []))]
    ways += [(f"done.state.{name}", way) for way in _ways(state.get("done", []))]
    made["transitions"] = [_way_there(event, way) for event, way in ways]
    return made


def _histories_there(states: dict[str, State]) -> dict[str, Any]:
    found = {name: state for name, state in states.items() if state.get("type") == "history"}
    return {
        name: {"type": state["history"], "transitions": [{"target": state["default"]}]} for name, state in found.items()
    }


def _way_there(event: str | None, way: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"event": event, "target": way.get("to"), "internal": way.get("internal", False)}
    if "inside" in way:
        made["cond"] = _active(way["inside"])
    if "outside" in way:
        made["unless"] = _active(way["outside"])
    if "raise" in way:
        made["on"] = _raiser(way["raise"])
    return made


def _active(name: str) -> Callable[..., bool]:
    def active(machine: StateChart) -> bool:
        return name in machine.configuration_values

    return active


def _raiser(events: list[str]) -> Callable[..., None]:
    def raise_them(machine: StateChart) -> None:
        for event in events:
            machine.send(event, internal=True)

    return raise_them


class There:
    def __init__(self, chart: Chart, made: type[StateChart]) -> None:
        self._order = list(_leaves(chart.states))
        self._machine = made()

    def fire(self, event: str) -> None:
        self._machine.send(event)

    @property
    def leaves(self) -> str:
        return " ".join(name for name in self._order if name in self._machine.configuration_values)


def _leaves(states: dict[str, State]) -> Iterator[str]:
    """In document order."""
    for name, state in states.items():
        if "states" in state:
            yield from _leaves(state["states"])
        elif state.get("type") != "history":
            yield name


# Together


def _runs(name: str, chart: Chart) -> list[list[str]]:
    """Those written with the chart, and random ones that are the same each time."""
    dice = random.Random(name)
    return [run.split() for run in chart.runs] + [dice.choices(chart.events, k=9) for _ in range(6)]


def _went(instance: Here | There, events: list[str]) -> tuple[str, ...]:
    went = [instance.leaves]
    for event in events:
        instance.fire(event)
        went.append(instance.leaves)
    return tuple(went)


@pytest.mark.parametrize("name", CHARTS)
def test_both_are_in_the_same_states(shared, name):
    chart = CHARTS[name]
    shared.publish(definition(name, chart))
    made = machine_class(chart)
    for number, events in enumerate(_runs(name, chart)):
        assert _went(Here(shared, name, str(number)), events) == _went(There(chart, made), events), events


@pytest.mark.parametrize("name", DIFFERENCES)
def test_what_differs_differs_as_explained(shared, name):
    difference = DIFFERENCES[name]
    (events,) = [run.split() for run in difference.chart.runs]
    made = machine_class(difference.chart)
    shared.publish(definition(name, difference.chart))
    assert difference.here != difference.there
    assert _went(Here(shared, name, "1"), events) == difference.here, difference.rule
    assert _went(There(difference.chart, made), events) == difference.there, difference.why
