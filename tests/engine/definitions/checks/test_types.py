"""Values whose type cannot fit, as far as literals and declarations tell."""

from __future__ import annotations

from tests.cases import for_each
from tests.engine.definitions.builders import codes, found, machine, with_action, with_guard


@for_each(
    "field, value",
    [
        ("n", "'text'"),
        ("n", "1.5"),
        ("n", 1.5),
        ("n", "None"),
        ("n", None),
        ("n", "name"),
        ("n", "str(n)"),
        ("n", "n == 1"),
        ("n", "'a' if on_air else 'b'"),
        ("name", 1),
        ("name", "n + 1"),
        ("name", "len(name)"),
        ("name", "now"),
        ("name", ["name"]),
        ("tags", "name"),
        ("tags", {}),
        ("on_air", 1),
        ("on_air", "'yes'"),
        ("facts", []),
    ],
)
def test_a_value_that_cannot_fit_its_field_is_found(field, value):
    assert "SB112" in codes(with_action({"set": {field: value}}))


@for_each(
    "field, value",
    [
        ("n", "n / 2"),
        ("n", "now + 28 * 86400"),
        ("n", "event.anything"),
        ("n", "event.x or 3"),
        ("n", "round(ratio)"),
        ("ratio", 1),
        ("ratio", "n"),
        ("name", "event.token or random_token(6)"),
        ("name", "name + '!'"),
        ("tags", "tags + [1]"),
        ("tags", ["name", 1]),
        ("on_air", "not name"),
        ("facts", {"a": "n"}),
        ("extra", "None"),
        ("extra", "'text'"),
    ],
)
def test_a_value_that_may_fit_is_left_alone(field, value):
    assert codes(with_action({"set": {field: value}})) == []


def test_the_hint_for_null_is_unset():
    assert found(with_action({"set": {"n": None}})) == [
        'SB112 states.A.on.go.actions.set.n: "n" is integer, the value null; write {"unset": "n"}'
    ]


def test_only_arrays_are_appended_to():
    assert codes(with_action({"append": {"n": 1}})) == ["SB112"]
    assert codes(with_action([{"append": {"tags": 1}}, {"append": {"extra": 1}}])) == []


@for_each(
    "guard",
    ["n < '3'", "name > 3", "n < None", "name + 1 > 2", "tags * 2", "-name", "1 in n", "lower(n) == 'x'", "True < 2"],
)
def test_a_guard_that_always_fails_to_evaluate_is_found(guard):
    assert codes(with_guard(guard)) == ["SB112"]


@for_each("guard", ["n == '3'", "name != 3", "on_air == 1", "tags == 'a'", "1 < n == 'x'"])
def test_a_comparison_that_can_never_hold_is_a_warning(guard):
    assert codes(with_guard(guard)) == ["SB213"]


@for_each(
    "guard",
    [
        "n == ratio",
        "n == None",
        "name is not None",
        "extra == 3",
        "event.x < n",
        "tags[0] == 3",
        "name in tags",
        "n == 1.0",
    ],
)
def test_a_comparison_that_may_hold_is_left_alone(guard):
    assert codes(with_guard(guard)) == []


def test_declared_payload_types_are_used():
    events = {"go": {"payload": {"token": "", "count": {"type": "integer"}}}}
    assert codes(with_guard("event.token < 3", events=events)) == ["SB112"]
    assert codes(with_guard("event.count < 3", events=events)) == []


@for_each(
    "schema, expected",
    [
        ({"type": "integer", "default": 1.5}, ["SB112"]),
        ({"type": "integer", "default": 2.0}, []),
        ({"type": "string", "default": None}, ["SB112"]),
        ({"type": ["string", "null"], "default": None}, []),
        ({"type": "number", "default": 3}, []),
        ({"type": "integer", "default": 1e300}, ["SB112"]),
        ({"type": "strng"}, ["SB104"]),
        ({"type": []}, []),
        ({"enum": ["a"]}, ["SB206"]),
        ({"typ": "string"}, ["SB105"]),
        ("string", ["SB104"]),
    ],
)
def test_schemas_of_fields_are_checked(schema, expected):
    assert codes(machine(context={"type": "object", "properties": {"x": schema}})) == expected


def test_a_context_that_could_be_read_in_two_ways_is_pointed_out():
    assert codes(machine(context={"type": "object"})) == ["SB212"]


def test_the_name_of_a_type_is_hardly_meant_as_an_example():
    assert codes(machine(context={"x": "integer", "y": "string"})) == ["SB212"]
    assert found(machine(events={"open": {"payload": {"x": "integer"}}}))[0].endswith('write {"type": "integer"}')


def test_initial_data_has_a_limit():
    assert codes(machine(context={"text": "x" * 65536})) == ["SB111"]
