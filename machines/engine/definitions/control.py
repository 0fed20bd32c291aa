"""The actions that hold other actions: ``if``, ``foreach`` and ``block``."""

from __future__ import annotations

from collections.abc import Callable

from .model import Action, Case
from .naming import required
from .place import Place
from .values import read_guard, read_value

ReadActions = Callable[[Place | None], tuple[Action, ...]]


def read_if(place: Place, read: ReadActions) -> list[Action]:
    """The first case whose guard holds is done; one without a guard is the else."""
    cases: list[Case] = []
    for one in place.one_or_many():
        hint = 'write [{"guard": "expression", "do": [...]}, {"do": [...]}]'
        if not one.is_object("a case", hint):
            continue
        one.refuse_unknown(("guard", "do"), {"then": 'write "do"', "actions": 'write "do"', "cond": 'write "guard"'})
        if cases and cases[-1].guard is None:
            one.error("SB211", "never done: the case before it has no guard")
        cases.append(Case(read_guard(one.get("guard")), read(required(one, "do"))))
    if place.value == []:
        place.error("SB106", "there is no case", 'write [{"guard": "expression", "do": [...]}]')
    return [Action("if", place.path, cases=tuple(cases))] if cases else []


def read_foreach(place: Place, read: ReadActions) -> list[Action]:
    """Once for each element of a list: ``item`` and ``index`` are data fields."""
    hint = 'write {"foreach": {"in": "list", "item": "field", "do": [...]}}'
    if not place.is_object("an object with in, item and do", hint):
        return []
    hints = {"array": 'write "in"', "of": 'write "in"', "actions": 'write "do"', "as": 'write "item"'}
    place.refuse_unknown(("in", "item", "index", "do"), hints)
    array, item, index = required(place, "in"), required(place, "item"), place.get("index")
    actions = read(required(place, "do"))
    name = item.text("a field's name") if item else None
    position = index.text("a field's name") if index else None
    if array is None or array.broken or not name:
        return []
    value = read_value(array)
    return [Action("foreach", place.path, name, value=value, index=position or "", cases=(Case(None, actions),))]


def read_block(place: Place, read: ReadActions) -> list[Action]:
    """Where errors are raised, what fails ends the block and no more."""
    return [Action("block", place.path, cases=(Case(None, read(place)),))]
