"""The whole document: plain copy first, then its parts, then the checks that need all of them."""

from __future__ import annotations

from .. import limits
from .durations import HINT, milliseconds
from .fields import read_context, read_events
from .model import Machine
from .path import quote
from .place import Place
from .plain import BROKEN, Plain, TooLarge
from .report import Report
from .review import review
from .states import read_states, scope_of

KEYS = (
    "id",
    "description",
    "initial",
    "context",
    "events",
    "states",
    "history",
    "retain",
    "version",
    "meta",
    "$schema",
)
_NOT_YET = {
    "type": "machine types other than the flat one",
    "on": "transitions of the machine as a whole",
    "always": "transitions of the machine as a whole",
    "after": "timers (after)",
    "invoke": "work for the machine as a whole",
    "entry": "actions of the machine as a whole",
    "exit": "actions of the machine as a whole",
    "output": "the output of a machine",
}
_HINTS = {"data": 'write "context"', "name": 'write "id"', "key": 'write "id"', "schema": 'write "context"'}


def read(definition: object) -> tuple[Machine | None, Report]:
    """Never raises. The machine is None when there was nothing to read one from."""
    report = Report()
    try:
        document = Plain(report.add).copy(definition)
    except TooLarge:
        report.add("SB111", (), f"the definition is larger than {limits.MAX_DEFINITION} bytes")
        return None, report
    report.document = document
    place = Place(document, (), report)
    if not place.is_object("an object", 'a definition looks like {"id": ..., "initial": ..., "states": {...}}'):
        return None, report
    machine = _read_machine(place)
    review(machine, report)
    return machine, report


def _read_machine(place: Place) -> Machine:
    _check_keys(place)
    id = _read_id(place)
    description = place.get("description")
    history = place.get("history")
    steps = history.whole(0, limits.MAX_HISTORY) if history else None
    fields = read_context(place.get("context"))
    events = read_events(place.get("events"))
    states = place.get("states")
    scope = scope_of(id, states)
    if states is None:
        place.report.add("SB106", place.below("states"), '"states" is missing')
    initial = _required(place, "initial")
    return Machine(
        id=id,
        description=(description.text() or "") if description else "",
        initial=(scope.state(initial) or "") if initial and not initial.broken else "",
        history=limits.DEFAULT_HISTORY if steps is None else steps,
        fields=fields,
        events=events,
        states=read_states(states, scope) if states else {},
    )


def _check_keys(place: Place) -> None:
    for key, what in _NOT_YET.items():
        if key in place:
            place.at(key).error("SB108", f"{what} are not yet available")
    place.refuse_unknown((*KEYS, *_NOT_YET), _HINTS)
    if "version" in place:
        place.at("version").warn("SB205", '"version" has no effect: publishing numbers the versions')
    retain = place.get("retain")
    if retain is None or retain.broken:
        return
    if not isinstance(retain.value, str) or milliseconds(retain.value) is None:
        retain.error("SB113", "not a duration", HINT)
    else:
        retain.warn("SB205", '"retain" is not yet in effect: final instances are kept')


def _required(place: Place, key: str) -> Place | None:
    found = place.get(key)
    if found is None:
        place.report.add("SB106", place.below(key), f'"{key}" is missing')
    return found


def _read_id(place: Place) -> str:
    found = _required(place, "id")
    if found is None or found.value is BROKEN:
        return ""
    id = found.text("the machine's name")
    if id is not None and (why := limits.check_machine_name(id)) is not None:
        found.error("SB107", f"the machine name {quote(id)} {why}")
    return id or ""
