"""What a field is compared with is the type that forms take for it, where the definition declares none."""

from __future__ import annotations

from machines.engine.definitions import compile_definition
from tests.cases import for_each


def compared(guard: str, *, actions: object = None, payload: object = None) -> dict[str, tuple[str, ...]]:
    """What the outline says of the fields of the event ``go``."""
    transition = {"target": "B", "guard": guard} | ({"actions": actions} if actions else {})
    event = {"go": {"payload": payload}} if payload else {}
    document = {
        "id": "m", "initial": "A", "context": {"total": 0, "name": "x", "open": None}, "events": event,
        "states": {"A": {"on": {"go": transition}}, "B": {"on": {"go": {"guard": "event.late > 1"}}}},
    }  # fmt: skip
    return compile_definition(document).outline.find_compared("go")


@for_each(
    "guard, types",
    [
        ("event.x >= total", ("number",)),
        ("100 < event.x", ("number",)),
        ("0 < event['x'] < total", ("number",)),
        ("event.x == 2.5", ("number",)),
        ("event.x - 1 == event.y", ("number",)),
        ("-event.x == event.y", ("number",)),
        ("round(event.x) == event.y", ("number",)),
        ("event.x == True", ("boolean",)),
        ("event.x == name", ("string",)),
        ("event.x == name or event.x > 1", ("number", "string")),
        ("event.x == event.y", ()),
        ("event.x == open", ()),
        ("event.x == None", ()),
        ("event.x in [1, 2]", ("number",)),
        ("event.x in ['A', 'B'] or event.x > 5", ("number", "string")),
        ("event.x", ()),
    ],
)
def test_types_stand_beside_a_field(guard: str, types: tuple[str, ...]):
    assert compared(guard).get("x", ()) == types


def test_actions_other_states_and_declared_fields_count():
    found = compared("total > 0", actions={"set": {"total": "total + event.more"}}, payload={"more": {}, "late": {}})
    assert found == {"late": ("number",), "more": ("number",)}


def test_fields_have_what_they_are_compared_with():
    states = {"A": {"on": {"go": {"guard": "event.x > 1 and open > 2"}, "door.*": {"guard": "event.y > 1"}}}}
    events = {"door.open": {"payload": {"y": {}}}}
    document = {"id": "m", "initial": "A", "context": {"open": None}, "states": states}
    outline = compile_definition(document | {"events": events}).outline
    assert [(field.name, field.types, field.compared) for field in outline.data] == [("open", ("any",), ("number",))]
    go, door = outline.events_of("A")
    assert [(field.name, field.compared) for field in go.fields or ()] == [("x", ("number",))]
    assert [(field.name, field.compared) for field in door.fields or ()] == [("y", ("number",))]
