"""find against a plain filter in Python, on random data, steps and searches."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .indexed import assert_exact, every, instances, row

VALUES = {
    "serial": st.text(st.sampled_from("abé😀Z"), max_size=4) | st.sampled_from(["a" * n for n in (63, 64, 65)]),
    "amount": st.integers(-3, 3) | st.floats(-1e9, 1e9) | st.sampled_from([-0.0, 0.5, -0.5, 1e-300, -1e300]),
    "active": st.booleans(),
    "note": st.none() | st.text("ab", max_size=2) | st.integers(-2, 2),
}  # fmt: skip
DATUM = st.fixed_dictionaries({}, optional=VALUES)
STEP = st.tuples(st.sampled_from(["go", "set", "force", "delete"]), st.integers(0, 11), DATUM)


def conditions():
    text, number = VALUES["serial"], VALUES["amount"]
    bounds = st.sampled_from([("ge", "lt"), ("gt", "le"), ("ge",), ("gt",), ("le",), ("lt",)])
    ranges = [
        bounds.flatmap(lambda names, kind=kind: st.fixed_dictionaries(dict.fromkeys(names, kind)))
        for kind in (text, number)
    ]
    texts = text | ranges[0] | st.builds(lambda p: {"prefix": p}, text.filter(bool))
    some = {"serial": texts, "amount": number | ranges[1], "active": st.booleans(), "note": VALUES["note"] | texts}
    return st.fixed_dictionaries({}, optional=some).filter(lambda where: any(v is not None for v in where.values()))


def holds(value, wanted):
    def kind(one):
        return "b" if isinstance(one, bool) else "n" if isinstance(one, int | float) else type(one).__name__

    if not isinstance(wanted, dict):
        return kind(value) == kind(wanted) and value == wanted
    tests = {"prefix": str.startswith, "ge": lambda a, b: a >= b, "gt": lambda a, b: a > b}
    tests |= {"le": lambda a, b: a <= b, "lt": lambda a, b: a < b}
    return all(kind(value) == kind(limit) and tests[name](value, limit) for name, limit in wanted.items())


@settings(max_examples=40)
@given(
    data=st.lists(DATUM, min_size=1, max_size=12),
    steps=st.lists(STEP, max_size=15),
    searches=st.lists(
        st.tuples(conditions(), st.sampled_from([None, "A", "B"]), st.booleans()), min_size=1, max_size=6
    ),
)
def test_find_answers_what_a_plain_filter_does(many, data, steps, searches):
    for key in many.client.scan_iter(match=f"{many.keys.prefix}*"):
        many.client.delete(key)
    row(many, *data)
    for verb, number, payload in steps:
        id = f"i{number}"
        if number >= len(data) or id not in instances(many):
            continue
        if verb == "delete":
            many.delete("m", id)
        elif verb == "force":
            many.force("m", id, "C", data=payload, actor="a", reason="r")
        elif verb == "go" or instances(many)[id].state != "C":
            many.fire("m", id, verb, {name: payload[name] for name in ("serial", "amount") if name in payload})
    assert_exact(many)
    here = instances(many)
    for where, state, newest in searches:
        expected = {
            id
            for id, one in here.items()
            if state in (None, one.state) and all(holds(one.data.get(name), v) for name, v in where.items())
        }
        found = every(many, where=where, state=state, newest=newest, limit=2)
        assert sorted(found) == sorted(expected), json.dumps(where)


@pytest.mark.parametrize(
    ("bound", "found"), [("gt", ["i2"]), ("ge", ["i1", "i2"]), ("lt", ["i0"]), ("le", ["i0", "i1"])]
)
def test_a_bound_takes_what_is_equal_in_or_leaves_it_out(many, bound, found):
    """Of the instances of a narrower index, and of its own."""
    row(many, *({"amount": 1 + number % 3, "serial": "narrow" if number < 3 else "wide"} for number in range(12)))
    where = {"serial": "narrow", "amount": {bound: 2}}
    assert sorted(every(many, where=where)) == found
    assert many.tally("m", where=where).total == len(found)
    assert many.tally("m", where={"amount": {bound: 2}}).total == len(found) * 4
