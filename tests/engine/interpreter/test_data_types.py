"""Data fields: what their types take, by example and by schema."""

import pytest

from machines.engine import BadPayload, Refused
from tests.engine.builders import door, fields, machine, publish, started

SAMPLES = {
    "string": ["", "x", "é", "1", "true", "None"],
    "integer": [0, 1, -1, 2**53 - 1, 3.0],
    "number": [0, 0.5, -1e308, 7],
    "boolean": [True, False],
    "array": [[], [1], [None]],
    "object": [{}, {"a": []}],
    "null": [None],
}
MISFITS = {
    "string": [0, True, None, [], {}],
    "integer": ["1", 1.5, True, None, [], 1e300],
    "number": ["1", True, None, []],
    "boolean": [0, 1, "true", None],
    "array": [{}, "[]", None],
    "object": [[], "{}", None],
    "null": [0, "", False, []],
}
FITS = [(type, value) for type, values in SAMPLES.items() for value in values]
DOES_NOT = [(type, value) for type, values in MISFITS.items() for value in values]


def typed(engine, type):
    put = {"put": {"actions": {"set": {"x": "event.x"}}}, "drop": {"actions": {"unset": "x"}}}
    return publish(engine, machine("m", {"A": {"on": put}}, context=fields(x=type)))


@pytest.mark.parametrize(("type", "value"), FITS)
def test_a_field_takes_what_it_was_declared_for(engine, type, value):
    typed(engine, type)
    made = engine.create("m", "x", {"x": value})
    assert made.data == {"x": value}
    assert isinstance(made.data["x"], bool) == isinstance(value, bool)
    assert engine.get("m", "x").data == {"x": value}
    engine.create("m", "y")
    assert engine.fire("m", "y", "put", {"x": value}).data == {"x": value}
    assert engine.fire("m", "y", "drop").data == {}
    assert engine.force("m", "y", "A", actor="a", reason="r", data={"x": value}).data.get("x") == value


@pytest.mark.parametrize(("type", "value"), DOES_NOT)
def test_a_field_takes_nothing_else(engine, type, value):
    typed(engine, type)
    with pytest.raises(BadPayload, match=f"x takes {type}, not"):
        engine.create("m", "x", {"x": value})
    engine.create("m", "x")
    with pytest.raises(Refused, match=f"x takes {type}, not"):
        engine.fire("m", "x", "put", {"x": value})
    assert engine.get("m", "x").data == {}


def test_an_integer_field_gives_an_int_and_a_number_field_a_float_or_int(engine):
    publish(engine, machine("m", {"A": {}}, context=fields(i="integer", n="number", b="boolean")))
    data = engine.create("m", "x", {"i": 3.0, "n": 3, "b": True}).data
    assert (type(data["i"]), data["n"], type(data["b"])) == (int, 3, bool)


@pytest.mark.parametrize("value", [None, "x", 3])
def test_several_types_may_be_declared(engine, value):
    typed(engine, {"type": ["string", "null", "integer"]})
    assert engine.create("m", "x", {"x": value}).data == {"x": value}
    with pytest.raises(BadPayload, match="x takes string or null or integer, not array"):
        engine.create("m", "y", {"x": []})


@pytest.mark.parametrize("value", [None, "x", 3, True, [], {}, [{"a": 1}]])
def test_a_field_without_a_type_takes_anything(engine, value):
    typed(engine, {})
    assert engine.create("m", "x", {"x": value}).data == {"x": value}


def test_types_by_example(engine):
    context = {"s": "t", "i": 3, "n": 0.5, "b": False, "l": [1], "o": {"k": 1}, "any": None}
    publish(engine, machine("m", {"A": {}}, context=context))
    assert engine.create("m", "x").data == context
    for field, wrong in {"s": 1, "i": 0.5, "n": "1", "b": 1, "l": {}, "o": []}.items():
        with pytest.raises(BadPayload) as caught:
            engine.create("m", "y", {field: wrong})
        assert caught.value.field == field
    assert engine.create("m", "z", {"any": ["thing"]}).data["any"] == ["thing"]


def test_a_machine_without_context_takes_no_data(engine):
    publish(engine, door())
    with pytest.raises(BadPayload, match="declares no data field 'x'"):
        engine.create("door", "x", {"x": 1})


def test_data_comes_in_the_order_it_was_declared(engine):
    names = ["z", "a", "m", "b"]
    publish(engine, machine("m", {"A": {}}, context=dict.fromkeys(names, 0)))
    assert list(engine.create("m", "x", {"b": 1, "z": 2}).data) == names


def test_append_makes_a_list_where_there_is_none(engine):
    add = {"add": {"actions": {"append": {"x": "event.v"}}}}
    started(engine, machine("m", {"A": {"on": add}}, context=fields(x="array")))
    for value in (1, None, [], {"a": 1}):
        fired = engine.fire("m", "x", "add", {"v": value})
    assert fired.data["x"] == [1, None, [], {"a": 1}]


def test_a_field_has_its_bound_and_so_has_all_data(engine):
    put = {"put": {"actions": {"set": {"a": "event.v", "b": "event.v"}}}, "one": {"actions": {"set": {"a": "event.v"}}}}
    started(engine, machine("m", {"A": {"on": put}}, context={"a": "", "b": ""}))
    engine.fire("m", "x", "one", {"v": "x" * 60_000})
    with pytest.raises(Refused, match="the data of an instance has at most 65536 bytes, not 66002"):
        engine.fire("m", "x", "put", {"v": "x" * 33_000})
    assert engine.fire("m", "x", "put", {"v": "x" * 32_000}).data == {"a": "x" * 32_000, "b": "x" * 32_000}


def test_a_list_that_grows_is_stopped_at_the_bound(engine):
    add = {"add": {"actions": {"append": {"x": "event.v"}}}}
    started(engine, machine("m", {"A": {"on": add}}, context={"x": []}))
    engine.fire("m", "x", "add", {"v": "x" * 40_000})
    with pytest.raises(Refused, match="x is longer than 65536 bytes"):
        engine.fire("m", "x", "add", {"v": "x" * 40_000})


def test_a_thousand_fields_are_as_good_as_one(engine):
    names = [f"f{n}" for n in range(1000)]
    go = {"go": {"actions": {"set": {name: f"{name} + 1" for name in names}}}}
    started(engine, machine("m", {"A": {"on": go}}, context=dict.fromkeys(names, 0)))
    assert set(engine.fire("m", "x", "go").data.values()) == {1}


def test_five_thousand_fields_too(engine):
    names = [f"f{n}" for n in range(5000)]
    made = started(engine, machine("m", {"A": {}}, context=dict.fromkeys(names, 0)))
    assert made.data == dict.fromkeys(names, 0)
    assert len(engine.get("m", "x").data) == 5000
