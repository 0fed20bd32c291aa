"""Executable content and data: what each element becomes, and what it does on a real server."""

from __future__ import annotations

import pytest

from machines.formats import load, read
from tests.cases import for_each

from .builders import definition, document, findings, run, started


def entry(content: str, model: str = '<data id="x"/><data id="y"/>') -> object:
    return definition(f'<state id="a"><onentry>{content}</onentry></state>', model)["states"]["a"]["entry"]


CONTENT = {
    '<raise event="e.f"/>': {"raise": "e.f"},
    '<log expr="x"/>': {"log": "x"},
    '<log label="L" expr="x"/>': {"log": {"label": "'L'", "value": "x"}},
    '<log label="L"/>': {"log": "'L'"},
    '<assign location="x" expr="1"/>': {"set": {"x": "1"}},
    '<assign location="x.a[0]" expr="1"/>': {"set": {"x": "put(x, 'a', put(x.a, 0, 1))"}},
    '<assign location="x">{"a": ["b", 1, null]}</assign>': {"set": {"x": {"a": ["'b'", 1, None]}}},
    '<assign location="x">  some \n text </assign>': {"set": {"x": "'some text'"}},
    '<assign location="x"/>': {"set": {"x": "None"}},
    '<assign location="_event" expr="1"/>': {"log": "fail('_event is read-only')"},
    '<assign location="_name" expr="1"/>': {"log": "fail('_name is read-only')"},
    '<assign location="z" expr="1"/>': {"log": "fail('z is not declared')"},
    '<assign location="1 + 1" expr="1"/>': {"log": "fail('1 + 1 is no place to assign to')"},
    '<assign location="" expr="1"/>': {"log": "fail('not ECMAScript: ')"},
    '<if cond="x"><log expr="1"/><elseif cond="y"/><log expr="2"/><else/><log expr="3"/></if>': {
        "if": [
            {"guard": "x", "do": [{"log": "1"}]},
            {"guard": "y", "do": [{"log": "2"}]},
            {"do": [{"log": "3"}]},
        ]
    },
    '<foreach array="[1]" item="x" index="y"><log expr="x"/></foreach>': {
        "foreach": {"in": "[1]", "item": "x", "index": "y", "do": [{"log": "x"}]}
    },
    '<foreach array="7" item="x"/>': {"log": "fail('7 is no array')"},
    '<foreach array="{a: 1}" item="x"/>': {"log": "fail('{a: 1} is no array')"},
    '<foreach array="[1]" item="\'continue\'"/>': {"log": "fail(\"'continue' is no variable\")"},
    '<foreach array="[1]" item="continue"/>': {"log": "fail('continue is no variable')"},
    "<script>x = 1; y = 2</script>": [{"set": {"x": "1"}}, {"set": {"y": "2"}}],
    # sends
    '<send event="e"/>': {"send": "e"},
    "<send eventexpr=\"'e'\"/>": {"send": "e"},
    '<send eventexpr="x"/>': {"send": {"event": {"expr": "x"}}},
    '<send event="e" target="#_internal"/>': {"send": {"event": "e", "to": "'#_internal'"}},
    '<send event="e" targetexpr="x"/>': {"send": {"event": "e", "to": "x"}},
    '<send event="e" type="scxml"/>': {"send": "e"},
    '<send event="e" type="http://www.w3.org/TR/scxml/#SCXMLEventProcessor"/>': {"send": "e"},
    '<send event="e" type="27"/>': {"send": {"event": "e", "type": "'27'"}},
    '<send event="e" typeexpr="x"/>': {"send": {"event": "e", "type": "x"}},
    '<send event="e" delay="1.5s"/>': {"send": {"event": "e", "delay": 1500}},
    '<send event="e" delay=".2s"/>': {"send": {"event": "e", "delay": 200}},
    '<send event="e" delay="300ms" id="i"/>': {"send": {"event": "e", "delay": 300, "id": "i"}},
    '<send event="e" delay="0s"/>': {"send": "e"},
    '<send event="e" delayexpr="x"/>': {"send": {"event": "e", "delay": {"expr": "x"}}},
    '<send event="e" delay="soon"/>': {"log": "fail(\"'soon' is no delay\")"},
    '<send event="e" idlocation="x"/>': {"send": {"event": "e", "idlocation": "x"}},
    '<send event="e" idlocation="z"/>': {"log": "fail('idlocation: z is no variable')"},
    '<send event="e" namelist="x y"/>': {"send": {"event": "e", "data": {"x": "x", "y": "y"}}},
    '<send event="e" namelist="z"/>': {"send": {"event": "e", "data": {"z": "fail('z is not declared')"}}},
    '<send event="e"><param name="p" expr="1"/><param name="q" location="x.a"/></send>': {
        "send": {"event": "e", "data": {"p": "1", "q": "x.a"}}
    },
    '<send event="e"><content>{"a": "b"}</content></send>': {"send": {"event": "e", "data": {"a": "'b'"}}},
    '<send event="e"><content> 21 </content></send>': {"send": {"event": "e", "data": 21}},
    '<send event="e"><content>a  b</content></send>': {"send": {"event": "e", "data": "'a b'"}},
    '<send event="e"><content expr="x"/></send>': {"send": {"event": "e", "data": "x"}},
    "<send/>": {"log": "fail('an event without a name cannot be sent')"},
    '<cancel sendid="i"/>': {"cancel": "i"},
    '<cancel sendidexpr="x"/>': {"cancel": {"expr": "x"}},
}


