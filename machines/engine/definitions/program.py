"""Builds the program of a machine: the JSON that the functions library inside Redis interprets.

Lists are indexed from 1, as in Lua. Empty parts are left out; nothing is ever null. The size of a program is limited:
the first step that enters a state compiles the whole state, and the first call reads the whole program.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from machines.engine import limits

from .fields import SCALARS, SEARCHABLE
from .findings import Report
from .model import (
    MISSING,
    Action,
    Case,
    Event,
    Field,
    Invoke,
    Limit,
    Machine,
    Start,
    State,
    Transition,
    Value,
    Work,
    flatten_actions,
)


def review(machine: Machine, report: Report) -> None:
    """Report SB111 where a state, or the machine, has more parts than allowed."""
    if report.has_errors:
        return
    total = 0
    report.program = build_program(machine)
    for state, compiled in zip(machine.states.values(), report.program["states"], strict=True):
        parts = _parts(compiled)
        total += parts
        if parts > limits.MAX_STATE_PARTS:
            what = "the machine's own transitions and actions have" if state.root else "the state has"
            report.add("SB111", state.path, f"{what} {parts} parts; {limits.MAX_STATE_PARTS} are allowed")
    if total > limits.MAX_PARTS:
        report.add("SB111", (), f"the machine has {total} parts; {limits.MAX_PARTS} are allowed")


def _parts(node: Any) -> int:
    """Count the lists and objects of a part of a program: transitions, actions, and parts of expressions."""
    if isinstance(node, dict):
        return 1 + sum(_parts(item) for item in node.values() if isinstance(item, dict | list))
    return 1 + sum(_parts(item) for item in node if isinstance(item, dict | list))


FORMAT = 1


def build_program(machine: Machine) -> dict[str, Any]:
    """Build the program of a machine without errors."""
    program: dict[str, Any] = {
        "format": FORMAT,
        "machine": machine.id,
        "initial": _initial(machine),
        "history": machine.history,
        "states": [_state(state, machine) for state in machine.states.values()],
    }
    invokes = [invoke for state in machine.states.values() for invoke in state.invokes]
    parts: dict[str, Any] = {
        "data": [_field(field) for field in machine.fields.values()],
        "index": list(machine.index),
        "approval": list(machine.approval),
        "accepts": None if machine.accepts is None else {"from": list(machine.accepts)},
        "brings": list(machine.brings) if any(invoke.computed for invoke in invokes) else [],
        "sensitive": _sensitive(machine),
        "events": {event.name: _payload(event) for event in machine.events.values() if event.fields is not None},
        "queues": list(collect_feeds(machine)),
        "limits": {queue: _limit(limit) for queue, limit in machine.limits.items()},
        "known": list_known_events(machine),
        "open": any(is_pattern(event) for _, event in list_descriptors(machine)),
        "errors": "raise" if machine.raises_errors else "",
        "output": machine.output.tree if machine.output else None,
    }
    return program | {key: part for key, part in parts.items() if part}


def compute_digest(program: dict[str, Any]) -> str:
    """Return 12 hexadecimal digits of the SHA-256 of the canonical JSON, which tell programs apart."""
    canonical = json.dumps(program, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def list_descriptors(machine: Machine) -> list[tuple[Transition, str]]:
    """List every event descriptor with its transition, in document order."""
    return [
        (transition, event)
        for state in machine.states.values()
        for transition in state.transitions
        for event in transition.events
    ]


def is_pattern(descriptor: str) -> bool:
    return descriptor == "*" or descriptor.endswith(".*")


def list_known_events(machine: Machine) -> list[str]:
    """List every external event that a transition names exactly or the definition declares."""
    named = [event for t, event in list_descriptors(machine) if t.cause != "after" and not is_pattern(event)]
    return sorted({event for event in [*named, *machine.events] if not limits.is_reserved_event(event)})


def collect_feeds(machine: Machine) -> dict[str, set[str]]:
    """Return every queue the machine puts jobs on, in document order, then those that only have limits; each with the
    handlers that its jobs ask for."""
    feeds: dict[str, set[str]] = {}
    start = flatten_actions(machine.start.actions), ()
    for actions, invokes in (start, *((state.actions, state.invokes) for state in machine.states.values())):
        for action in actions:
            if action.verb == "enqueue":
                feeds.setdefault(action.name, set()).add(action.src)
        for invoke in invokes:
            if not invoke.is_machine:
                feeds.setdefault(invoke.queue, set()).add(invoke.src)
    return feeds | {queue: set() for queue in machine.limits if queue not in feeds}


def _limit(limit: Limit) -> dict[str, Any]:
    rate, groups = limit.rate, limit.groups
    parts: dict[str, Any] = {"concurrency": limit.concurrency, "groups": _limit(groups) if groups else None}
    if rate:
        parts |= {"rate": rate.jobs, "per": rate.per, "burst": rate.burst}
    return {key: part for key, part in parts.items() if part}


def _initial(machine: Machine) -> Any:
    if machine.root is not None:
        return machine.states[machine.root].index
    start = _start(machine.start, machine)
    return start["targets"][0] if len(start["targets"]) == 1 and "actions" not in start else start


def _start(start: Start, machine: Machine) -> dict[str, Any]:
    result: dict[str, Any] = {"targets": [machine.states[target].index for target in start.targets]}
    return result | ({"actions": encode_actions(start.actions)} if start.actions else {})


def _state(state: State, machine: Machine) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "kind": "" if state.is_leaf else state.kind,
        "parent": machine.states[state.parent].index if state.parent else 0,
        "root": state.root,
        "initial": _start(state.start, machine) if state.start and state.kind == "compound" else None,
        "deep": state.deep,
        "default": _start(state.start, machine) if state.start and state.kind == "history" else None,
        "done": state.done,
        "sla": state.sla,
        "donedata": state.output.tree if state.output else None,
        "entry": encode_actions(state.entry),
        "exit": encode_actions(state.exit),
        "transitions": [_transition(transition, machine) for transition in state.transitions],
        "always": [_transition(transition, machine) for transition in state.always],
        "invoke": [_invoke(invoke) for invoke in state.invokes],
    }
    return {"name": state.name, "final": state.final} | {key: part for key, part in parts.items() if part}


def _transition(transition: Transition, machine: Machine) -> dict[str, Any]:
    targets = [machine.states[target].index for target in transition.targets]
    guard = transition.guard.expression if transition.guard else None
    parts: dict[str, Any] = {
        "events": list(transition.events),
        "target": targets[0] if len(targets) == 1 else 0,
        "targets": targets if len(targets) > 1 else [],
        "reenter": transition.reenter,
        "actions": encode_actions(transition.actions),
        "delay": transition.delay.tree if transition.delay else None,
        "allow": list(transition.allow),
    }
    result = {"id": transition.id} | {key: part for key, part in parts.items() if part}
    return result | ({"guard": guard.tree, "text": guard.text} if guard else {})


def _invoke(invoke: Invoke) -> dict[str, Any]:
    result: dict[str, Any] = {"id": invoke.id}
    if invoke.is_machine:
        result["machine"] = invoke.computed.tree if invoke.computed else invoke.machine
    else:
        work = invoke.work or Work()
        result |= {"src": invoke.src, "queue": invoke.queue, "attempts": work.attempts, "backoff": work.backoff}
        result |= {"lease": work.lease} | encode_options(work)
    parts: dict[str, Any] = {
        "input": invoke.input.tree if invoke.input else None,
        "autoforward": invoke.autoforward,
        "finalize": encode_actions(invoke.finalize),
        "idlocation": invoke.idlocation,
    }
    return result | {key: part for key, part in parts.items() if part}


def _field(field: Field) -> dict[str, Any]:
    result: dict[str, Any] = {"name": field.name}
    if field.encrypted:  # its types are those of what is stored
        nullable = "null" in field.types
        result |= {"type": "json" if nullable else "string", "types": _list_stored_types(field)}
    else:
        result |= name_types(field.types)
    if field.initial is not MISSING:
        result["initial"] = json.dumps(field.initial, ensure_ascii=False, separators=(",", ":"))
    return result


def _sensitive(machine: Machine) -> dict[str, Any]:
    """Return the names of sensitive fields as keys, as ``read_sensitive_fields`` reads them."""
    events = {event.name: _mark_fields(event.fields or {}) for event in machine.events.values()}
    parts = {
        "data": _mark_fields(machine.fields),
        "events": {event: marked for event, marked in events.items() if marked},
        "encrypted": {
            field.name: {"types": list(field.types), "searchable": field.encrypted == SEARCHABLE}
            for field in machine.encrypted.values()
        },
    }
    return {key: part for key, part in parts.items() if part}


def _mark_fields(fields: dict[str, Field]) -> dict[str, int]:
    return {field.name: 1 for field in fields.values() if field.sensitive}


def _payload(event: Event) -> dict[str, Any]:
    fields = event.fields or {}
    return {field.name: {"types": _list_stored_types(field), "required": field.required} for field in fields.values()}


def name_types(types: tuple[str, ...]) -> dict[str, Any]:
    """Return how a data field of these types is stored."""
    if len(types) == 1 and types[0] in SCALARS:
        return {"type": types[0]}
    return {"type": "json", "types": list(types)}


def _list_stored_types(field: Field) -> list[str]:
    if not field.encrypted:
        return list(field.types)
    return ["ciphertext", "null"] if "null" in field.types else ["ciphertext"]


def encode_actions(actions: Iterable[Action]) -> list[list[Any]]:
    return [_action(action) for action in actions]


def _action(action: Action) -> list[Any]:
    value = [action.value.tree] if action.value else []
    if action.verb == "log":
        return ["log", *value]
    if action.verb == "enqueue":
        return _encode_enqueue(action)
    if action.verb == "send":
        return ["send", _encode_send(action)]
    if action.verb == "if":
        return ["if", [_case(case) for case in action.cases]]
    if action.verb == "block":
        return ["block", encode_actions(action.cases[0].actions)]
    if action.verb == "foreach":
        return ["foreach", _loop(action)]
    return [action.verb, _encode_name(action.name, action.computed), *value]


def _encode_enqueue(action: Action) -> list[Any]:
    """Encode an enqueue; defaults are left out."""
    node: list[Any] = ["enqueue", action.name, action.src]
    options = encode_options(action.work or Work())
    if action.value or options:
        node.append(action.value.tree if action.value else ["null"])
    return [*node, options] if options else node


def encode_options(work: Work) -> dict[str, Any]:
    """Encode how a job is worked on; defaults are left out."""
    usual = Work()
    parts = {name: getattr(work, name) for name in ("attempts", "backoff", "lease", "timeout", "jitter")}
    options = {name: part for name, part in parts.items() if part != getattr(usual, name)}
    for name in ("priority", "group", "weight", "delay", "unique"):
        if value := getattr(work, name):
            options[name] = value.tree[1] if value.tree[0] == "num" and name in ("priority", "weight") else value.tree
    if work.debounce:
        options["debounce"] = work.debounce
    if work.stop:
        options["stop"] = " ".join(work.stop)
    return options


def _encode_name(name: str, computed: Value | None) -> Any:
    """Encode a name: text for a literal, a node (a list) for an expression."""
    return computed.tree if computed else name


def _encode_send(action: Action) -> dict[str, Any]:
    sending = action.sending
    assert sending is not None
    parts: dict[str, Any] = {
        "event": _encode_name(action.name, action.computed),
        "to": sending.to.tree if sending.to else None,
        "data": action.value.tree if action.value else None,
        "delay": sending.delay.tree if sending.delay else None,
        "id": _encode_name(sending.id, sending.computed),
        "idlocation": sending.idlocation,
        "type": sending.type.tree if sending.type else None,
    }
    return {key: part for key, part in parts.items() if part}


def _case(case: Case) -> dict[str, Any]:
    result: dict[str, Any] = {"then": encode_actions(case.actions)}
    if case.guard:
        result = {"guard": case.guard.expression.tree, "text": case.guard.expression.text} | result
    return result


def _loop(action: Action) -> dict[str, Any]:
    assert action.value is not None
    result: dict[str, Any] = {"in": action.value.tree, "item": action.name}
    if action.index:
        result["index"] = action.index
    return result | {"do": encode_actions(action.cases[0].actions)}
