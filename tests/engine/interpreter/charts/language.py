"""The guards and actions of random charts: how a definition writes each, and what it means.

The meaning is written down a second time on purpose, in Python, so that the engine is held against something that
shares no code with it. ``machine`` is the reference interpreter, of which only data, event and queues are touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .reference import Machine

TRACE = "trace"  # the data field that everything that happens is written into, a word each
FUEL = 10  # events raised and sent until one from outside refuels: nearly all charts come to rest
DATA = {TRACE: "", "n": 0, "fuel": FUEL, "zero": 0, "item": None, "list": [3, 1, 2]}
CONTEXT = {
    "type": "object",
    "properties": {
        TRACE: {"type": "string", "default": ""},
        "n": {"type": "integer", "default": 0},
        "fuel": {"type": "integer", "default": FUEL},
        "zero": {"type": "integer", "default": 0},
        "item": {},
        "list": {"type": "array", "default": [3, 1, 2]},
    },
}


class Failed(Exception):
    """A guard or an action has no value."""


@dataclass(frozen=True)
class Guard:
    """``holds`` may raise Failed."""

    text: str
    holds: Callable[[Machine], bool] = field(repr=False)


@dataclass(frozen=True)
class Action:
    """``do`` may raise Failed."""

    json: Any
    do: Callable[[Machine], None] = field(repr=False)


def inside(name: str) -> Guard:
    return Guard(f"In('{name}')", lambda machine: machine.is_in(name))


def both(one: Guard, other: Guard) -> Guard:
    return Guard(f"{one.text} and {other.text}", lambda machine: one.holds(machine) and other.holds(machine))


def _fail(_: Machine) -> Any:
    raise Failed


GUARDS = [
    Guard("n < 2", lambda machine: machine.data["n"] < 2),
    Guard("n >= 2", lambda machine: machine.data["n"] >= 2),
    Guard("n % 2 == 0", lambda machine: machine.data["n"] % 2 == 0),
    Guard("n % 3 == 1", lambda machine: machine.data["n"] % 3 == 1),
]
EVENT_GUARDS = [Guard("event.x == 1", lambda machine: machine.event.data.get("x") == 1)]
BROKEN_GUARD = Guard("n / zero > 0", _fail)
BROKEN_ACTION = Action({"set": {"item": "n / zero"}}, _fail)


def told(label: str) -> Action:
    """Writes down that it was carried out."""
    return _tell(f"'{label}'", lambda machine: label)


def told_event() -> Action:
    """Writes down the event at hand, what kind it is, and its data."""

    def what(machine: Machine) -> str:
        event = machine.event
        return f"{event.name}:{event.type}:{event.data.get('x')}"

    return _tell("trigger.name + ':' + trigger.type + ':' + str(event.x)", what)


def told_of(guard: Guard) -> Action:
    """Writes down whether a condition holds."""
    return _tell(f"str({guard.text})", lambda machine: str(guard.holds(machine)))


def told_item() -> Action:
    return _tell("str(item)", lambda machine: str(machine.data["item"]))


def _tell(expression: str, what: Callable[[Machine], str]) -> Action:
    return Action({"set": {TRACE: f"{TRACE} + ' ' + {expression}"}}, lambda machine: machine.tell(what(machine)))


def added(number: int) -> Action:
    def do(machine: Machine) -> None:
        machine.data["n"] += number

    return Action({"set": {"n": f"n + {number}"}}, do)


def raised(event: str, x: str = "") -> Action:
    """``x``: data that is sent along, a name of a data field."""
    if not x:
        return Action({"raise": event}, lambda machine: machine.raise_event(event, {}))
    json = {"raise": {"event": event, "data": {"x": x}}}
    return Action(json, lambda machine: machine.raise_event(event, {"x": machine.data[x]}))


def sent(event: str, delay: int = 0, id: str = "") -> Action:
    """To the instance itself."""
    json: dict[str, Any] = {"event": event, "data": {"x": "n"}}
    json |= {"delay": delay} if delay else {}
    json |= {"id": id} if id else {}
    return Action({"send": json}, lambda machine: machine.send(event, {"x": machine.data["n"]}, delay, id))


def mailed(event: str, machine: str, id: str, delay: int = 0) -> Action:
    """To another instance, which the reference does not know of."""
    json = {"event": event, "data": {"x": "n"}, "to": {"machine": machine, "id": f"'{id}'"}}
    return Action({"send": json | ({"delay": delay} if delay else {})}, lambda machine: None)


def cancelled(id: str) -> Action:
    return Action({"cancel": id}, lambda machine: machine.cancel(id))


def fuelled(action: Action) -> Action:
    """Only while there is fuel, of which it takes one."""

    def do(machine: Machine) -> None:
        if machine.data["fuel"] > 0:
            machine.data["fuel"] -= 1
            action.do(machine)

    return Action({"if": [{"guard": "fuel > 0", "do": [{"set": {"fuel": "fuel - 1"}}, action.json]}]}, do)


def refuelled() -> Action:
    return Action({"set": {"fuel": FUEL}}, lambda machine: machine.data.update(fuel=FUEL))


def chosen(cases: list[tuple[Guard, tuple[Action, ...]]], otherwise: tuple[Action, ...]) -> Action:
    """if, elseif, else."""

    def do(machine: Machine) -> None:
        for guard, actions in cases:
            if machine.condition(guard):
                machine.carry_out(actions)
                return
        machine.carry_out(otherwise)

    json = [{"guard": guard.text, "do": [action.json for action in actions]} for guard, actions in cases]
    return Action({"if": [*json, {"do": [action.json for action in otherwise]}]}, do)


def repeated(actions: tuple[Action, ...]) -> Action:
    """For each item of ``list``."""

    def do(machine: Machine) -> None:
        for item in list(machine.data["list"]):
            machine.data["item"] = item
            machine.carry_out(actions)

    return Action({"foreach": {"in": "list", "item": "item", "do": [action.json for action in actions]}}, do)


def blocks(*parts: tuple[Action, ...]) -> Action:
    """Where errors are raised, what fails ends its own block only."""

    def do(machine: Machine) -> None:
        for part in parts:
            machine.run_block(part)

    json = [{"block": [action.json for action in part]} for part in parts]
    return Action({"if": [{"guard": "True", "do": json}]}, do)
