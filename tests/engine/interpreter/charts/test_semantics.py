"""The rules of SCXML's appendix D one by one: a tiny machine for each, what it does in which order, where it is then.

Every state says ``+name`` when it is entered and ``-name`` when it is left; transitions say their own words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from machines.engine import Refused
from tests.engine.builders import NOW, fields, machine, started
from tests.engine.dumps import unchanged

REFUSED = "(refused)"
FIELDS = fields(
    trace={"type": "array", "default": []},
    items={"type": "array", "default": ["a", "b"]},
    item={"type": "string", "default": ""},
    index={"type": "integer", "default": 0},
    n={"type": "integer", "default": 0},
    zero={"type": "integer", "default": 0},
)


def say(*words: str) -> list[Any]:
    return [tell(f"'{word}'") for word in words]


def tell(expression: str) -> dict[str, Any]:
    return {"append": {"trace": expression}}


def to(target: str | list[str], *words: str, **more: Any) -> dict[str, Any]:
    return {"target": target, "actions": say(*words), **more}


def stay(*words: str, then: Any = (), **more: Any) -> dict[str, Any]:
    """A targetless transition; ``then`` are further actions."""
    return {"actions": [*say(*words), *then], **more}


def loud(states: dict[str, Any]) -> dict[str, Any]:
    return {key: state if state.get("type") == "history" else aloud(key, state) for key, state in states.items()}


def aloud(key: str, state: dict[str, Any]) -> dict[str, Any]:
    inside = {"states": loud(state["states"])} if "states" in state else {}
    entry, leaving = [*say(f"+{key}"), *state.get("entry", [])], [*say(f"-{key}"), *state.get("exit", [])]
    return state | inside | {"entry": entry, "exit": leaving}


def chart(states: dict[str, Any], **top: Any) -> dict[str, Any]:
    whole = {"id": "chart", "states": loud(states), "context": FIELDS} | top
    return whole if top.get("type") == "parallel" else {"initial": next(iter(states))} | whole


def compound(*names: str, **states: Any) -> dict[str, Any]:
    """A state whose first state inside is its initial one."""
    inside = {name: {} for name in names} | states
    return {"initial": next(iter(inside)), "states": inside}


def parallel(**regions: Any) -> dict[str, Any]:
    return {"type": "parallel", "states": regions}


@dataclass(frozen=True)
class Case:
    """``steps``: an event ("" is the creation), what is said in its step, and the configuration afterwards."""

    states: dict[str, Any]
    steps: list[tuple[str, str, str]]
    top: dict[str, Any]


def case(states: dict[str, Any], *steps: tuple[str, str, str], **top: Any) -> Case:
    return Case(states, list(steps), top)


def two(r: dict[str, Any], s: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A parallel state of two regions, and a way out of it."""
    regions = parallel(R=compound(r={"on": r}, r2={}), S=compound(s={"on": s}, s2={}))
    return {"P": regions | more, "Z": {}}


IN_P = ("", "+P +R +r +S +s", "r s")
BEGUN = ("", "+A +A1", "A1")

ORDER = {
    "entered from the outside in, left from the inside out, the transition between": case(
        {"A": compound(A1=compound(A11={"on": {"go": to("B2", "go")}})), "B": compound("B1", "B2")},
        ("", "+A +A1 +A11", "A11"),
        ("go", "-A11 -A1 -A go +B +B2", "B2"),
    ),
    "regions are entered in document order and left in the reverse order": case(
        two({}, {}, on={"out": to("Z", "out")}), IN_P, ("out", "-s -S -r -R -P out +Z", "Z")
    ),
    "an initial transition acts between the parent and the child": case(
        {"A": compound("A1", "A2") | {"initial": {"target": "A2", "actions": say("initial")}}},
        ("", "+A initial +A2", "A2"),
    ),
    "an initial transition reaches further down": case(
        {"A": compound(A1=compound("A11", "A12")) | {"initial": {"target": "A1.A12", "actions": say("initial")}}},
        ("", "+A initial +A1 +A12", "A12"),
    ),
    "a target inside passes over the initial transition": case(
        {
            "A": {"on": {"go": "B2"}},
            "B": compound("B1", "B2") | {"initial": {"target": "B1", "actions": say("initial")}},
        },
        ("", "+A", "A"),
        ("go", "-A +B +B2", "B2"),
    ),
    "the machine's own initial transition acts first": case(
        {"A": {}, "B": {}}, ("", "initial +B", "B"), initial={"target": "B", "actions": say("initial")}
    ),
    "actions of one list run in their order": case(
        {"A": {"entry": say("one", "two"), "exit": say("three"), "on": {"go": to("B", "four", "five")}}, "B": {}},
        ("", "+A one two", "A"),
        ("go", "-A three four five +B", "B"),
    ),
}

