"""Whether every name that expressions and actions use exists: data fields, payload fields, states, events."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..expressions import Expression, Use
from ..expressions.translator import INSTANCE_FACTS
from .model import Action, Field, Machine, State, Transition
from .path import Path, quote
from .report import Report
from .types import ANY

PayloadTypes = dict[str, tuple[str, ...]]

DONE, ERROR = "done.invoke.", "error.invoke."
DONE_FIELDS: PayloadTypes = {"result": ANY}
ERROR_FIELDS: PayloadTypes = {"error": ("string",), "kind": ("string",), "attempts": ("integer",)}


@dataclass(frozen=True, slots=True)
class Spot:
    """An expression where it stands. ``payload`` is what ``event`` holds there; None when that is not known."""

    path: Path
    expression: Expression
    payload: PayloadTypes | None
    events: tuple[str, ...] = ()


def review(machine: Machine, report: Report) -> None:
    for spot in spots(machine):
        for use in spot.expression.uses:
            _check_use(use, spot, machine, report)
    for state in machine.states.values():
        for action in state.actions:
            _check_action(action, machine, report)


def spots(machine: Machine) -> Iterator[Spot]:
    """Every expression of the machine."""
    payloads = Payloads(machine)
    for state in machine.states.values():
        for action in (*state.entry, *state.exit):
            yield from _of_action(action, None, ())
        for invoke in state.invokes:
            for path, expression in invoke.input.parts if invoke.input else ():
                yield Spot(path, expression, None)
        for transition in state.all_transitions:
            yield from _of_transition(transition, payloads.of(transition))


def _of_transition(transition: Transition, payload: PayloadTypes | None) -> Iterator[Spot]:
    if transition.guard:
        yield Spot(transition.guard.path, transition.guard.expression, payload, transition.events)
    for action in transition.actions:
        yield from _of_action(action, payload, transition.events)


def _of_action(action: Action, payload: PayloadTypes | None, events: tuple[str, ...]) -> Iterator[Spot]:
    for path, expression in action.value.parts if action.value else ():
        yield Spot(path, expression, payload, events)


class Payloads:
    """What the ``event`` of a transition holds, as far as the definition says."""

    def __init__(self, machine: Machine) -> None:
        self._events = machine.events
        words = [name.split(".") for name in machine.events]
        self._prefixes = {".".join(parts[:end]) for parts in words for end in range(1, len(parts))}

    def of(self, transition: Transition) -> PayloadTypes | None:
        """The fields of the one event it listens for; None when that may be several, or an undeclared one."""
        if len(transition.events) != 1:
            return None
        descriptor = transition.events[0]
        if descriptor.startswith(DONE):
            return DONE_FIELDS
        if descriptor.startswith(ERROR):
            return ERROR_FIELDS
        declared = self._events.get(descriptor)
        if declared is None or declared.fields is None or descriptor in self._prefixes:
            return None
        return {name: field.types for name, field in declared.fields.items()}


def _check_use(use: Use, spot: Spot, machine: Machine, report: Report) -> None:
    if use.kind == "data" and use.name not in machine.fields:
        report.unknown(
            "SB102", spot.path, "data field", use.name, machine.fields, _other_meaning(use.name, spot, machine)
        )
    elif use.kind == "payload" and spot.payload is not None and use.name not in spot.payload:
        what = f"field of the event {quote(spot.events[0])} called"
        report.unknown("SB103", spot.path, what, use.name, spot.payload, _listed(spot.payload))
    elif use.kind == "state" and use.name not in machine.states:
        report.unknown("SB101", spot.path, "state", use.name, machine.states)
    elif use.kind == "instance" and use.name not in INSTANCE_FACTS:
        report.unknown("SB121", spot.path, "fact of the instance called", use.name, INSTANCE_FACTS)


def _other_meaning(name: str, spot: Spot, machine: Machine) -> str:
    """What someone may have meant by a bare name that is no data field."""
    if spot.payload and name in spot.payload:
        return f"the payload's field is event.{name}"
    if name in machine.states:
        return f"a text needs quotes of its own: \"'{name}'\""
    return _listed(machine.fields)


def _listed(names: Collection[str]) -> str:
    if not names:
        return "there are none"
    shown = ", ".join(list(names)[:8])
    return f"there are: {shown}{', …' if len(names) > 8 else ''}"


def _check_action(action: Action, machine: Machine, report: Report) -> None:
    if action.verb in ("set", "unset", "append") and action.name not in machine.fields:
        report.unknown("SB102", action.path, "data field", action.name, machine.fields, _listed(machine.fields))
    elif action.verb == "raise":
        _check_raise(action, machine, report)


def _check_raise(action: Action, machine: Machine, report: Report) -> None:
    event = machine.events.get(action.name)
    fields: dict[str, Field] = event.fields or {} if event else {}
    if event is not None and event.fields is not None:
        for key in action.keys:
            if key not in fields:
                what = f"field of the event {quote(action.name)} called"
                report.unknown("SB103", action.path, what, key, fields, _listed(fields))


def invokes_named(state: State) -> set[str]:
    return {invoke.id for invoke in state.invokes}
