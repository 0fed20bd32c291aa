"""Checks that every name in expressions and actions exists: data fields, payload fields, states, events."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from machines.engine import limits
from machines.engine.definitions.fields import ANY
from machines.engine.definitions.model import Action, Field, Machine, Transition, Value, flatten_actions
from machines.engine.definitions.report import Path, Report, quote
from machines.engine.expressions import Expression, Use
from machines.engine.expressions.translator import INSTANCE_FACTS, TRIGGER_FACTS

PayloadTypes = dict[str, tuple[str, ...]]

DONE, ERROR = "done.invoke.", "error.invoke."
DONE_FIELDS: PayloadTypes = {"result": ANY}
ERROR_FIELDS: PayloadTypes = {"error": ("string",), "kind": ("string",), "attempts": ("integer",)}


@dataclass(frozen=True, slots=True)
class Spot:
    """An expression and its context. ``payload``: the fields of ``event`` there, None when not known."""

    path: Path
    expression: Expression
    payload: PayloadTypes | None
    events: tuple[str, ...] = ()


def review(machine: Machine, report: Report) -> None:
    for spot in find_spots(machine):
        for use in spot.expression.uses:
            _check_use(use, spot, machine, report)
    for state in machine.states.values():
        for action in state.actions:
            _check_action(action, machine, report)
        for invoke in state.invokes:
            _check_field(invoke.idlocation, (*invoke.path, "idlocation"), machine, report)
    for action in flatten_actions(machine.start.actions if machine.root is None else ()):
        _check_action(action, machine, report)


def find_spots(machine: Machine) -> Iterator[Spot]:
    """Return every expression of the machine."""
    payloads = Payloads(machine)
    if machine.root is None:  # where there is one, these are its own
        yield from _of_actions(machine.start.actions, None, ())
    yield from _of_value(machine.output)
    for state in machine.states.values():
        yield from _of_actions(state.own_actions, None, ())
        yield from _of_value(state.output)
        for invoke in state.invokes:
            yield from (Spot(path, expression, None) for path, expression in invoke.parts)
        for transition in state.all_transitions:
            yield from _of_transition(transition, payloads.of(transition))


def _of_transition(transition: Transition, payload: PayloadTypes | None) -> Iterator[Spot]:
    yield from _of_value(transition.delay)
    if transition.guard:
        yield Spot(transition.guard.path, transition.guard.expression, payload, transition.events)
    yield from _of_actions(transition.actions, payload, transition.events)


def _of_actions(actions: Iterable[Action], payload: PayloadTypes | None, events: tuple[str, ...]) -> Iterator[Spot]:
    for action in flatten_actions(actions):
        for path, expression in action.expressions:
            yield Spot(path, expression, payload, events)


def _of_value(value: Value | None) -> Iterator[Spot]:
    for path, expression in value.parts if value else ():
        yield Spot(path, expression, None)


class Payloads:
    """The fields of ``event`` in each transition, as far as the definition declares them."""

    def __init__(self, machine: Machine) -> None:
        self._events = machine.events
        invokes = (invoke for state in machine.states.values() for invoke in state.invokes)
        self._children = {invoke.id for invoke in invokes if invoke.is_machine}
        words = [name.split(".") for name in machine.events]
        self._prefixes = {".".join(parts[:end]) for parts in words for end in range(1, len(parts))}

    def of(self, transition: Transition) -> PayloadTypes | None:
        """Return the fields of the one event a transition listens for; None for several events, or an undeclared
        one."""
        if len(transition.events) != 1:
            return None
        descriptor = transition.events[0]
        if transition.cause == "after":
            return {}
        if _invoke_of(descriptor) in self._children:
            return None  # the data a child ends with is its own affair
        if descriptor.startswith(DONE):
            return DONE_FIELDS
        if descriptor.startswith(ERROR):
            return ERROR_FIELDS
        declared = self._events.get(descriptor)
        if declared is None or declared.fields is None or descriptor in self._prefixes:
            return None
        return {name: field.types for name, field in declared.fields.items()}


def _invoke_of(descriptor: str) -> str:
    """Return the id in ``done.invoke.<id>`` or ``error.invoke.<id>``, also in a pattern; empty for other events."""
    if not descriptor.startswith((DONE, ERROR)):
        return ""
    return descriptor.partition("invoke.")[2].removesuffix(".*")


def _check_use(use: Use, spot: Spot, machine: Machine, report: Report) -> None:
    if use.kind == "data" and use.name not in machine.fields:
        report.add_unknown(
            "SB102", spot.path, "data field", use.name, machine.fields, _other_meaning(use.name, spot, machine)
        )
    elif use.kind == "payload" and spot.payload is not None and use.name not in spot.payload:
        event = "of a timer" if limits.TIMER_EVENT.fullmatch(spot.events[0]) else quote(spot.events[0])
        what = f"field of the event {event} called"
        report.add_unknown("SB103", spot.path, what, use.name, spot.payload, _join_names(spot.payload))
    elif use.kind == "state" and use.name not in machine.states:
        _report_state(use.name, spot.path, machine, report)
    elif use.kind == "trigger" and use.name not in TRIGGER_FACTS:
        listed = _join_names(TRIGGER_FACTS)
        report.add_unknown("SB121", spot.path, "fact of the trigger called", use.name, TRIGGER_FACTS, listed)
    elif use.kind == "instance" and use.name not in INSTANCE_FACTS:
        report.add_unknown("SB121", spot.path, "fact of the instance called", use.name, INSTANCE_FACTS)


def _other_meaning(name: str, spot: Spot, machine: Machine) -> str:
    """Return a hint about what an unknown bare name could mean."""
    if spot.payload and name in spot.payload:
        return f"the payload's field is event.{name}"
    if name in machine.states:
        return f"a text needs quotes of its own: \"'{name}'\""
    return _join_names(machine.fields)


def _join_names(names: Collection[str]) -> str:
    if not names:
        return "there are none"
    shown = ", ".join(list(names)[:8])
    return f"there are: {shown}{', …' if len(names) > 8 else ''}"


def _report_state(key: str, path: Path, machine: Machine, report: Report) -> None:
    """Report an unknown state; states may have this key, but another name."""
    names = [quote(state.name) for state in machine.states.values() if state.keys[-1:] == (key,)]
    if names:
        report.add("SB101", path, f"no state is called {quote(key)}", f"the name is {' or '.join(names[:5])}")
    else:
        report.add_unknown("SB101", path, "state", key, machine.states)


def _check_action(action: Action, machine: Machine, report: Report) -> None:
    for name in action.fields:
        _check_field(name, action.path, machine, report)
    if action.verb in ("raise", "send"):
        _check_data(action, machine, report)


def _check_field(name: str, path: Path, machine: Machine, report: Report) -> None:
    if name and name not in machine.fields:
        report.add_unknown("SB102", path, "data field", name, machine.fields, _join_names(machine.fields))


def _check_data(action: Action, machine: Machine, report: Report) -> None:
    """Check data against the declared event, unless the receiver may declare it differently."""
    if action.sending is not None and action.sending.to is not None:
        return
    event = machine.events.get(action.name)
    fields: dict[str, Field] = event.fields or {} if event else {}
    if event is not None and event.fields is not None:
        for key in action.keys:
            if key not in fields:
                what = f"field of the event {quote(action.name)} called"
                report.add_unknown("SB103", action.path, what, key, fields, _join_names(fields))