SELECTION = {
    "the innermost state comes first": case(
        {"A": compound(A1={"on": {"go": to("A2", "inner")}}, A2={}) | {"on": {"go": to("B", "outer")}}, "B": {}},
        BEGUN,
        ("go", "-A1 inner +A2", "A2"),
        ("go", "-A2 -A outer +B", "B"),
    ),
    "a guard that does not hold leaves the event to the states around": case(
        {
            "A": compound(A1={"on": {"go": to("A2", "inner", guard="n > 0")}}, A2={})
            | {"on": {"go": to("B", "outer")}},
            "B": {},
        },
        BEGUN,
        ("go", "-A1 -A outer +B", "B"),
    ),
    "of several that are open the first in the document is taken": case(
        {
            "A": {"on": {"go": [to("B", "no", guard="n > 0"), to("C", "yes"), to("D", "late")]}},
            "B": {},
            "C": {},
            "D": {},
        },
        ("", "+A", "A"),
        ("go", "-A yes +C", "C"),
    ),
    "document order goes before how exact a descriptor is": case(
        {"A": {"on": {"*": stay("any"), "go": stay("go")}}}, ("", "+A", "A"), ("go", "any", "A")
    ),
    "an event nobody listens for is refused": case(
        {"A": {"on": {"go": "B"}}, "B": {}}, ("", "+A", "A"), ("go", "-A +B", "B"), ("go", REFUSED, "B")
    ),
    "regions move together: all are left, all act, all are entered": case(
        two({"go": to("r2", "one")}, {"go": to("s2", "two")}), IN_P, ("go", "-s -r one two +r2 +s2", "r2 s2")
    ),
    "the earlier region pre-empts by leaving": case(
        two({"go": to("Z", "one")}, {"go": to("s2", "two")}), IN_P, ("go", "-s -S -r -R -P one +Z", "Z")
    ),
    "the earlier region pre-empts by staying": case(
        two({"go": to("r2", "one")}, {"go": to("Z", "two")}),
        IN_P,
        ("go", "-r one +r2", "r2 s"),
        ("go", "-s -S -r2 -R -P two +Z", "Z"),
    ),
    "what stands further in pre-empts what stands further out": case(
        two({}, {"go": to("s2", "inner")}, on={"go": to("Z", "outer")}), IN_P, ("go", "-s inner +s2", "r s2")
    ),
    "a targetless transition is in nobody's way": case(
        two({"go": stay("one")}, {"go": to("Z", "two")}), IN_P, ("go", "-s -S -r -R -P one two +Z", "Z")
    ),
    "what two regions inherit is taken once": case(two({}, {}, on={"go": stay("once")}), IN_P, ("go", "once", "r s")),
}

