"""Values on their way into Redis, through the interpreter and back: what went in comes out."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines.engine import BadPayload, Refused
from tests.cases import for_each
from tests.engine.builders import machine, publish, started

KEEP = machine(
    "keep",
    {
        "A": {
            "on": {
                "put": {"actions": {"set": {"x": "event.x"}}},
                "whole": {"actions": {"set": {"x": "event"}}},
                "wrap": {"actions": {"set": {"x": "[x]"}}},
                "tell": {"actions": [{"emit": {"type": "told", "data": {"x": "event.x"}}}]},
                "work": {"actions": [{"enqueue": {"src": "work", "input": {"x": "event.x"}}}]},
            }
        }
    },
    context={"x": None},
)


@pytest.fixture
def keep(engine):
    started(engine, KEEP)
    return engine


def through(engine, value):
    """The value after one way through payload, expression, field, reply and a read of its own."""
    fired = engine.fire("keep", "x", "put", {"x": value}).data["x"]
    assert same(engine.get("keep", "x").data["x"], fired)
    return fired


def same(a, b):
    """Equal, and of one type all the way down: [] is not {}, True is not 1."""
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b and isinstance(a, bool) == isinstance(b, bool)
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


VALUES = [
    None, True, False, 0, 1, -1, 2**53 - 1, -(2**53 - 1), 0.1, -0.5, 1e21, 1e-7, 1.7976931348623157e308, 5e-324,
    1 / 3, 1e15, 1e14, 123456789012345678.0, 99999999999999, 100000000000001, "", " ", "text", "é", "😀", "日本語",
    "\u2028", "\x7f", "\x01\x1f\t\n\r\b\f", '"quoted"', "back\\slash", "a/b", "\\u0041", "%s %d {} {0}", "x" * 60_000,
    "é" * 30_000, [], {}, [[]], [{}], {"a": []}, {"a": {}}, [None], [None, None, 1], {"a": None},
    [1, [2, [3, [4, {"x": [{}, []]}]]]], {"": 1}, {" ": 1}, {"é😀": {'"': "'"}},
    {"a b": 1, "a\nb": 2, "0": 3, "__index": 4, "n": 5}, {"1": "a", "2": "b"}, list(range(5000)), [""] * 5000,
]  # fmt: skip


@for_each("value", VALUES)
def test_a_value_comes_out_as_it_went_in(keep, value):
    assert same(through(keep, value), value)


def test_minus_zero_is_zero(keep):
    found = through(keep, -0.0)
    assert found == 0
    assert math.copysign(1, found) == 1


def test_a_payload_as_a_whole_is_an_object_even_when_it_is_empty(keep):
    assert keep.fire("keep", "x", "whole").data["x"] == {}
    assert keep.fire("keep", "x", "whole", {"a": []}).data["x"] == {"a": []}


def test_lists_and_objects_keep_apart_through_history_log_and_job(keep):
    value = {"list": [], "object": {}, "deep": [[{}], {"x": []}], "null": None}
    keep.fire("keep", "x", "tell", {"x": value})
    ((_, entry),) = keep.client.xrange(keep.keys.partition("keep").log)
    assert json.loads(entry["data"]) == {"x": value}
    assert keep.history("keep", "x")[0].payload == {"x": value}
    keep.fire("keep", "x", "work", {"x": value})
    assert keep.jobs("keep", "work")[0].input == {"x": value}
    keep.fire("keep", "x", "put", {"x": value})
    assert keep.history("keep", "x")[0].changes == {"x": value}
    assert keep.explain("keep", "x", "put", {"x": value}).outcome["data"] == {"x": value}


def test_a_field_is_kept_as_text_a_person_can_read(keep):
    keep.fire("keep", "x", "put", {"x": {"b": [1, 0.5], "a": "é"}})
    assert keep.client.hget(keep.keys.partition("keep").instance("x"), "x") == '{"a":"é","b":[1,0.5]}'


def test_equal_objects_are_one_text_whatever_the_order_of_their_keys(keep):
    first = keep.fire("keep", "x", "put", {"x": {"a": 1, "b": 2}})
    keep.fire("keep", "x", "put", {"x": {"b": 2, "a": 1}})
    assert keep.history("keep", "x")[0].changes == {}
    assert first.data["x"] == {"a": 1, "b": 2}


def nested(levels, inner=1):
    value = inner
    for _ in range(levels):
        value = [value]
    return value


def test_depth_counts_objects_and_lists_inside_one_another(keep):
    deepest = nested(31)  # and the payload around it is the thirty-second
    assert through(keep, deepest) == deepest
    assert through(keep, nested(31, {})[0]) == nested(30, {})
    with pytest.raises(BadPayload, match="is nested deeper than 32"):
        keep.fire("keep", "x", "put", {"x": nested(32)})
    with pytest.raises(BadPayload, match="is nested deeper than 32"):
        keep.fire("keep", "x", "put", {"x": nested(31, {})})


def test_data_that_grows_deeper_step_by_step_stops_where_it_could_not_be_read_any_more(keep):
    keep.fire("keep", "x", "put", {"x": []})
    for _ in range(31):
        keep.fire("keep", "x", "wrap")
    with pytest.raises(Refused, match="nested deeper than 32"):
        keep.fire("keep", "x", "wrap")
    assert keep.get("keep", "x").data["x"] == nested(31, [])
    assert keep.explain("keep", "x", "put", {"x": 1}).taken
    assert keep.fire("keep", "x", "put", {"x": 1}).data["x"] == 1


@for_each(
    "value",
    [
        float("nan"),
        float("inf"),
        -float("inf"),
        2**53,
        -(2**53),
        10**400,
        b"x",
        {1, 2},
        object(),
        {1: 2},
        "a\x00",
        "\udc00",
    ],
)
def test_what_json_or_a_double_cannot_carry_is_named(keep, value):
    with pytest.raises(BadPayload) as caught:
        keep.fire("keep", "x", "put", {"x": value})
    assert caught.value.field in ("x", None)


def test_a_circle_is_refused(keep):
    ring = []
    ring.append(ring)
    with pytest.raises(BadPayload, match="nested deeper"):
        keep.fire("keep", "x", "put", {"x": ring})


RAW = {
    '{"x": 1}': 1,
    ' { "x" : [ 1 , 2 ] } ': [1, 2],
    '{"x":"\\u00e9\\ud83d\\ude00\\/\\b"}': "é😀/\b",
    '{"x":-0.0}': 0,
    '{"x":1E+2}': 100,
    '{"x": ""}': "",
}
BROKEN = [
    "{", "[", '{"x"}', '{"x":}', '{"x":1,}', '{"x":1}}', '{"x":01}', '{"x":1.}', '{"x":.5}', '{"x":+1}', '{"x":0x10}',
    '{"x":1e}', '{"x":NaN}', '{"x":nul}', '{"x":True}', "{'x':1}", '{"x":"\t"}', '{"x":"\\x41"}', '{"x":"\\u12"}',
    '{"x":"\\ud800"}', '{"x":"\\udc00"}', '{"x":"\\u0000"}', '{"x":"abc', '{"x":1 2}', '{"x":[1,]}', '{"x":[,1]}',
    '{"x":1e400}', '{x:1}', '{"x":1,"x":2}', "null", '"x"', "1", "[]", "\ufeff{}", '{"x":1} x',
]  # fmt: skip


@pytest.mark.parametrize("text", RAW)
def test_json_of_any_other_writer_is_read(keep, text):
    reply = keep.client.fcall("sb_fire", 1, keep.keys.partition("keep").root, "x", "put", text)
    assert reply[0] == "OK"
    assert same(keep.get("keep", "x").data["x"], RAW[text])


@for_each("text", BROKEN)
def test_what_is_not_json_is_refused_with_its_place(keep, text):
    reply = keep.client.fcall("sb_fire", 1, keep.keys.partition("keep").root, "x", "put", text)
    assert reply[0] == "BADPAYLOAD"
    assert "not JSON at byte" in reply[1] or "a payload is a JSON object, not" in reply[1]


@pytest.mark.parametrize("text", ['{"x":9007199254740992}', '{"x":-9007199254740993}', '{"x":12345678901234567890}'])
def test_an_integer_that_would_become_its_neighbour_is_refused_from_every_writer(keep, text):
    reply = keep.client.fcall("sb_fire", 1, keep.keys.partition("keep").root, "x", "put", text)
    assert reply[0] == "BADPAYLOAD"
    assert "an integer past 2^53; send it as text" in reply[1]


@pytest.mark.parametrize("value", [2.0**53, 2.0**60, 1e15 + 0.5, 1e17, 123456789012345680.0, -(2.0**63)])
def test_a_large_float_stays_a_number_and_can_be_read_again(keep, value):
    assert through(keep, value) == value
    assert keep.fire("keep", "x", "wrap").data["x"] == [value]
    assert keep.fire("keep", "x", "wrap").data["x"] == [[value]]


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=20),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=5), inner
        ),
    ),
    max_leaves=15,
)


@settings(max_examples=200)
@given(value=JSON)
def test_any_json_survives(keep, value):
    assert same(through(keep, value), value)


def test_an_instance_whose_json_was_damaged_is_told_as_a_fault_and_can_be_repaired(keep):
    keep.client.hset(keep.keys.partition("keep").instance("x"), "x", "{broken")
    with pytest.raises(Refused, match="not JSON at byte 2"):
        keep.fire("keep", "x", "wrap")
    publish(keep, KEEP)
    assert keep.fire("keep", "x", "put", {"x": 1}).data == {"x": 1}
