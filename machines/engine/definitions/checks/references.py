"""Checks names: those in expressions and actions exist, those that must differ do, and each event has a listener."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from machines.engine import limits
from machines.engine.definitions.fields import ANY
from machines.engine.definitions.findings import Path, Report, quote
from machines.engine.definitions.model import Action, Invoke, Machine, State, Transition, Value, flatten_actions
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
    for action in machine.actions:
        _check_action(action, machine, report)
    for state in machine.states.values():
        for invoke in state.invokes:
            _check_field(invoke.idlocation, (*invoke.path, "idlocation"), machine, report)


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
            payload = payloads.of(transition)
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
            "SB102", spot.path, "data field", use.name, machine.fields, _suggest_meaning(use.name, spot, machine)
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


def _suggest_meaning(name: str, spot: Spot, machine: Machine) -> str:
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
    if event is not None and event.fields is not None:
        for key in action.keys:
            if key not in event.fields:
                what = f"field of the event {quote(action.name)} called"
                report.add_unknown("SB103", action.path, what, key, event.fields, _join_names(event.fields))


def review_names(machine: Machine, report: Report) -> None:
    _check_state_names(machine, report)
    _check_invoke_ids(machine, report)
    _check_listeners(machine, report)
    _check_cancels(machine, report)


def _check_state_names(machine: Machine, report: Report) -> None:
    """Report states whose done events have one name; equal names are reported by the reader."""
    seen: set[str] = set()
    for state in machine.states.values():
        if state.done and state.done in seen:
            message = f"another state ends with {quote(state.done)} too"
            report.add("SB115", state.path, message, 'give it an "id" of its own')
        seen.add(state.done)


def _check_invoke_ids(machine: Machine, report: Report) -> None:
    """Report ids of invokes that are not unique in the machine (SCXML 6.4.1), or are a prefix of one that may run at
    the same time."""
    owners: dict[str, State] = {}
    for state in machine.states.values():
        for invoke in state.invokes:
            if invoke.id in owners:
                hint = 'give it an "id" of its own'
                report.add("SB115", invoke.path, f"another invoke has the id {quote(invoke.id)}", hint)
            owners.setdefault(invoke.id, state)
    for state in machine.states.values():
        for invoke in state.invokes:
            _check_prefixes(invoke, state, owners, machine, report)


def _check_prefixes(invoke: Invoke, state: State, owners: dict[str, State], machine: Machine, report: Report) -> None:
    """Report prefixes: ``done.invoke.a`` also matches ``done.invoke.a.b``, the end of another job."""
    words = invoke.id.split(".")
    for end in range(1, len(words)):
        owner = owners.get(".".join(words[:end]))
        if owner is not None and machine.together(owner.name, state.name):
            message = f"the id {quote(invoke.id)} begins with another's: an event of one would match the other"
            report.add("SB115", invoke.path, message, "write a dash instead of the dot")


def _check_listeners(machine: Machine, report: Report) -> None:
    bases = {event.removesuffix(".*") for s in machine.states.values() for t in s.transitions for event in t.events}
    for event in machine.events.values():
        if not _is_listened_to(event.name, bases):
            report.add("SB207", event.path, f"no state listens for {quote(event.name)}")
    for state in machine.states.values():
        for action in state.actions:
            if action.verb == "raise" and action.name and not _is_listened_to(action.name, bases):
                report.add("SB208", action.path, f"no state listens for {quote(action.name)}")


def _is_listened_to(event: str, bases: set[str]) -> bool:
    words = event.split(".")
    return "*" in bases or any(".".join(words[:end]) in bases for end in range(1, len(words) + 1))


def _check_cancels(machine: Machine, report: Report) -> None:
    """Report cancels of an id that no send has; an id that is computed could be any."""
    sent = {action.sending.id for action in machine.actions if action.sending}
    if any(action.sending and (action.sending.computed or action.sending.idlocation) for action in machine.actions):
        return
    for action in machine.actions:
        if action.verb == "cancel" and action.name and action.name not in sent:
            hint = report.suggestions.hint(action.name, sent - {""})
            report.add("SB214", action.path, f"nothing is sent with the id {quote(action.name)}", hint)