INSIDE = compound("A1", "A2")
KINDS = {
    "an internal transition does not leave its state": case(
        {"A": INSIDE | {"on": {"go": to(".A2", "go")}}}, BEGUN, ("go", "-A1 go +A2", "A2")
    ),
    "an external one leaves it": case(
        {"A": INSIDE | {"on": {"go": to(".A2", "go", reenter=True)}}}, BEGUN, ("go", "-A1 -A go +A +A2", "A2")
    ),
    "one to the state itself begins anew inside": case(
        {"A": INSIDE | {"on": {"in": ".A2", "go": to("A", "go")}}},
        BEGUN,
        ("in", "-A1 +A2", "A2"),
        ("go", "-A2 go +A1", "A1"),
    ),
    "an external one to the state itself leaves it too": case(
        {"A": INSIDE | {"on": {"go": to("A", "go", reenter=True)}}}, BEGUN, ("go", "-A1 -A go +A +A1", "A1")
    ),
    "a leaf to itself stays": case({"A": {"on": {"go": to("A", "go")}}}, ("", "+A", "A"), ("go", "go", "A")),
    "a leaf to itself is left and entered where that is wanted": case(
        {"A": {"on": {"go": to("A", "go", reenter=True)}}}, ("", "+A", "A"), ("go", "-A go +A", "A")
    ),
    "a targetless one leaves and enters nothing": case(
        {"A": INSIDE | {"on": {"go": stay("go")}}}, BEGUN, ("go", "go", "A1")
    ),
    "a sibling is reached without leaving the parent": case(
        {"A": compound(A1={"on": {"go": to("A2", "go")}}, A2={})}, BEGUN, ("go", "-A1 go +A2", "A2")
    ),
    "one from inside to the parent leaves the parent": case(
        {"A": compound(A1={"on": {"go": to("A", "go")}})}, BEGUN, ("go", "-A1 -A go +A +A1", "A1")
    ),
}

WITHOUT_EVENTS = {
    "an eventless one follows at once": case(
        {"A": {"on": {"go": "B"}}, "B": {"always": to("C", "always")}, "C": {}},
        ("", "+A", "A"),
        ("go", "-A +B -B always +C", "C"),
    ),
    "an eventless one is taken at the beginning": case(
        {"A": {"always": to("B", "always")}, "B": {}}, ("", "+A -A always +B", "B")
    ),
    "an eventless one waits for its guard": case(
        {"A": {"always": to("B", guard="n == 2"), "on": {"go": stay(then=[{"set": {"n": "n + 1"}}])}}, "B": {}},
        ("", "+A", "A"),
        ("go", "", "A"),
        ("go", "-A +B", "B"),
    ),
    "an eventless one comes before an event that was raised": case(
        {
            "A": {"on": {"go": "B"}},
            "B": {"entry": [{"raise": "i"}], "always": to("C", "always"), "on": {"i": to("D", "early")}},
            "C": {"on": {"i": to("D", "i")}},
            "D": {},
        },
        ("", "+A", "A"),
        ("go", "-A +B -B always +C -C i +D", "D"),
    ),
    "an eventless one hears of the other region": case(
        {
            "P": parallel(
                R=compound(r={"on": {"go": "r2"}}, r2={}), S=compound(s={"always": to("s2", guard="In('r2')")}, s2={})
            )
        },
        IN_P,
        ("go", "-r +r2 -s +s2", "r2 s2"),
    ),
}

