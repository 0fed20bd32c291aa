"""The document as XML: what is refused before anything of it is understood, and what its parts are called here."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines.engine import DefinitionError, limits
from machines.formats import load, read
from machines.formats.scxml.elements import MAX_DEPTH
from tests.cases import for_each
from tests.engine.definitions.finding_codes import CODES

from .builders import definition, document, findings

NAMESPACE = 'xmlns="http://www.w3.org/2005/07/scxml"'
BOMB = (
    '<!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]><scxml>&i;</scxml>"
)


@for_each(
    "text, found",
    [
        (BOMB, "SB141 line 1, column 1:"),
        ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><scxml>&x;</scxml>', "SB141 line 1, column 1:"),
        ('<!DOCTYPE a SYSTEM "http://example.com/a.dtd"><scxml/>', "SB141 line 1"),
        ('<!DOCTYPE a PUBLIC "-//W3C//DTD" "a.dtd"><scxml/>', "SB141 line 1"),
        ('<!DOCTYPE a [<!ENTITY % p SYSTEM "http://example.com/p"> %p;]><scxml/>', "SB141 line 1"),
        ('<!DOCTYPE a [<!ATTLIST scxml initial CDATA "x">]><scxml/>', "SB141 line 1"),
        ("<!DOCTYPE scxml><scxml/>", "SB141 line 1"),
        ("<scxml>&nbsp;</scxml>", "SB131 line 1, column 8: not XML: undefined entity"),
        ("<scxml>", "SB131 line 1, column 8: not XML: no element found"),
        ("<scxml>\n  <state></scxml>", "SB131 line 2, column 12: not XML: mismatched tag"),
        ("<scxml x='1' x='2'/>", "SB131 line 1, column 14: not XML: duplicate attribute"),
        ("<scxml><p:state/></scxml>", "SB131 line 1, column 8: not XML: unbound prefix"),
        ("<scxml/><scxml/>", "SB131 line 1, column 9"),
        ("{}", "SB131 line 1, column 1"),
        ("   \n ", "SB131 definition: the text is empty"),
        ("<html/>", "SB144 line 1, column 1: not an SCXML document: its root is <html>"),
        (f"<scxml {NAMESPACE}/>", "SB144 line 1, column 1: the document has no states"),
        ("<scxml xmlns='http://example.com'/>", "SB144 line 1, column 1: not an SCXML document"),
        ("<a>" * 200 + "</a>" * 200, f"SB111 line 1, column {MAX_DEPTH * 3 + 1}: elements nested more than"),
        ("<scxml>" + "<state/>" * 60_000 + "</scxml>", "SB111 line 1"),
        ("<scxml>\0</scxml>", "SB134 line 1, column 8"),
    ],
)
def test_what_is_no_harmless_document_is_refused_with_its_place(text, found):
    with pytest.raises(DefinitionError) as caught:
        load(text, "scxml")
    assert str(caught.value.findings[0]).startswith(found)


def test_nothing_is_fetched_or_opened(tmp_path, monkeypatch):
    monkeypatch.setattr("socket.socket", None)
    secret = tmp_path / "secret.js"
    secret.write_text("x = 1")
    below = tmp_path / "below"
    below.mkdir()
    for source in ("http://example.com/a.js", str(secret), "../secret.js", "file:../secret.js", "file:///etc/hostname"):
        found = read(document(f'<script src="{source}"/><state id="a"/>'), "scxml", below)[1]
        assert [one.code for one in found] == ["SB141"], source


def test_a_document_that_is_too_large_is_not_read():
    assert read("<scxml>" + " " * limits.MAX_DEFINITION, "scxml")[1][0].code == "SB111"


def test_bytes_and_declared_encodings():
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<scxml {NAMESPACE} name="é"><state id="ö"/></scxml>'
    assert list(load(text.encode(), "scxml")["states"]) == ["ö"]
    assert list(load(b"\xef\xbb\xbf" + text.encode(), "scxml")["states"]) == ["ö"]
    assert read(text.encode("utf-16"), "scxml")[1][0].code == "SB134"


@pytest.mark.parametrize(
    "text",
    [
        '<x:scxml xmlns:x="http://www.w3.org/2005/07/scxml"><x:state id="a"><x:onentry><x:log expr="1"/></x:onentry>'
        "</x:state></x:scxml>",
        '<scxml><state id="a"><onentry><log expr="1"/></onentry></state></scxml>',
        f'<scxml {NAMESPACE}><!-- c --><?pi x?>\n<state id="a">text<onentry><log expr="1"/></onentry></state></scxml>',
    ],
)
def test_namespaces_comments_and_instructions(text):
    assert load(text, "scxml")["states"] == {"a": {"entry": {"log": "1"}}}


def test_what_is_of_another_namespace_is_left_out_and_said():
    body = (
        '<state id="a" xmlns:v="urn:view"><v:box/><onentry><v:draw x="1"/><log expr="1"/></onentry></state>'
        '<state id="b"/>'
    )
    assert definition(body)["states"]["a"] == {"entry": {"log": "1"}}
    assert [one.partition(":")[0].split()[0] for one in findings(body)] == ["SB221", "SB221"]


@for_each(
    "name, id",
    [("door", "door"), ("my door: 1", "my_door_1"), ("1st", "st"), ("é", "_"), ("", "machine"), ("a" * 80, "a" * 52)],
)
def test_the_machine_is_called_as_the_document_is(name, id):
    assert load(document('<state id="a"/>', attributes=f'name="{name}"'), "scxml")["id"] == id


def test_without_a_name_the_machine_is_called_as_the_file(tmp_path):
    path = tmp_path / "lift-2.scxml"
    path.write_text(f'<scxml {NAMESPACE}><state id="a"/></scxml>')
    assert load(path.read_text(), "scxml", base=path)["id"] == "lift-2"
    assert load(path.read_text(), "scxml", base=tmp_path)["id"] == "machine"


def test_states_without_ids_get_some():
    body = '<state><transition event="x" target="state1"/><state/></state><state id="state1"/>'
    body += "<parallel><state/></parallel>"
    found = definition(body)
    assert list(found["states"]) == ["state2", "state1", "parallel1"]
    assert list(found["states"]["state2"]["states"]) == ["state3"]
    assert found["initial"] == "state2"


@for_each("body, found", [
        ('<state id="a"/><state id="a"/>', 'another state has the id "a" too'),
        ('<state id="a"><transition target="zz"/></state>', 'there is no state "zz"'),
        ('<state id="a" initial="zz"><state id="b"/></state>', 'there is no state "zz"'),
        ('<state id="a"><transitoin/></state>', "<transitoin> has no meaning inside <state>"),
        ('<final id="a"><transition event="x"/></final>', "<transition> has no meaning inside <final>"),
        ('<state id="a"><onentry><goto/></onentry></state>', "<goto> has no meaning here"),
        ('<state id="a"><onentry><assign expr="1"/></onentry></state>', '<assign> needs a "location"'),
        ('<state id="a"><onentry><foreach item="x"/></onentry></state>', '<foreach> needs "array"'),
        ('<state id="a"><onentry><if><log expr="1"/></if></onentry></state>', '<if> needs a "cond"'),
        ('<state id="a"><onentry><cancel/></onentry></state>', '<cancel> needs "sendid"'),
        ('<state id="a"><onentry><raise event="a b"/></onentry></state>', "the event 'a b' must not hold spaces"),
        ('<state id="a"><onentry><send event="x" eventexpr="y"/></onentry></state>', '"event" and "eventexpr" exclude'),
        ('<state id="a"><onentry><send event="x"><param expr="1"/></send></onentry></state>', '<param> needs a "name"'),
        ('<state id="a"><invoke/></state>', "nothing to invoke"),
        ('<state id="a"><initial/><state id="b"/></state>', "<initial> needs a <transition> with a target"),
        ('<state id="a" initial="b"><initial><transition target="b"/></initial><state id="b"/></state>', "exclude"),
    ])  # fmt: skip
def test_an_invalid_document_is_refused(body, found):
    said = findings(body)
    assert any(one.startswith("SB144 line 1, column") and found in one for one in said), said


@pytest.mark.parametrize("model", ["xpath", "cplusplus", "python"])
def test_other_data_models_are_refused(model):
    text = f'<scxml {NAMESPACE} datamodel="{model}"><state id="a"/></scxml>'
    assert [one.code for one in read(text, "scxml")[1]] == ["SB141"]


@pytest.mark.parametrize("model", ["", 'datamodel="null"', 'datamodel="ecmascript"'])
def test_the_data_models_that_are_read(model):
    text = f'<scxml {NAMESPACE} {model}><state id="a"><transition cond="In(\'b\')"/></state><state id="b"/></scxml>'
    assert load(text, "scxml")["states"]["a"]["always"] == {"guard": "In('b')"}


N = 15_000
LARGE = {
    "many transitions": "<state id='a'>"
    + "".join(f"<transition event='e{i} f{i}' target='a'/>" for i in range(N))
    + "</state>",
    "many states without ids": "<state/>" * N,
    "many names to change": "<datamodel>" + "".join(f"<data id='_{i}'/>" for i in range(N)) + "</datamodel><state/>",
    "many errors": "<state><onentry>" + "<log expr='a b'/><goto/>" * (N // 2) + "</onentry></state>",
    "a long script": "<state><onentry><script>" + "x = x + 1;" * N + "</script></onentry></state>",
    "functions in functions": "<script>function a(x) { return x + x } function b(x) { return a(a(a(a(x)))) } "
    "function c(x) { return b(b(b(b(x)))) } y = c(c(c(1)))</script><state/>",
    "loops in loops": "<datamodel><data id='o' expr='{}'/></datamodel><script>o = []</script><state><onentry>"
    + "<foreach array='o' item='i'>" * 60
    + "</foreach>" * 60
    + "</onentry></state>",
    "calculated files": "<state><invoke srcexpr=\"'a.scxml'\"/></state>" * 2000,
}


@pytest.mark.hostile
@for_each("name", LARGE)
def test_a_large_document_takes_time_that_grows_with_its_length_only(name):
    definition, found = read(f"<scxml {NAMESPACE}>{LARGE[name]}</scxml>", "scxml")
    assert definition is not None
    assert len(found) <= 200


def test_warnings_leave_room_for_errors():
    body = "<state id='a'><onentry>" + "<log expr='a b'/>" * 300 + "<goto/></onentry></state>"
    found = read(f"<scxml {NAMESPACE}>{body}</scxml>", "scxml")[1]
    assert [one.code for one in found if one.is_error] == ["SB144"]


PIECES = st.sampled_from(
    ["<state id='a'>", "</state>", "<parallel>", "</parallel>", "<transition event='e' target='a' cond='x>1'>",
     "</transition>", "<onentry>", "</onentry>", "<script>", "</script>", "x = 1", "<if cond='a'>", "<else/>", "</if>",
     "<send event='e'/>", "<invoke>", "</invoke>", "<content>", "</content>", "<scxml>", "</scxml>", "<data id='x'/>",
     "<datamodel>", "</datamodel>", "<history id='h'/>", "<final/>", "&amp;", "&x;", "]]>", "<![CDATA[", "<a b='", "é",
     "<assign location='x.y' expr='", "'/>", "function f(", "{", "}", "<foreach array='x' item='y'/>", "<initial/>"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=30), st.booleans())
@settings(max_examples=300)
def test_whatever_the_text_the_reader_never_raises(pieces, whole):
    text = "".join(pieces)
    for one in (text, f"<scxml {NAMESPACE}>{text}</scxml>") if whole else (text,):
        _, found = read(one, "scxml")
        assert all(finding.code in CODES for finding in found)


WORDS = st.sampled_from(
    ["x", "y", "_event", "data", ".", "[", "]", "(", ")", "{", "}", "+", "-", "*", "/", "%", "<", ">", "==", "===",
     "&&", "||", "!", "?", ":", ",", ";", "=", "+=", "++", "1", "'a'", "`b${", "function", "return", "var", "if",
     "else", "for", "of", "in", "new", "this", "typeof", "=>", "...", "null", "push", "length", "concat", "In", "Math",
     "floor", "//", "/*", "\\", "\n", "#"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=25))
@settings(max_examples=400)
def test_whatever_the_script_the_reader_never_raises(words):
    text = " ".join(words).replace("]]>", "")
    body = f'<script><![CDATA[{text}]]></script><state id="a"/>'
    _, found = read(document(body, '<data id="x"/><data id="y" expr="[1]"/>'), "scxml")
    assert all(finding.code in CODES for finding in found)
