"""Mermaid: what a diagram says is what the definition does; what cannot be said names its line."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from statemachine import State, StateChart

from machines.engine.definitions import check, outline
from machines.formats import dump, guess, load, read
from tests.cases import for_each
from tests.catalog.samples import door

from .charts import charts, order

pytestmark = pytest.mark.pure


def mermaid(body: str, head: str = "stateDiagram-v2") -> str:
    return head + "\n" + textwrap.dedent(body)


def states(text: str):
    """The states of a diagram that has to be a definition without errors."""
    definition = load(text, "mermaid")
    assert [str(found) for found in check(definition) if found.is_error] == []
    return definition["states"]


def said(text: str, code: str = "") -> list[str]:
    return [str(found) for found in read(text, "mermaid")[1] if found.code.startswith(code)]


PLAIN = """
    [*] --> Draft
    Draft --> Sent : send [total > 3] / count = count + 1; notify(total)
    Draft --> Lost : after 30 s
    Sent --> Sent : look
    Sent --> Paid : pay, settle
    Paid --> [*]
    Lost --> [*] : forget
"""


def test_arrows_have_event_guard_and_actions():
    text = mermaid(PLAIN)
    definition = load(text, "mermaid")
    assert definition["initial"] == "Draft"
    assert definition["context"] == {"total": None, "count": None}
    assert states(text) == {
        "Draft": {
            "on": {
                "send": {
                    "target": "Sent",
                    "guard": "total > 3",
                    "actions": [
                        {"set": {"count": "count + 1"}},
                        {"emit": {"type": "notify", "data": {"arguments": "'total'"}}},
                    ],
                }
            },
            "after": {"30s": "Lost"},
        },
        "Sent": {"on": {"look": {"target": "Sent", "reenter": True}, "pay": "Paid", "settle": "Paid"}},
        "Lost": {"on": {"forget": "End"}},
        "Paid": {"type": "final"},
        "End": {"type": "final"},
    }


def test_a_condition_is_a_field_that_is_false_at_first():
    text = mermaid("""
        [*] --> A
        A --> B : go [!is_ready && (has_room() || open)]
        A --> C : go [is_late]
        A --> D : go [else]
    """)
    definition = load(text, "mermaid")
    assert set(definition["context"].values()) == {False}
    assert definition["states"]["A"]["on"]["go"] == [
        {"target": "B", "guard": "not is_ready and (has_room or open)"},
        {"target": "C", "guard": "is_late"},
        "D",
    ]
    assert 'SB224 line 5, column 1: the condition "is_late"' in "\n".join(said(text, code="SB224"))
    states(text)


def test_composite_states_begin_and_end_inside():
    text = mermaid("""
        [*] --> Work
        state "The work" as Work {
            [*] --> One
            One --> Two : next
            Two --> [*]
            state Two {
                direction LR
                [*] --> Deep
                Deep --> [*] : out
            }
        }
        Work --> Done
        Work --> Work : again
        Done --> [*]
    """)
    found = states(text)
    assert list(found) == ["The work", "Done"]
    work = found["The work"]
    assert work["initial"] == "One"
    assert work["onDone"] == "Done"
    assert work["on"] == {"again": {"target": "The work", "reenter": True}}
    assert work["states"]["Two"]["onDone"] == "End"
    assert work["states"]["Two"]["states"]["Deep"]["on"] == {"out": "End 2"}
    assert work["states"]["End"] == {"type": "final"}


@pytest.mark.parametrize("line", ["--", "---"])
def test_regions_run_at_the_same_time(line):
    text = mermaid(f"""
        [*] --> Both
        state Both {{
            [*] --> a
            a --> b : go
            b --> [*]
            {line}
            state Second {{
                [*] --> c
                c --> d : go
                d --> [*]
            }}
        }}
        Both --> [*] : stop
        Both --> Ready
    """)
    both = states(text)["Both"]
    assert both["type"] == "parallel"
    assert list(both["states"]) == ["Both 1", "Second"]
    assert both["states"]["Both 1"]["states"]["b"] == {"type": "final"}
    assert both["onDone"] == "Ready"


def test_the_whole_diagram_may_have_regions():
    text = mermaid("""
        [*] --> a
        a --> b : go
        --
        [*] --> c
        c --> d : go
    """)
    definition = load(text, "mermaid")
    assert definition["type"] == "parallel"
    assert [list(region["states"]) for region in definition["states"].values()] == [["a", "b"], ["c", "d"]]
    states(text)


def test_a_choice_is_left_at_once():
    text = mermaid("""
        state pick <<choice>>
        [*] --> A
        A --> pick : go / note
        pick --> Low : if n < 0
        pick --> High : if n >= 10 / celebrate
        pick --> Middle : else
    """)
    pick = states(text)["pick"]
    assert pick == {
        "always": [
            {"target": "Low", "guard": "n < 0"},
            {"target": "High", "guard": "n >= 10", "actions": {"emit": {"type": "celebrate"}}},
            "Middle",
        ]
    }


def test_a_fork_into_regions_is_a_transition_with_several_targets():
    text = mermaid("""
        [*] --> A
        state split <<fork>>
        state meet <<join>>
        state Both {
          [*] --> a1
          a1 --> a2 : x
          --
          [*] --> b1
          b1 --> b2 : y
        }
        A --> split : go
        split --> a2
        split --> b2
        a2 --> meet : done with a
        b2 --> meet
        meet --> C
    """)
    found = states(text)
    assert found["A"]["on"]["go"] == {"target": ["a2", "b2"]}
    assert found["Both"]["onDone"] == "C"
    assert found["Both"]["states"]["Both 1"]["states"]["a2"]["on"] == {"done_with_a": "End"}
    assert found["Both"]["states"]["Both 2"]["states"]["b2"] == {"type": "final"}
    assert "meet" not in found


def test_what_runs_between_a_fork_and_its_join_is_a_parallel_state():
    text = mermaid("""
        state split <<fork>>
        state meet <<join>>
        [*] --> split
        split --> Left
        split --> Right
        Left --> More : on
        More --> meet
        Right --> meet : ready
        meet --> After
    """)
    found = states(text)
    assert found["split"]["type"] == "parallel"
    assert found["split"]["onDone"] == "After"
    left, right = found["split"]["states"].values()
    assert left["initial"] == "Left"
    assert left["states"]["More"] == {"type": "final"}
    assert right["states"] == {"Right": {"on": {"ready": "End"}}, "End": {"type": "final"}}


@for_each(
    "body, line, why",
    [
        ("split --> A\nsplit --> meet\nA --> meet", 2, "straight to a join"),
        ("split --> A\nsplit --> B\nA --> B : x", 2, "meet before a join"),
        ("split --> A\nsplit --> B\nC --> A : x", 2, "another arrow leads"),
        ("split --> A\nsplit --> B\nsplit --> [*]", 2, "leads to an end"),
        ("split --> A\nA --> meet\nB --> meet", 3, "does not join all regions"),
    ],
)
def test_forks_and_joins_that_cannot_be_said(body, line, why):
    text = f"stateDiagram-v2\nstate split <<fork>>\nstate meet <<join>>\n[*] --> split\n{body}"
    errors = said(text, code="SB141")
    assert any(why in one and f"SB141 line {line}, column 1" in one for one in errors), errors
    assert read(text, "mermaid")[0] is not None


def test_lines_in_a_state_say_what_it_does():
    text = mermaid("""
        [*] --> Busy
        state "Busy at work" as Busy
        Busy : entry / light(on)
        Busy : exit / light = 0
        Busy : do / dig a hole
        Busy : poke [awake] / shout
        Busy : It is \\ninteresting.
        Busy --> Rest
        Busy --> Broken : error
        note right of Rest : Do not disturb
        note left of Broken
          Needs
          repair
        end note
        Rest --> Broken : fall
    """)
    found = states(text)
    assert found["Busy at work"] == {
        "description": "It is\ninteresting.",
        "entry": {"emit": {"type": "light", "data": {"arguments": "'on'"}}},
        "exit": {"set": {"light": "0"}},
        "invoke": {"src": "dig_a_hole", "onDone": "Rest", "onError": "Broken"},
        "on": {"poke": {"guard": "awake", "actions": {"emit": {"type": "shout"}}}},
    }
    assert found["Rest"] == {"description": "Do not disturb", "on": {"fall": "Broken"}}
    assert found["Broken"]["description"] == "Needs\nrepair"


def test_states_called_h_are_histories():
    text = mermaid("""
        [*] --> Work
        state Work {
          [*] --> a
          a --> b : go
          state "H" as shallow
          state "H*" as deep
          deep --> b
        }
        Work --> Off : pause
        Off --> shallow : back
        Off --> deep : resume
    """)
    found = states(text)
    assert found["Off"]["on"] == {"back": "H", "resume": "H*"}
    assert found["Work"]["states"]["H"] == {"type": "history"}
    assert found["Work"]["states"]["H*"] == {"type": "history", "history": "deep", "target": "b"}


def test_what_is_only_for_the_eye_is_passed_over():
    text = textwrap.dedent("""
        ---
        title: "Night shift"
        config:
          look: neo
        ---
        %% a comment
        stateDiagram-v2
            direction LR
            accTitle: words
            accDescr {
                more words --> of it
            }
            classDef hot fill:#f00,color:white
            [*] --> A:::hot
            A --> B : go
            class B hot
            style A fill:#fff
            Class B hot
    """)
    definition = load(text, "mermaid")
    assert definition["id"] == "Night-shift"
    assert definition["states"] == {"A": {"on": {"go": "B"}}, "B": {}}


def test_an_arrow_without_a_label_gets_an_event_and_a_finding():
    text = mermaid("""
        [*] --> A
        A --> The_end
        A --> [*]
    """)
    assert states(text)["A"]["on"] == {"to.The_end": "The_end", "to.End": "End"}
    assert 'SB224 line 4, column 1: the arrow has no event; it is now "to.The_end"' in said(text, code="SB224")[0]


def test_without_a_start_the_first_state_nothing_leads_to_begins():
    text = mermaid("""
        Second --> Third : on
        First --> Second : on
    """)
    assert load(text, "mermaid")["initial"] == "First"
    assert any("the diagram has no start" in one for one in said(text))


def test_several_starts():
    asking = mermaid("[*] --> A : by mail\n[*] --> B : by phone\nA --> B : go")
    assert states(asking)["Start"] == {"on": {"by_mail": "A", "by_phone": "B"}}
    choosing = mermaid("[*] --> A : [late]\n[*] --> B\nA --> B : go")
    assert states(choosing)["Start"] == {"always": [{"target": "A", "guard": "late"}, "B"]}


def test_names_are_changed_only_where_they_must_be():
    text = mermaid("""
        [*] --> a
        state "Version 1.2" as a
        state "Same" as b
        state "Same" as c
        a --> b : 🔄 Try again!
        b --> c : done.soon
    """)
    found = states(text)
    assert list(found) == ["Version 1_2", "Same", "c"]
    assert found["Version 1_2"]["on"] == {"🔄_Try_again!": "Same"}
    assert found["Same"]["on"] == {"_done.soon": "c"}


@for_each(
    "text, where",
    [
        (mermaid("[*] --> A\nA --> B C\n"), "SB131 line 3"),
        (mermaid("state A {\n[*] --> B\n"), "SB131 line 2"),
        (mermaid("[*] --> A\n}\n"), "SB131 line 3"),
        (mermaid("note left of A\nnever ends\n"), "SB131 line 2"),
        ("flowchart LR\nA --> B", "SB131 line 1, column 1: this is a flowchart"),
        ("A --> B", "SB131 definition: no state diagram of Mermaid"),
        ("stateDiagram-v2", "SB131 definition: no states"),
        (mermaid("state A <<history>>\n[*] --> A"), "SB131 line 2"),
        (mermaid("[*] --> A\nA -[hidden]-> B"), "SB131 line 3"),
        (mermaid("[*] --> A\nstate B {\n  [*] --> A\n}\nstate A"), "SB123 line 4"),
        (mermaid("state A {\n" * 40 + "}\n" * 40), "SB111 line"),
        (mermaid("\n".join(f"a{n} --> b{n}" for n in range(600))), "SB111 line"),
        (mermaid("x" * 5000), "SB111 line 2"),
    ],
)
def test_what_cannot_be_read_names_its_line(text, where):
    definition, findings = read(text, "mermaid")
    errors = [str(found) for found in findings if found.is_error]
    assert errors, definition
    assert errors[0].startswith(where), errors


def test_what_is_written_is_read_as_the_same_chart():
    text, _ = dump(order(), "mermaid")
    found = load(text, "mermaid")
    assert [str(one) for one in check(found) if one.is_error] == []
    assert {**found["states"]["Draft"], "entry": None} == {
        "entry": None,
        "exit": {"set": {"n": "0"}},
        "on": {
            "note": {"actions": {"set": {"note": "event.text"}}},
            "send": [{"target": "Checks", "guard": "n < 3", "actions": {"set": {"n": "n + 1"}}}, "Lost"],
            "both": {"target": ["packed", "paid"]},
            "back": "H*",
        },
        "after": {"30s": "Lost"},
    }
    checks = found["states"]["Checks"]
    assert checks["type"] == "parallel"
    assert checks["onDone"] == "Done"
    assert checks["states"]["Pay"]["states"]["paying"]["invoke"] == {
        "src": "charge",
        "onDone": "paid",
        "onError": "Lost",
    }
    assert set(load(dump(door(), "mermaid")[0], "mermaid")["states"]) == {"Shut", "Open"}


def test_a_class_of_python_statemachine_is_read_as_the_mermaid_that_it_writes():
    class Order(StateChart):
        class work(State.Compound):
            draft = State(initial=True)
            placed = State(final=True)
            place = draft.to(placed, cond="paid and not blocked")

        shipped = State(final=True)
        ship = work.to(shipped)

    definition = load(format(Order, "mermaid"), "mermaid")
    assert [str(found) for found in check(definition) if found.is_error] == []
    work = definition["states"]["Work"]
    assert work["states"]["Draft"]["on"] == {"Place": {"target": "Placed", "guard": "paid and not blocked"}}
    assert (work["initial"], work["on"]["Ship"]) == ("Draft", "Shipped")


@settings(max_examples=60)
@given(chart=charts())
def test_random_charts_that_are_written_are_read(chart):
    if any(finding.is_error for finding in check(chart)):
        return
    text, _ = dump(chart, "mermaid")
    definition, findings = read(text, "mermaid")
    assert definition is not None, findings
    assert len(outline(definition).states) >= len(outline(chart).states)


@pytest.mark.parametrize(
    ("text", "format"),
    [
        (mermaid(PLAIN), "mermaid"),
        (f"---\ntitle: x\n---\n%% c\n{mermaid(PLAIN)}", "mermaid"),
        (f"```mermaid\n{mermaid(PLAIN)}```\n", "mermaid"),
        ("stateDiagram: yes", "yaml"),
    ],
)
def test_diagrams_are_recognised(text, format):
    assert guess(text) == format
