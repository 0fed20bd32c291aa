"""Reads ``index``: the data fields, and the facts about instances, by which instances are found."""

from __future__ import annotations

from machines.engine import limits
from machines.engine.definitions.fields import SCALARS, describe_types
from machines.engine.definitions.model import Field
from machines.engine.definitions.place import Place
from machines.engine.definitions.report import quote

IDS = "instance.id"
ACTOR = "instance.actor"
VERSION = "instance.version"
TRANSITION = "instance.transition"
#: what can be indexed beside data: the id, who acted last, the version of the machine, the transitions of the step that
#: led to each current state
FACTS = (IDS, ACTOR, VERSION, TRANSITION)


def read_index(place: Place | None, fields: dict[str, Field]) -> tuple[str, ...]:
    """Read the names of data fields and of FACTS, in order."""
    if place is None or not place.is_array("an array of data fields"):
        return ()
    if len(place.value) > limits.MAX_INDEXES:
        place.error("SB111", f"{len(place.value)} fields are indexed; at most {limits.MAX_INDEXES} are allowed")
        return ()
    found: list[str] = []
    for one in place.one_or_many():
        name = one.text("a data field's name")
        if name is None:
            continue
        if name in found:
            one.error("SB115", f"{quote(name)} is listed twice")
        elif _can_be_indexed(name, one, fields):
            found.append(name)
    return tuple(found)


def _can_be_indexed(name: str, place: Place, fields: dict[str, Field]) -> bool:
    if name in FACTS:
        return True
    field = fields.get(name)
    if field is None:
        known = FACTS if name.startswith("instance.") else fields
        place.report.add_unknown("SB102", place.path, "data field", name, known)
        return False
    wrong = [type_name for type_name in field.types if type_name not in (*SCALARS, "null")]
    if wrong or field.types == ("null",):
        hint = f"declare it as {', '.join(SCALARS[:-1])} or {SCALARS[-1]}; null may be added"
        place.error("SB124", f"the field {quote(name)} is {describe_types(field.types)}, which has no order", hint)
        return False
    return True