@for_each("content", CONTENT)
def test_content_becomes(content):
    assert entry(content) == CONTENT[content]


@pytest.mark.parametrize("type", ["http://www.w3.org/TR/scxml/#BasicHTTPEventProcessor", "basichttp"])
def test_nothing_is_sent_over_http(type):
    found = findings(f'<state id="a"><onentry><send event="e" type="{type}" target="http://x"/></onentry></state>')
    assert [one.split()[0] for one in found] == ["SB142"]


@pytest.mark.parametrize(
    "content",
    [
        '<send event="e"><content><book title="x"/></content></send>',
        '<assign location="x"><book/></assign>',
        "<log expr=\"x.getElementsByTagName('book')\"/>",
    ],
)
def test_xml_is_no_value(content):
    found = findings(f'<state id="a"><onentry>{content}</onentry></state>', '<data id="x"/>')
    assert [one.split()[0] for one in found] == ["SB143"]


MODELS = {
    '<data id="x"/>': {},
    '<data id="x" expr="1"/>': {"x": 1},
    '<data id="x">[1, {"a": null}]</data>': {"x": [1, {"a": None}]},
    '<data id="x">\n  two\n  words </data>': {"x": "two words"},
    '<data id="x" expr="undefined"/>': {},
    '<data id="x" expr="[1, \'a\', {b: true}]"/>': {"x": [1, "a", {"b": True}]},
    '<data id="x" expr="-0.5"/>': {"x": -0.5},
    '<data id="x" expr="1 + 1"/><data id="y" expr="x + 1"/>': {"x": 2, "y": 3},
    '<data id="x" expr="return"/><data id="y" expr="2"/>': {"y": 2},
    '<data id="x" expr="nope"/><data id="y" expr="Math.max(1, 2)"/>': {"y": 2},
}


@for_each("model", MODELS)
def test_data_begins_with(engine, model):
    found = run(engine, '<state id="a"/>', model).data
    assert {name: value for name, value in found.items() if value is not None} == MODELS[model]


def test_data_that_cannot_be_had_is_told_before_anything_else(engine):
    body = (
        '<state id="a"><onentry><raise event="later"/></onentry><transition event="error.execution" target="b"/>'
        '<transition event="later" target="c"/></state><state id="b"/><state id="c"/>'
    )
    assert run(engine, body, '<data id="x" expr="return"/>').configuration == ["b"]


def test_values_brought_along_hold(engine):
    found = definition('<state id="a"/>', '<data id="x" expr="1"/><data id="y" expr="1 + 1"/>')
    assert started(engine, found, x=5, y=6).data == {"x": 5, "y": 6}


LATE = (
    '<state id="a"><onentry><assign location="seen" expr="typeof x"/></onentry>'
    '<transition event="e" target="b"/></state>'
    '<state id="b"><datamodel><data id="x" expr="1"/></datamodel><onentry><assign location="x" expr="x + 1"/></onentry>'
    '<transition event="e" target="a"/></state>'
)


@pytest.mark.parametrize(("binding", "seen"), [("late", "undefined"), ("early", "number")])
def test_data_is_bound_at_the_start_or_with_its_state(engine, binding, seen):
    found = definition(LATE, '<data id="seen"/>', f'binding="{binding}"')
    instance = started(engine, found)
    assert instance.data["seen"] == seen
    for _ in range(3):
        instance = engine.fire(instance.machine, "x", "e")
    assert instance.data["x"] == 3  # bound once, however often the state is entered