EVENTS = {
    "internal events come before external ones": case(
        {"A": {"on": {"go": stay("go", then=[{"send": "x"}, {"raise": "i"}]), "i": stay("i"), "x": stay("x")}}},
        ("", "+A", "A"),
        ("go", "go i x", "A"),
    ),
    "what an external event raises comes before the next one": case(
        {
            "A": {
                "on": {
                    "go": stay("go", then=[{"send": "x"}, {"send": "y"}]),
                    "x": stay("x", then=[{"raise": "i"}]),
                    "y": stay("y"),
                    "i": stay("i"),
                }
            }
        },
        ("", "+A", "A"),
        ("go", "go x i y", "A"),
    ),
    "events are raised in their order": case(
        {"A": {"on": {"go": stay(then=[{"raise": "i"}, {"raise": "j"}]), "i": stay("i"), "j": stay("j")}}},
        ("", "+A", "A"),
        ("go", "i j", "A"),
    ),
    "an event that is raised carries data": case(
        {
            "A": {
                "on": {
                    "go": stay(then=[{"raise": {"event": "i", "data": {"word": "'hello'"}}}]),
                    "i": stay(then=[tell("event.word"), tell("trigger.type")]),
                }
            }
        },
        ("", "+A", "A"),
        ("go", "hello internal", "A"),
    ),
    "an event sent to itself carries data, and says so": case(
        {
            "A": {
                "on": {
                    "go": stay(then=[{"send": {"event": "x", "data": {"word": "'hello'"}}}]),
                    "x": stay(then=[tell("event.word"), tell("trigger.type")]),
                }
            }
        },
        ("", "+A", "A"),
        ("go", "hello external", "A"),
    ),
    "an event sent to the internal queue is an internal one": case(
        {
            "A": {
                "on": {
                    "go": stay(then=[{"send": "x"}, {"send": {"event": "i", "to": "'#_internal'"}}]),
                    "i": stay("i"),
                    "x": stay("x"),
                }
            }
        },
        ("", "+A", "A"),
        ("go", "i x", "A"),
    ),
    "a raised event nobody listens for is dropped": case(
        {"A": {"on": {"go": stay("go", then=[{"raise": "i"}])}}, "B": {"on": {"i": stay("i")}}},
        ("", "+A", "A"),
        ("go", "go", "A"),
    ),
    "a descriptor takes longer names, at the dots": case(
        {"A": {"on": {"door.open": stay("open"), "door": stay("door"), "*": stay("any")}}},
        ("", "+A", "A"),
        ("door.open", "open", "A"),
        ("door.open.wide", "open", "A"),
        ("door.shut", "door", "A"),
        ("door", "door", "A"),
        ("doors", "any", "A"),
    ),
    "a star at the end changes nothing": case(
        {"A": {"on": {"door.*": stay("door")}}},
        ("", "+A", "A"),
        ("door.open", "door", "A"),
        ("door", "door", "A"),
        ("doors", REFUSED, "A"),
    ),
}

END = {"type": "final", "output": {"word": "'data'"}}
HEARD = [tell("event.word")]
DONE = {
    "a compound state is done with the data of its final state": case(
        {"A": compound(A1={"on": {"go": "F"}}, F=END) | {"onDone": {"target": "Z", "actions": HEARD}}, "Z": {}},
        BEGUN,
        ("go", "-A1 +F -F -A data +Z", "Z"),
    ),
    "a region is done with data, and the parallel state when all of them are": case(
        {
            "P": parallel(
                R=compound(r={"on": {"one": "rF"}}, rF=END) | {"onDone": {"actions": HEARD}},
                S=compound(s={"on": {"two": "sF"}}, sF={"type": "final"}) | {"onDone": stay("S-done")},
            )
            | {"onDone": to("Z", "P-done")},
            "Z": {},
        },
        IN_P,
        ("one", "-r +rF data", "rF s"),
        ("two", "-s +sF S-done -sF -S -rF -R -P P-done +Z", "Z"),
    ),
    "both regions at once end it too": case(
        {
            "P": parallel(R=compound(r={"on": {"go": "rF"}}, rF=END), S=compound(s={"on": {"go": "sF"}}, sF=END))
            | {"onDone": to("Z", "done")},
            "Z": {},
        },
        IN_P,
        ("go", "-s -r +rF +sF -sF -S -rF -R -P done +Z", "Z"),
    ),
    "a done event is found by a prefix, and by the states around": case(
        {"A": compound(A1=compound(A11={"on": {"go": "F"}}, F=END)) | {"on": {"done.state": to("Z", "done")}}, "Z": {}},
        ("", "+A +A1 +A11", "A11"),
        ("go", "-A11 +F -F -A1 -A done +Z", "Z"),
    ),
    "a final state further in does not end what is further out": case(
        {"A": compound(A1=compound(A11={"on": {"go": "F"}}, F=END)) | {"onDone": "Z"}, "Z": {}},
        ("", "+A +A1 +A11", "A11"),
        ("go", "-A11 +F", "F"),
    ),
    "a final state at the top is left at once, and stays to be seen": case(
        {"A": {"on": {"go": "F"}}, "F": END}, ("", "+A", "A"), ("go", "-A +F -F", "F"), ("go", REFUSED, "F")
    ),
    "the end leaves what is still active from the inside out": case(
        {"A": {"on": {"go": "F"}}, "F": {"type": "final"}},
        ("", "+machine +A", "A"),
        ("go", "-A +F -F -machine", "F"),
        entry=say("+machine"),
        exit=say("-machine"),
    ),
    "a parallel machine ends with the last of its regions": case(
        {
            "R": compound(r={"on": {"one": "rF"}}, rF={"type": "final"}),
            "S": compound(s={"on": {"two": "sF"}}, sF={"type": "final"}),
        },
        ("", "+R +r +S +s", "r s"),
        ("two", "-s +sF", "r sF"),
        ("one", "-r +rF -sF -S -rF -R", "rF sF"),
        ("two", REFUSED, "rF sF"),
        type="parallel",
    ),
}

