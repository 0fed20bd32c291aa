"""The form of an event: typed fields in, a payload out."""

from __future__ import annotations

from typing import Any

import pytest

from machines.engine.definitions import EventOutline, FieldOutline
from machines.instances.event_forms import EventForm
from tests.cases import for_each


def form(types: tuple[str, ...], *, open: bool = False, required: bool = False, **data: str) -> EventForm:
    outline = EventOutline("go", fields=(FieldOutline("x", types, required=required),), open=open)
    return EventForm(
        outline, number=3, data={"expect": "1", **{name.replace("_", "-", 1): v for name, v in data.items()}}
    )


@for_each(
    "types, text, value",
    [
        (("string",), "12", "12"),
        (("string",), " spaces kept ", " spaces kept "),
        (("integer",), "12", 12),
        (("number",), "1.5", 1.5),
        (("integer", "number"), "2.5", 2.5),
        (("boolean",), "true", True),
        (("boolean",), "false", False),
    ],
)
def test_an_entry_becomes_a_value_of_the_declared_type(types: tuple, text: str, value: Any) -> None:
    sent = form(types, payload_x=text)
    assert sent.is_valid(), sent.errors
    assert sent.payload() == {"x": value}


@pytest.mark.parametrize(
    ("types", "text"),
    [(("integer",), "1.5"), (("integer",), "9007199254740993"), (("number",), "nan"), (("boolean",), "maybe")],
)
def test_an_entry_that_does_not_fit_its_type_is_refused(types: tuple, text: str) -> None:
    assert "x" in form(types, payload_x=text).fields.errors


@for_each(
    "text, kind, value",
    [("12", "text", "12"), ("12", "json", 12), ("[1]", "json", [1]), ("null", "json", None), ("true", "json", True)],
)
def test_the_operator_says_how_an_undeclared_type_is_read(text: str, kind: str, value: Any) -> None:
    sent = form(("any",), **{"payload_x": text, "payload_x_~kind": kind})
    assert sent.is_valid(), sent.errors
    assert sent.payload() == ({"x": value} if value is not None else {})


@pytest.mark.parametrize("text", ["NaN", "{", "1 2", "[" * 10_000])
def test_json_that_is_none_is_refused(text: str) -> None:
    assert "x" in form(("object",), payload_x=text).fields.errors
    assert "x" in form(("any",), **{"payload_x": text, "payload_x_~kind": "json"}).fields.errors


def test_blank_fields_are_left_out() -> None:
    for types in (("string",), ("integer",), ("boolean",), ("any",)):
        sent = form(types, **{"payload_x": "", "payload_x_~kind": "json"})
        assert sent.is_valid(), sent.errors
        assert sent.payload() == {}


def test_required_fields_are_asked_for() -> None:
    assert "x" in form(("string",), required=True, payload_x="").fields.errors


def test_an_open_payload_takes_further_fields() -> None:
    sent = form(("string",), open=True, **{"payload_x": "a", "payload_*": '{"y": 2}'})
    assert sent.is_valid(), sent.errors
    assert sent.payload() == {"x": "a", "y": 2}
    assert "*" in form(("string",), open=True, **{"payload_*": "[1]"}).fields.errors


def test_a_payload_may_have_a_field_called_like_one_of_the_step() -> None:
    outline = EventOutline("go", fields=(FieldOutline("reason", ("string",)), FieldOutline("expect", ("integer",))))
    sent = EventForm(
        outline, number=0, data={"expect": "4", "reason": "asked", "payload-reason": "x", "payload-expect": "9"}
    )
    assert sent.is_valid()
    assert (sent.expect, sent.reason, sent.payload()) == (4, "asked", {"reason": "x", "expect": 9})
