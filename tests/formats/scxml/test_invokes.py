"""Documents that run other documents."""

from __future__ import annotations

from machines.engine.definitions import check
from machines.formats import load, read
from tests.cases import for_each

from .builders import definition, document, findings, started

CHILD = (
    '<scxml xmlns="http://www.w3.org/2005/07/scxml" datamodel="ecmascript" name="child"><datamodel>'
    '<data id="x" expr="1"/>'
    '<data id="y" expr="x + 1"/></datamodel><state id="c"><transition event="finish" target="done"/></state>'
    '<final id="done"><donedata><param name="sum" expr="x + y"/></donedata></final></scxml>'
)


def invoke(
    attributes: str = "", inside: str = f"<content>{CHILD}</content>", model: str = '<data id="v" expr="5"/>'
) -> dict:
    found = definition(f'<state id="a"><invoke {attributes}>{inside}</invoke></state>', model)
    assert [one for one in check(found) if one.is_error] == []
    return found["states"]["a"]["invoke"]


def test_a_document_inside_becomes_a_machine_of_its_own():
    found = definition(f'<state id="a"><invoke id="i"><content>{CHILD}</content></invoke></state>')
    assert found["states"]["a"]["invoke"] == {"src": "machine:child", "id": "i"}
    assert found["machines"]["child"]["initial"] == {
        "target": "c",
        "actions": {"block": [{"if": [{"guard": "y == None", "do": [{"set": {"y": "plus(x, 1)"}}]}]}]},
    }
    assert found["machines"]["child"]["states"]["done"]["output"] == {"sum": "plus(x, y)"}


@for_each(
    "attributes, inside, part",
    [
        ("", "", {"src": "machine:child", "id": "a.1"}),
        ('type="scxml" autoforward="true"', "", {"autoforward": True}),
        ('type="http://www.w3.org/TR/scxml/"', "", {"src": "machine:child"}),
        ('idlocation="v"', "", {"id": "a.1", "idlocation": "v"}),
        ("", '<param name="x" expr="v + 1"/><param name="unknown" expr="v"/>', {"input": {"x": "v + 1"}}),
        ('namelist="v"', "", {"src": "machine:child"}),
        (
            "",
            '<finalize><assign location="v" expr="_event.data.n"/></finalize>',
            {"finalize": [{"set": {"v": "event.n"}}]},
        ),
        (
            "",
            '<param name="x" location="v"/><finalize/>',
            {
                "input": {"x": "v"},
                "finalize": [{"if": [{"guard": "has(event, 'x')", "do": [{"set": {"v": "event.x"}}]}]}],
            },
        ),
        ("", '<param name="x" expr="nope"/>', {"input": {"x": "fail('nope is not declared')"}}),
        (
            "",
            '<param name="unknown" expr="nope"/>',
            {"src": {"expr": "item([instance.machine + '.child', fail('nope is not declared')], 0)"}},
        ),
        (
            'typeexpr="v"',
            "",
            {
                "src": {
                    "expr": "instance.machine + '.child' if v in ['scxml', 'http://www.w3.org/TR/scxml/', "
                    "'http://www.w3.org/TR/scxml'] else fail('this cannot be invoked')"
                }
            },
        ),
        ('type="rocket"', "", {"src": {"expr": "fail('rocket cannot be invoked')"}, "id": "a.1"}),
    ],
)
def test_an_invoke_becomes(attributes, inside, part):
    found = invoke(attributes, f"{inside}<content>{CHILD}</content>")
    assert {key: found.get(key) for key in part} == part


def test_two_of_one_state_have_ids_of_their_own():
    inside = f"<content>{CHILD}</content>"
    found = definition(f'<state id="a"><invoke>{inside}</invoke><invoke>{inside}</invoke></state>')
    assert [one["id"] for one in found["states"]["a"]["invoke"]] == ["a.1", "a.2"]
    assert list(found["machines"]) == ["child", "child2"]


def test_documents_in_files(tmp_path):
    (tmp_path / "sub.scxml").write_text(CHILD)
    (tmp_path / "self.scxml").write_text(document('<state id="a"><invoke src="self.scxml"/></state>'))
    (tmp_path / "bad.scxml").write_text("<scxml>\n<stat/></scxml>")
    text = document('<state id="a"><invoke src="file:sub.scxml"/></state>')
    assert load(text, "scxml", base=tmp_path)["states"]["a"]["invoke"]["src"] == "machine:sub"
    assert [one.code for one in read(text, "scxml")[1]] == ["SB141"]
    found = read((tmp_path / "self.scxml").read_text(), "scxml", tmp_path)[1]
    assert any("invokes itself" in one.message for one in found)
    found = read(document('<state id="a"><invoke src="bad.scxml"/></state>'), "scxml", tmp_path)[1]
    assert str(found[0]).startswith("SB144 bad.scxml line")


def test_a_file_whose_name_is_calculated(tmp_path):
    (tmp_path / "sub.scxml").write_text(CHILD)
    body = (
        '<state id="a"><onentry><assign location="v" expr="\'file:sub.scxml\'"/></onentry><invoke srcexpr="v"/></state>'
    )
    found = load(document(body, '<data id="v"/>'), "scxml", base=tmp_path)
    assert "instance.machine + '.sub' if v == 'file:sub.scxml'" in found["states"]["a"]["invoke"]["src"]["expr"]


def test_a_child_is_given_values_and_gives_back_what_it_ends_with(engine):
    body = (
        f'<state id="a"><invoke id="i" autoforward="true"><param name="x" expr="v * 2"/>'
        f"<content>{CHILD}</content></invoke>"
        '<transition event="done.invoke.i" target="b">'
        '<assign location="v" expr="_event.data.sum"/></transition></state>'
        '<state id="b"/>'
    )
    instance = started(engine, definition(body, '<data id="v" expr="5"/>'))
    engine.fire(instance.machine, "x", "finish")
    engine.tick()
    found = engine.get(instance.machine, "x")
    assert (found.configuration, found.data) == (["b"], {"v": 21})


def test_a_document_kept_in_a_variable(engine):
    empty = '<scxml xmlns="http://www.w3.org/2005/07/scxml"><final id="end"/></scxml>'
    body = (
        f'<state id="a"><onentry><assign location="v">{empty}</assign></onentry><invoke id="i">'
        f'<content expr="v"/></invoke>'
        '<transition event="done.invoke.i" target="b"/></state><state id="b"/>'
    )
    instance = started(engine, definition(body, '<data id="v"/>'))
    engine.tick()
    assert engine.get(instance.machine, "x").configuration == ["b"]


def test_a_document_that_is_not_there_fails_when_it_is_invoked(engine, tmp_path):
    body = '<state id="a"><invoke {}="{}"/><transition event="error.execution" target="b"/></state><state id="b"/>'
    for attribute, value in (("src", "nope.scxml"), ("srcexpr", "'x' + 1"), ("srcexpr", "nope.it")):
        text = document(body.format(attribute, value))
        assert started(engine, load(text, "scxml", base=tmp_path)).configuration == ["b"]


def test_documents_too_deep_inside_one_another_are_refused():
    text = '<state id="a"/>'
    for _ in range(8):
        text = f'<state id="a"><invoke><content><scxml xmlns="http://www.w3.org/2005/07/scxml">{text}</scxml></content></invoke></state>'
    assert any(one.startswith("SB111") for one in findings(text))