TARGETS = {
    "several targets, and the region nobody named by default": case(
        {
            "A": {"on": {"go": to(["s2", "r2"], "go")}},
            "P": parallel(R=compound("r", "r2"), S=compound("s", "s2"), T=compound("t", "t2")),
        },
        ("", "+A", "A"),
        ("go", "-A go +P +R +r2 +S +s2 +T +t", "r2 s2 t"),
    ),
    "one target inside a region enters the others by default": case(
        {"A": {"on": {"go": "s2"}}, "P": parallel(R=compound("r", "r2"), S=compound("s", "s2"))},
        ("", "+A", "A"),
        ("go", "-A +P +R +r +S +s2", "r s2"),
    ),
    "leaves of regions inside regions stand in document order": case(
        {
            "P": parallel(
                R=parallel(R1=compound(a={"on": {"one": "b"}}, b={}), R2=compound("c")),
                S=compound(s={"on": {"two": "s2"}}, s2={}),
            )
        },
        ("", "+P +R +R1 +a +R2 +c +S +s", "a c s"),
        ("two", "-s +s2", "a c s2"),
        ("one", "-a +b", "b c s2"),
    ),
}


def asked(name: str) -> dict[str, Any]:
    return tell(f"'yes' if In('{name}') else 'no'")


ACTIONS = {
    "In() asks for leaves and for the states around them": case(
        two({"go": to("r2", guard="In('s2') and In('S') and In('P')")}, {"move": to("s2", guard="not In('r2')")}),
        IN_P,
        ("go", REFUSED, "r s"),
        ("move", "-s +s2", "r s2"),
        ("go", "-r +r2", "r2 s2"),
    ),
    "In() tells how far leaving has come": case(
        {"A": {"exit": [asked("A")], "on": {"go": {"target": "B", "actions": [asked("A"), asked("B")]}}}, "B": {}},
        ("", "+A", "A"),
        ("go", "-A yes no no +B", "B"),
    ),
    "In() tells how far entering has come": case(
        {"A": {"on": {"go": "B"}}, "B": compound(B1={"entry": [asked("B1")]}) | {"entry": [asked("B"), asked("B1")]}},
        ("", "+A", "A"),
        ("go", "-A +B yes no +B1 yes", "B1"),
    ),
    "if, else if, else": case(
        {
            "A": {
                "on": {
                    "go": stay(
                        then=[
                            {
                                "if": [
                                    {"guard": "n == 0", "do": say("zero")},
                                    {"guard": "n < 2", "do": say("one")},
                                    {"do": say("more")},
                                ]
                            },
                            {"set": {"n": "n + 1"}},
                        ]
                    )
                }
            }
        },
        ("", "+A", "A"),
        ("go", "zero", "A"),
        ("go", "one", "A"),
        ("go", "more", "A"),
    ),
    "foreach, with what it is at and where": case(
        {
            "A": {
                "on": {
                    "go": stay(
                        then=[
                            {
                                "foreach": {
                                    "in": "items",
                                    "item": "item",
                                    "index": "index",
                                    "do": [tell("item"), tell("index")],
                                }
                            },
                            *say("after"),
                        ]
                    )
                }
            }
        },
        ("", "+A", "A"),
        ("go", "a 0 b 1 after", "A"),
    ),
}


