"""A machine to its program: the JSON that the functions library inside Redis interprets.

Lists are indexed from 1, as Lua does. What is empty is left out; nothing is ever null.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .model import MISSING, Action, Event, Field, Invoke, Machine, State, Transition
from .types import SCALARS

FORMAT = 1


def program_of(machine: Machine) -> dict[str, Any]:
    """The machine must be free of errors."""
    program: dict[str, Any] = {
        "format": FORMAT,
        "machine": machine.id,
        "initial": machine.states[machine.initial].index,
        "history": machine.history,
        "states": [_state(state, machine) for state in machine.states.values()],
    }
    parts: dict[str, Any] = {
        "data": [_field(field) for field in machine.fields.values()],
        "events": {event.name: _payload(event) for event in machine.events.values() if event.fields is not None},
        "queues": queues_of(machine),
        "known": known_events(machine),
        "open": any(is_pattern(event) for _, event in descriptors(machine)),
    }
    return program | {key: part for key, part in parts.items() if part}


def digest(program: dict[str, Any]) -> str:
    """12 hexadecimal digits that tell programs apart: of the SHA-256 of the canonical JSON."""
    canonical = json.dumps(program, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def descriptors(machine: Machine) -> list[tuple[Transition, str]]:
    """Every event descriptor with the transition that has it, in document order."""
    return [
        (transition, event)
        for state in machine.states.values()
        for transition in state.transitions
        for event in transition.events
    ]


def is_pattern(descriptor: str) -> bool:
    return descriptor == "*" or descriptor.endswith(".*")


def known_events(machine: Machine) -> list[str]:
    """Every external event a transition names exactly or the definition declares."""
    named = [event for _, event in descriptors(machine) if not is_pattern(event)]
    return sorted({event for event in [*named, *machine.events] if not event.startswith(("done.", "error."))})


def queues_of(machine: Machine) -> list[str]:
    """Every queue the machine puts jobs on, in document order."""
    queues: dict[str, None] = {}
    for state in machine.states.values():
        for action in state.actions:
            if action.verb == "enqueue":
                queues[action.name] = None
        for invoke in state.invokes:
            queues[invoke.queue] = None
    return list(queues)


def _state(state: State, machine: Machine) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "entry": [_action(action) for action in state.entry],
        "exit": [_action(action) for action in state.exit],
        "transitions": [_transition(transition, machine) for transition in state.transitions],
        "always": [_transition(transition, machine) for transition in state.always],
        "invoke": [_invoke(invoke) for invoke in state.invokes],
    }
    return {"name": state.name, "final": state.final} | {key: part for key, part in parts.items() if part}


def _transition(transition: Transition, machine: Machine) -> dict[str, Any]:
    result: dict[str, Any] = {"id": transition.id}
    if transition.events:
        result["events"] = list(transition.events)
    if transition.target is not None:
        result["target"] = machine.states[transition.target].index
    if transition.reenter:
        result["reenter"] = True
    if transition.guard is not None:
        result["guard"] = transition.guard.expression.tree
        result["text"] = transition.guard.expression.text
    if transition.actions:
        result["actions"] = [_action(action) for action in transition.actions]
    return result


def _action(action: Action) -> list[Any]:
    value = [action.value.tree] if action.value else []
    if action.verb == "log":
        return ["log", *value]
    if action.verb == "enqueue":
        return ["enqueue", action.name, action.src, *value]
    return [action.verb, action.name, *value]


def _invoke(invoke: Invoke) -> dict[str, Any]:
    result: dict[str, Any] = {
        "id": invoke.id,
        "src": invoke.src,
        "queue": invoke.queue,
        "attempts": invoke.attempts,
        "backoff": invoke.backoff,
        "lease": invoke.lease,
    }
    return result | ({"input": invoke.input.tree} if invoke.input else {})


def _field(field: Field) -> dict[str, Any]:
    result: dict[str, Any] = {"name": field.name, "type": "json"}
    if len(field.types) == 1 and field.types[0] in SCALARS:
        result["type"] = field.types[0]
    else:
        result["types"] = list(field.types)
    if field.initial is not MISSING:
        result["initial"] = json.dumps(field.initial, ensure_ascii=False, separators=(",", ":"))
    return result


def _payload(event: Event) -> dict[str, Any]:
    fields = event.fields or {}
    return {field.name: {"types": list(field.types), "required": field.required} for field in fields.values()}
