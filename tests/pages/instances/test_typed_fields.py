"""What people type becomes a payload of the declared types, or a word about what is wrong."""

from __future__ import annotations

import json

import pytest
from django.http import QueryDict

from machines.engine.definitions import FieldOutline
from machines.instances.forms import TypedForm
from tests.cases import for_each


def form(types: tuple[str, ...], text: str | None, *, kind: str = "text", required: bool = False, open: bool = False):
    """A form of one field called ``x``, filled with ``text``."""
    post = QueryDict(mutable=True)
    if text is not None:
        post.update({"payload-x": text, "payload-x_~kind": kind})
    return TypedForm([FieldOutline("x", types, required=required)], is_open=open, data=post)


@for_each(
    "types, text, value",
    [
        (("string",), "MTOB1J", "MTOB1J"),
        (("string",), " spaces stay ", " spaces stay "),
        (("string",), "3", "3"),
        (("integer",), "3", 3),
        (("integer",), "-9007199254740992", -(2**53)),
        (("number",), "2.5", 2.5),
        (("number",), "3", 3),
        (("integer", "number"), "1e3", 1000),
        (("boolean",), "true", True),
        (("boolean",), "false", False),
        (("array",), '[1, "a"]', [1, "a"]),
        (("object",), '{"a": null}', {"a": None}),
        (("any",), "3", "3"),
        (("string", "null"), "text", "text"),
    ],
)
def test_text_becomes_a_value_of_the_declared_type(types, text, value):
    filled = form(types, text)
    assert filled.is_valid(), filled.errors
    assert filled.values() == {"x": value}
    assert type(filled.values()["x"]) is type(value)


@for_each("text", ['{"a": 1}', "3", "null", "true", '"text"'])
def test_a_field_of_any_type_can_be_read_as_json(text):
    filled = form(("any",), text, kind="json")
    assert filled.is_valid()
    expected = json.loads(text)
    assert filled.values() == ({} if expected is None else {"x": expected})


@for_each("types", [("string",), ("integer",), ("number",), ("boolean",), ("array",), ("any",)])
@for_each("text", ["", None])
def test_a_blank_field_is_not_sent(types, text):
    filled = form(types, text)
    assert filled.is_valid()
    assert filled.values() == {}


@pytest.mark.parametrize("required", [False, True])
def test_a_text_is_sent_empty_when_that_is_said(required):
    post = QueryDict(mutable=True)
    post.update({"payload-x": "", "payload-x_~empty": "on"})
    filled = TypedForm([FieldOutline("x", ("string",), required=required)], data=post)
    assert filled.is_valid(), filled.errors
    assert filled.values() == {"x": ""}


def test_a_text_is_not_said_to_be_empty_and_written_at_once():
    post = QueryDict(mutable=True)
    post.update({"payload-x": "MTOB1J", "payload-x_~empty": "on"})
    assert "not both" in TypedForm([FieldOutline("x", ("string",))], data=post).errors["x"][0]


def test_a_field_of_any_type_is_sent_an_empty_text_as_json():
    filled = form(("any",), '""', kind="json", required=True)
    assert filled.is_valid(), filled.errors
    assert filled.values() == {"x": ""}


def test_a_browser_does_not_ask_for_both_the_text_and_the_box():
    shown = str(form(("string",), "", required=True)["x"])
    assert " required" not in shown
    assert shown.count("checkbox") == 1


@for_each("types", [("string",), ("integer",), ("boolean",), ("array",), ("any",)])
def test_a_required_field_may_not_be_blank(types):
    assert not form(types, "", required=True).is_valid()


@for_each(
    "types, text",
    [
        (("integer",), "many"),
        (("integer",), "2.5"),
        (("integer",), "9007199254740993"),
        (("integer",), "9" * 5000),
        (("number",), "NaN"),
        (("number",), "inf"),
        (("boolean",), "perhaps"),
        (("array",), "[1,"),
        (("array",), "NaN"),
        (("array",), "[" * 100_000),
        (("array",), "[" + "9" * 5000 + "]"),
        (("string",), "a\0b"),
        (("string",), "x" * 70_000),
    ],
)
def test_what_does_not_fit_is_said_beside_the_field(types, text):
    filled = form(types, text)
    assert not filled.is_valid()
    assert "x" in filled.errors


def test_a_mistake_in_json_says_where():
    filled = form(("object",), '{"a": }')
    assert "line 1, column 7" in filled.errors["x"][0]


def test_an_open_payload_takes_further_fields():
    post = QueryDict(mutable=True)
    post.update({"payload-x": "1", "payload-*": '{"y": 2, "x": 9}'})
    filled = TypedForm([FieldOutline("x", ("integer",))], is_open=True, data=post)
    assert filled.is_valid()
    assert filled.values() == {"x": 1, "y": 2}


def test_further_fields_are_an_object():
    post = QueryDict(mutable=True)
    post.update({"payload-*": "[1]"})
    assert "*" in TypedForm([], is_open=True, data=post).errors


def test_the_engine_may_blame_a_field_that_is_there_or_the_whole():
    filled = form(("string",), "a")
    filled.is_valid()
    filled.blame("x", "not this")
    filled.blame("other", "nor that")
    assert filled.errors["x"] == ["not this"]
    assert filled.non_field_errors() == ["nor that"]