def remembering(**history: Any) -> dict[str, Any]:
    """A, of two levels, with a history state, beside B."""
    a1 = compound(a={"on": {"next": "b"}}, b={})
    inside = {"A1": a1 | {"on": {"over": "A2"}}, "A2": {}, "h": {"type": "history"} | history}
    return {"B": {"on": {"in": "A", "back": to("h", "back")}}, "A": compound(**inside) | {"on": {"out": "B"}}}


REGIONS = {
    "B": {"on": {"in": "P", "back": "h"}},
    "P": {
        "type": "parallel",
        "on": {"out": "B"},
        "states": {
            "R": compound(r={"on": {"one": "r2"}}, r2={}),
            "S": compound(s={"on": {"two": "s2"}}, s2={}),
            "h": {"type": "history", "history": "deep"},
        },
    },
}
CAME = [("", "+B", "B"), ("in", "-B +A +A1 +a", "a"), ("next", "-a +b", "b"), ("out", "-b -A1 -A +B", "B")]
HISTORY = {
    "shallow, of the state inside, whatever was active further in": case(
        remembering(), *CAME, ("back", "-B back +A +A1 +a", "a")
    ),
    "deep, of the leaf": case(remembering(history="deep"), *CAME, ("back", "-B back +A +A1 +b", "b")),
    "shallow, of another child than the initial one": case(
        remembering(),
        *CAME[:3],
        ("over", "-b -A1 +A2", "A2"),
        ("out", "-A2 -A +B", "B"),
        ("back", "-B back +A +A2", "A2"),
    ),
    "the latest time counts": case(
        remembering(history="deep"),
        *CAME,
        ("in", "-B +A +A1 +a", "a"),
        ("out", "-a -A1 -A +B", "B"),
        ("back", "-B back +A +A1 +a", "a"),
    ),
    "shallow, never left before: its default, with its actions": case(
        remembering(target={"target": "A2", "actions": say("default")}),
        ("", "+B", "B"),
        ("back", "-B back +A default +A2", "A2"),
    ),
    "deep, never left before: a default further in": case(
        remembering(history="deep", target="A1.b"), ("", "+B", "B"), ("back", "-B back +A +A1 +b", "b")
    ),
    "a default is not acted upon once there is a record": case(
        remembering(history="deep", target={"target": "A2", "actions": say("default")}),
        *CAME,
        ("back", "-B back +A +A1 +b", "b"),
    ),
    "without a default of its own, as the parent begins": case(
        remembering(), ("", "+B", "B"), ("back", "-B back +A +A1 +a", "a")
    ),
    "deep, of every region": case(
        REGIONS,
        ("", "+B", "B"),
        ("in", "-B +P +R +r +S +s", "r s"),
        ("two", "-s +s2", "r s2"),
        ("out", "-s2 -S -r -R -P +B", "B"),
        ("back", "-B +P +R +r +S +s2", "r s2"),
    ),
}

BROKEN = {"set": {"n": "1 / zero"}}
CAUGHT = {"error.execution": stay("error"), "error.communication": stay("lost")}
ERRORS = {
    "an action that fails ends its list; the step goes on, then the error comes": case(
        {"A": {"on": {"go": {"target": "B", "actions": [*say("go"), BROKEN, *say("never")]}}}, "B": {"on": CAUGHT}},
        ("", "+A", "A"),
        ("go", "-A go +B error", "B"),
    ),
    "a guard that fails does not hold, and says so": case(
        {"A": {"on": {"go": [to("C", guard="1 / zero > 0"), to("B", "go")]}}, "B": {"on": CAUGHT}, "C": {}},
        ("", "+A", "A"),
        ("go", "-A go +B error", "B"),
    ),
    "the error stands in line with other internal events": case(
        {"A": {"on": {"go": stay(then=[{"raise": "i"}, BROKEN]), "i": stay("i")} | CAUGHT}},
        ("", "+A", "A"),
        ("go", "i error", "A"),
    ),
    "the error is found by a prefix": case(
        {"A": {"on": {"go": stay(then=[BROKEN]), "error": stay("any")}}}, ("", "+A", "A"), ("go", "any", "A")
    ),
    "errors nobody listens for are dropped where errors are events": case(
        {"A": {"on": {"go": {"target": "B", "actions": [BROKEN]}}}, "B": {}},
        ("", "+A", "A"),
        ("go", "-A +B", "B"),
        errors="raise",
    ),
    "where they are not, the step is refused": case(
        {"A": {"on": {"go": {"target": "B", "actions": [BROKEN]}, "on": stay("on")}}, "B": {}},
        ("", "+A", "A"),
        ("go", REFUSED, "A"),
        ("on", "on", "A"),
    ),
    "a send that has nobody to go to is told in the same step": case(
        {
            "A": {
                "on": {"go": to("B", "go") | {"actions": [{"send": {"event": "x", "to": "'#_parent'"}}, *say("go")]}}
            },
            "B": {"on": CAUGHT},
        },
        ("", "+A", "A"),
        ("go", "-A go +B lost", "B"),
    ),
}

