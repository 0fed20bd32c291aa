"""``index``: the data fields that instances are found by."""

from machines.engine.definitions import check, compile
from tests.cases import for_each

SCHEMA = {
    "type": "object",
    "properties": {
        "serial": {"type": "string"},
        "amount": {"type": ["number", "null"]},
        "tags": {"type": "array"},
        "mixed": {"type": ["string", "object"]},
        "anything": {},
        "nothing": {"type": "null"},
    },
}


def definition(index, context=SCHEMA):
    return {"id": "m", "initial": "A", "context": context, "index": index, "states": {"A": {"on": {"go": "A"}}}}


def errors(index, context=SCHEMA):
    return [(found.code, found.path) for found in check(definition(index, context)) if found.is_error]


def test_fields_of_either_form_of_context_and_ids_may_be_listed():
    assert errors(["serial", "amount", "instance.id"]) == []
    assert errors(["n", "flag"], {"n": 0, "flag": False}) == []
    assert compile(definition(["amount", "serial"]))["index"] == ["amount", "serial"]


def test_without_one_the_program_is_what_it_was():
    assert "index" not in compile(definition([]))


@for_each(
    "index, found",
    [
        ("serial", [("SB104", "index")]),
        ([1], [("SB104", "index[0]")]),
        (["seril"], [("SB102", "index[0]")]),
        (["serial", "serial"], [("SB115", "index[1]")]),
        (["tags", "mixed", "anything", "nothing"], [("SB124", f"index[{n}]") for n in range(4)]),
        ([f"f{n}" for n in range(9)], [("SB111", "index")]),
    ],
)
def test_what_cannot_be_indexed_is_found(index, found):
    assert errors(index) == found


def test_a_slip_gets_a_hint():
    (found,) = [one for one in check(definition(["seril"])) if one.is_error]
    assert 'did you mean "serial"' in found.hint
    (found,) = [one for one in check(definition([], {"n": None}) | {"index": ["n"]}) if one.is_error]
    assert "declare it as string, integer, number or boolean" in found.hint


def test_a_flag_on_the_property_is_told_where_it_belongs():
    context = {"type": "object", "properties": {"serial": {"type": "string", "index": True}}}
    (found,) = [one for one in check(definition([], context)) if one.is_error]
    assert (found.code, found.path) == ("SB105", "context.properties.serial.index")
    assert 'the machine\'s own "index"' in found.hint
