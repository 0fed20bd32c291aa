"""States, transitions and where a chart begins."""

from __future__ import annotations

from tests.cases import for_each

from .builders import definition, run


def states(body: str) -> dict:
    return definition(body)["states"]


def test_each_kind_of_state():
    found = states(
        '<state id="a"><state id="b"/><final id="c"/></state>'
        '<parallel id="p"><state id="q"/><history id="h" type="deep"><transition target="q"/></history></parallel>'
        '<final id="end"><donedata><param name="x" expr="1 + 1"/></donedata></final>'
    )
    assert found == {
        "a": {"initial": "b", "states": {"b": {}, "c": {"type": "final"}}},
        "p": {"type": "parallel", "states": {"q": {}, "h": {"type": "history", "history": "deep", "target": "q"}}},
        "end": {"type": "final", "output": {"x": "1 + 1"}},
    }


def test_where_things_begin():
    found = states(
        '<state id="a" initial="c.d"><state id="b"><state id="x"/><state id="c.d"/></state></state>'
        '<state id="e"><initial><transition target="f"><log expr="1"/></transition></initial><state id="f"/></state>'
        '<state id="g" initial="i k"><parallel id="p"><state id="h"><state id="i"/></state>'
        '<state id="j"><state id="k"/></state></parallel></state>'
    )
    assert found["a"]["initial"] == "#c.d"
    assert found["a"]["states"]["b"]["initial"] == "x"
    assert found["e"]["initial"] == {"target": "f", "actions": {"log": "1"}}
    assert found["g"]["initial"] == {"target": ["i", "k"]}


def test_the_document_begins_with_its_first_state_or_where_it_says(engine):
    body = '<state id="a"/><state id="b"><state id="c"/><state id="d"/></state>'
    assert run(engine, body).configuration == ["a"]
    assert definition(body, attributes='initial="d"')["initial"] == "d"


def test_a_history_with_content_in_its_default(engine):
    body = (
        '<state id="a"><transition event="in" target="h"/></state><state id="b"><history id="h"><transition target="d">'
        '<assign location="x" expr="x + 1"/></transition></history><state id="c"/><state id="d">'
        '<transition event="on" target="c"/></state><transition event="out" target="a"/></state>'
    )
    model = '<data id="x" expr="0"/>'
    assert run(engine, body, model, "in").configuration == ["d"]
    again = run(engine, body, model, "in", "on", "out", "in")
    assert (again.configuration, again.data) == (["c"], {"x": 1})


@for_each(
    "transition, written",
    [
        ('event="e" target="b"', {"e": "b"}),
        ('event="e.f.* g. *" target="b"', {"e.f": "b", "g": "b", "*": "b"}),
        ('event="e" target="b" cond="true"', {"e": "b"}),
        ('event="e" target="b" cond="false"', {"e": {"target": "b", "guard": "False"}}),
        ('event="e"', {"e": {}}),
        ('event="e" target="a"', {"e": {"target": "a", "reenter": True}}),
        ('event="e" target="a1"', {"e": {"target": "a1", "reenter": True}}),
        ('event="e" target="a1" type="internal"', {"e": "a1"}),
        ('event="e" target="a" type="internal"', {"e": {"target": "a", "reenter": True}}),
        ('event="e" target="b" type="internal"', {"e": "b"}),
        ('event="e" target="q r"', {"e": {"target": ["q", "r"]}}),
    ],
)
def test_transitions(transition, written):
    found = states(
        f'<state id="a"><transition {transition}/><state id="a1"/></state><state id="b"/>'
        '<parallel id="p"><state id="q"/><state id="r"/></parallel>'
    )
    assert found["a"]["on"] == written


def test_an_internal_transition_of_a_parallel_state_is_external():
    found = states('<parallel id="p"><transition event="e" target="q" type="internal"/><state id="q"/></parallel>')
    assert found["p"]["on"] == {"e": {"target": "q", "reenter": True}}


def test_transitions_without_an_event_are_taken_at_once():
    found = states('<state id="a"><transition target="b" cond="1"/><transition target="a"/></state><state id="b"/>')
    assert found["a"]["always"] == [{"target": "b", "guard": "1"}, {"target": "a", "reenter": True}]


@for_each(
    "events, event, taken",
    [
        (["a", "*", "a"], "a", "t0"),
        (["*", "a"], "a", "t0"),
        (["a.b", "a", "*"], "a.b.c", "t0"),
        (["a", "a.b"], "a.b", "t0"),
        (["x a.b", "a", "x"], "x", "t0"),
        (["b", "* b", "b"], "b", "t0"),
        (["b", "a c", "c", "a"], "c", "t1"),
        (["b", "a c", "c", "a"], "a.x", "t1"),
    ],
)
@for_each("closed", [False, True])
def test_the_first_transition_in_document_order_is_taken(engine, events, event, taken, closed):
    """``closed``: the first that fits does not hold, so the next one in the document is."""
    fits = [
        f"t{index}"
        for index, names in enumerate(events)
        if any(name == "*" or event == name or event.startswith(f"{name}.") for name in names.split())
    ]
    assert fits[0] == taken
    conditions = ["false" if closed and f"t{index}" == taken else "true" for index in range(len(events))]
    body = "".join(
        f'<transition event="{names}" cond="{condition}" target="t{index}"/>'
        for index, (names, condition) in enumerate(zip(events, conditions, strict=True))
    )
    body = f'<state id="a">{body}</state>' + "".join(f'<state id="t{index}"/>' for index in range(len(events)))
    wanted = fits[1:2] if closed else [taken]
    if wanted:
        assert run(engine, body, "", event).configuration == wanted


def test_several_blocks_stay_apart(engine):
    body = (
        '<state id="a"><onentry><assign location="x" expr="1"/><assign location="nope" expr="1"/>'
        '<assign location="x" expr="9"/></onentry><onentry><assign location="y" expr="2"/></onentry>'
        '<transition event="error.execution"><assign location="z" expr="z + 1"/></transition></state>'
    )
    found = run(engine, body, '<data id="x"/><data id="y"/><data id="z" expr="0"/>')
    assert found.data == {"x": 1, "y": 2, "z": 1}


def test_what_ends_tells_so_with_its_data(engine):
    body = (
        '<state id="a"><state id="b"><transition event="e" target="c"/></state><final id="c"><donedata>'
        '<content expr="\'done\'"/></donedata></final><transition event="done.state.a" target="d">'
        '<assign location="x" expr="_event.data"/></transition></state><state id="d"/>'
    )
    found = run(engine, body, '<data id="x"/>', "e")
    assert (found.configuration, found.data) == (["d"], {"x": "done"})


def test_transitions_of_the_whole_document(engine):
    body = (
        '<transition event="reset" target="a"/><state id="a"><transition event="e" target="b"/></state><state id="b"/>'
    )
    assert run(engine, body, "", "e", "reset").configuration == ["a"]


def test_a_condition_that_changes_a_variable(engine):
    body = '<state id="a"><transition event="e" cond="++x == 2" target="b"/></state><state id="b"/>'
    found = run(engine, body, '<data id="x" expr="1"/>', "e")
    assert (found.configuration, found.data) == (["b"], {"x": 2})