def test_data_and_scripts_from_files(engine, tmp_path):
    (tmp_path / "numbers.json").write_text("[1, 2]")
    (tmp_path / "words.txt").write_text("  a \n b ")
    (tmp_path / "code.js").write_text("y = x.length + 1;")
    (tmp_path / "tree.xml").write_text("<a/>")
    model = '<data id="x" src="file:numbers.json"/><data id="w" src="words.txt"/><data id="y"/>'
    text = document('<script src="code.js"/><state id="a"/>', model)
    assert started(engine, load(text, "scxml", base=tmp_path)).data == {"x": [1, 2], "w": "a b", "y": 3}
    assert {one.code for one in read(text, "scxml")[1]} == {"SB141"}
    found = read(document('<state id="a"/>', '<data id="x" src="tree.xml"/>'), "scxml", tmp_path)[1]
    assert [one.code for one in found] == ["SB143"]
    missing = document('<state id="a"><transition event="error" target="b"/></state><state id="b"/>', model)
    (tmp_path / "words.txt").unlink()
    assert started(engine, load(missing, "scxml", base=tmp_path)).configuration == ["b"]


def test_kinds_are_settled_over_the_whole_document():
    body = (
        '<state id="a"><onentry><assign location="x" expr="x + 1"/></onentry>'
        '<transition event="e"><assign location="x" expr="\'text\'"/></transition></state>'
    )
    assert definition(body, '<data id="x" expr="1"/>')["states"]["a"]["entry"] == {"set": {"x": "plus(x, 1)"}}
    body = body.replace("'text'", "_event.data.n")
    assert definition(body, '<data id="x" expr="1"/>')["states"]["a"]["entry"] == {"set": {"x": "plus(x, 1)"}}
    body = body.replace("_event.data.n", "Math.floor(_event.data.n)")
    assert definition(body, '<data id="x" expr="1"/>')["states"]["a"]["entry"] == {"set": {"x": "x + 1"}}


def test_a_loop_walks_over_a_copy(engine):
    body = (
        '<state id="a"><onentry><foreach array="l" item="one" index="at">'
        '<assign location="l" expr="l.concat(one * 10)"/>'
        '<assign location="sum" expr="sum + at"/></foreach></onentry></state>'
    )
    found = run(engine, body, '<data id="l" expr="[1, 2]"/><data id="sum" expr="0"/>').data
    assert found == {"l": [1, 2, 10, 20], "sum": 1, "one": 2, "at": 1}


@for_each(
    "text",
    ["null + 1", "undefined - 1", "(5).trim()", "[].toUpperCase()", "-null", "true && (5).trim()", "Math.x", "In()"],
)
def test_what_could_never_be_worth_anything_fails_when_it_runs(engine, text):
    body = (
        f'<state id="a"><onentry><if cond="false"><log expr="{text.replace("&", "&amp;")}"/></if></onentry>'
        f'<transition event="e"><log expr="{text.replace("&", "&amp;")}"/></transition>'
        '<transition event="error.execution" target="b"/></state><state id="b"/>'
    )
    assert run(engine, body).configuration == ["a"]
    assert run(engine, body, "", "e").configuration == ["b"]


def test_sends_arrive(engine):
    body = (
        '<state id="a"><onentry><send event="second" namelist="x"/><raise event="first"/></onentry>'
        '<transition event="first"><assign location="order" expr="order + \'1\'"/></transition>'
        '<transition event="second" cond="_event.data.x === 5" target="b">'
        '<assign location="order" expr="order + \'2\'"/>'
        "<send eventexpr=\"'la' + 'ter'\" delayexpr=\"'1s'\" id=\"timer\"/></transition></state>"
        '<state id="b"><transition event="stop"><cancel sendid="timer"/></transition>'
        '<transition event="later" target="c"/>'
        '</state><state id="c"/>'
    )
    found = definition(body, '<data id="x" expr="5"/><data id="order" expr="\'\'"/>')
    instance = started(engine, found)
    assert (instance.configuration, instance.data["order"]) == (["b"], "12")
    assert len(engine.get(instance.machine, "x").timers) == 1
    assert engine.fire(instance.machine, "x", "stop").timers == []
