"""The words of a history for the engine's own events: those of the diagram."""

from __future__ import annotations

from machines.diagrams import EventWords
from machines.engine.definitions import outline
from tests.cases import for_each

PACK = {"src": "pack_parcel", "onDone": "Packed", "onError": "Stuck"}
CHARGE = {"src": "charge", "id": "payment", "onDone": "Packing", "onError": "Stuck"}
MACHINE = outline(
    {
        "id": "m",
        "initial": "New",
        "states": {
            "New": {"after": {"45s": "Packing"}, "on": {"go": "Packing"}},
            "Packing": {"invoke": PACK, "after": {"2m": "Stuck"}},
            "Paying": {"invoke": CHARGE, "after": {"2m": "Stuck"}},
            "Packed": {"type": "final"},
            "Stuck": {},
        },
    }
)


def timer_of(state: str) -> str:
    (found,) = (s for s in MACHINE.states if s.name == state)
    return next(t.events[0] for t in found.transitions if t.cause == "after")


def test_a_timer_is_said_by_its_delay_and_by_its_state_where_several_have_that_delay() -> None:
    words = EventWords(MACHINE)
    assert words.describe(timer_of("New")) == "after 45 s"
    assert words.describe(timer_of("Packing")) == "after 2 m in Packing"
    assert words.describe(timer_of("Paying")) == "after 2 m in Paying"


@for_each(
    "event, said",
    [
        ("done.invoke.Packing", "done"),
        ("done.invoke.payment", "done payment"),
        ("error.invoke.Packing", "error of pack_parcel"),
        ("error.invoke.payment", "error of payment"),
        ("error.execution", "error of an action"),
        ("(create)", "created"),
        ("(force)", "state forced"),
        ("(migrate)", "moved to another version"),
        ("go", "go"),
        ("afternoon", "afternoon"),
        ("after.t99", "timer"),
        ("done.state.Gone", "done Gone"),
        ("error.invoke.Gone", "error of Gone"),
    ],
)
def test_events_are_said_as_on_the_diagram(event: str, said: str) -> None:
    assert EventWords(MACHINE).describe(event) == said


def test_a_move_says_the_version_before_it() -> None:
    assert EventWords(MACHINE).describe("(migrate)", {"from": 3, "to": 4}) == "moved from version 3"


def test_without_a_version_the_words_are_general() -> None:
    assert EventWords().describe("after.t1") == "timer"
    assert EventWords().describe("press") == "press"