CASES = ORDER | SELECTION | KINDS | WITHOUT_EVENTS | EVENTS | DONE | TARGETS | ACTIONS | HISTORY | ERRORS


@pytest.mark.parametrize("rule", CASES)
def test_rule(engine, rule):
    case = CASES[rule]
    name = started(engine, chart(case.states, **case.top)).machine
    said = 0
    for event, words, configuration in case.steps:
        if words == REFUSED:
            with unchanged(engine), pytest.raises(Refused):
                engine.fire(name, "x", event, now=NOW)
        elif event:
            engine.fire(name, "x", event, now=NOW)
        instance = engine.get(name, "x")
        trace = instance.data["trace"]
        new = " ".join(str(word) for word in trace[said:])
        assert (event, new, " ".join(instance.configuration)) == (event, words.replace(REFUSED, ""), configuration)
        said = len(trace)


def test_an_instance_is_done_when_a_final_state_at_the_top_is_entered_and_not_before(engine):
    inside = compound(A1={"on": {"go": "F"}}, F=END) | {"on": {"end": "Z"}}
    started(engine, chart({"A": inside, "Z": END}))
    assert not engine.fire("chart", "x", "go", now=NOW).done
    assert engine.fire("chart", "x", "end", now=NOW).done


def test_a_message_to_an_instance_that_is_not_there_comes_back_as_an_error(engine):
    send = {"send": {"event": "x", "to": {"machine": "chart", "id": "'nobody'"}, "id": "s1"}}
    lost = {"actions": [*say("lost"), tell("trigger.sendid")]}
    started(engine, chart({"A": {"on": {"go": stay("go", then=[send]), "error.communication": lost}}}))
    engine.fire("chart", "x", "go", now=NOW)
    engine.tick()
    assert engine.get("chart", "x").data["trace"] == ["+A", "go", "lost", "s1"]


def restless(how: str) -> dict[str, Any]:
    """``go`` begins what never ends; ``ok`` is what it can do at any time."""
    again = {"actions": {how: "again"}}
    spin = {"on": {"again": again}, "entry": [{how: "again"}]}
    if how == "always":
        spin = {"always": {"target": "Spun", "guard": "n == 0"}}
    on = {"go": "Spin", "ok": stay("ok")}
    states = {"A": compound(A1={"on": on}), "Spin": spin, "Spun": {"always": {"target": "Spin", "guard": "n == 0"}}}
    return machine("chart", states, context=FIELDS)


@pytest.mark.parametrize("how", ["always", "raise", "send"])
def test_a_step_that_never_ends_is_refused_and_the_instance_goes_on(engine, how):
    started(engine, restless(how))
    with unchanged(engine):
        with pytest.raises(Refused) as caught:
            engine.fire("chart", "x", "go", now=NOW)
        assert "more than 1000 microsteps: the machine does not come to rest" in caught.value.explanation.error
    after = engine.fire("chart", "x", "ok", now=NOW)
    assert (after.configuration, after.data["trace"], after.revision) == (["A1"], ["ok"], 2)
