"""``"sensitive": true`` on data fields and payload fields: read, compiled, kept for every version of the machine."""

from __future__ import annotations

import pytest

from machines.engine import SensitiveFields
from machines.engine.definitions import check, compile, compute_digest, outline


def door(data: dict | None = None, payload: dict | None = None, **further) -> dict:
    return {
        "id": "door",
        "initial": "Shut",
        "context": {"type": "object", "properties": data or {"code": {"type": "string", "sensitive": True}, "n": {}}},
        "events": {"open": {"payload": payload or {"code": {"sensitive": True}, "by": "string"}}, "shut": {}},
        "states": {"Shut": {"on": {"open": "Open"}}, "Open": {"on": {"shut": "Shut"}}},
    } | further


def test_the_outline_says_which_fields_are_sensitive() -> None:
    seen = outline(door())
    assert {field.name: field.sensitive for field in seen.data} == {"code": True, "n": False}
    fields = seen.events["open"].fields
    assert fields is not None
    assert {field.name: field.sensitive for field in fields} == {"code": True, "by": False}


def test_the_program_names_them_and_one_without_stays_as_it_was() -> None:
    assert compile(door())["sensitive"] == {"data": {"code": 1}, "events": {"open": {"code": 1}}}
    plain = door({"code": {"type": "string"}}, {"code": {"type": "string"}})
    assert "sensitive" not in compile(plain)
    unmarked = door({"code": {"type": "string", "sensitive": False}}, {"code": {"type": "string", "sensitive": False}})
    assert compute_digest(compile(unmarked)) == compute_digest(compile(plain))


@pytest.mark.parametrize("value", ["yes", 1, None, []])
def test_anything_but_true_and_false_is_found(value: object) -> None:
    found = check(door({"code": {"type": "string", "sensitive": value}}))
    told = str(next(finding for finding in found if finding.is_error))
    assert told.startswith("SB104 context.properties.code.sensitive: expected true or false")


def test_what_one_version_marks_is_sensitive_in_all(engine) -> None:
    engine.publish(door())
    assert engine.sensitive("door") == SensitiveFields(frozenset({"code"}), {"open": frozenset({"code"})})
    plain = {"code": {"type": "string"}, "pin": {"type": "string", "sensitive": True}}
    engine.publish(door(plain, {"code": {"type": "string"}}))
    assert engine.sensitive("door") == SensitiveFields(frozenset({"code", "pin"}), {"open": frozenset({"code"})})
    engine.publish(door(), version=7)
    assert engine.sensitive("door").data == {"code", "pin"}


def test_machines_without_are_told_as_such(engine) -> None:
    engine.publish(door({"n": {}}, {"by": "string"}))
    assert not engine.sensitive("door")


def test_a_machine_published_along_has_its_own(engine) -> None:
    engine.publish(door({"n": {}}, {"by": "string"}, machines={"lock": door()}))
    assert (engine.sensitive("door").data, engine.sensitive("door.lock").data) == (frozenset(), {"code"})
