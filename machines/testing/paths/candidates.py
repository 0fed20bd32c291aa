"""What can be done to an instance next: events with payloads that guards ask for, ends of jobs, and time.

Values come from the definition: the constants that its guards compare fields with, the data of the instance, and the
declared types. Texts are parsed, and never evaluated.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from machines.engine import Instance
from machines.engine.definitions import EventOutline, FieldOutline, Outline, TransitionOutline
from machines.engine.definitions.outline import is_match
from machines.testing.scenarios.document import When
from machines.testing.scenarios.runner import Sandbox

MOST_VALUES = 7  # of one field
MOST_PAYLOADS = 24  # of one event
MOST_FIELDS = 4  # of a payload that are varied
MOST_STARTS = 8
SECOND, DAY = 1000, 86_400_000  # ms
LONGEST_WAIT = 3650 * DAY
_PATH = re.compile(r"\bevent((?:\.[A-Za-z_]\w*)+)")
_DEFAULTS: dict[str, list[Any]] = {
    "string": ["x", ""],
    "integer": [1, 0],
    "number": [1, 0],
    "boolean": [True, False],
    "array": [[], ["x"]],
    "object": [{}],
    "null": [None],
}

Path = tuple[str, ...]


def list_candidates(sandbox: Sandbox, outlines: Mapping[str, Outline]) -> list[When]:
    """List what can be done now, events first, to the instance and to the machines that it talks to."""
    instance = sandbox.read()
    found = [] if instance.done else list(_list_events(outlines[sandbox.machine], instance, sandbox.kit.now, ""))
    others = [name for name in outlines if name != sandbox.machine]
    for machine in others:
        running = sandbox.find_instances(machine)
        if len(running) == 1:
            found += _list_events(outlines[machine], running[0], sandbox.kit.now, machine)
    found += _list_job_ends(sandbox, outlines)
    found += _list_delays(sandbox, outlines, instance)
    return list({repr(one): one for one in found}.values())


def list_starts(outline: Outline) -> list[dict[str, Any]]:
    """List data to create instances with: what has to be given, then values that guards ask of fields that nothing
    sets."""
    needed = {
        field.name: _list_defaults(field)[0] for field in outline.data if field.required and field.initial is None
    }
    transitions = [one for state in outline.states for one in state.transitions]
    written = " ".join(action for state in outline.states for action in (*state.entry, *state.exit))
    written += " ".join(action for one in transitions for action in one.actions)
    starts = [needed]
    for field in outline.data:
        if re.search(rf"\b{re.escape(field.name)} =", written):
            continue
        for value in _list_compared((field.name,), transitions, {}):
            starts.append({**needed, field.name: value})
    unique = {repr(one): one for one in starts}
    return list(unique.values())[:MOST_STARTS]


# Events


def _list_events(outline: Outline, instance: Instance, now: int, to: str) -> Iterator[When]:
    for event in outline.events_of(instance.configuration):
        listening = list(_list_listening(outline, instance.configuration, event.name))
        for payload in _list_payloads(event, listening, instance.data, outline):
            yield When("event", event.name, payload=payload or None, machine=to)


def _list_listening(outline: Outline, configuration: Iterable[str], event: str) -> Iterator[TransitionOutline]:
    states = {state.name: state for leaf in configuration for state in outline.lineage(leaf)}
    for state in states.values():
        for one in state.transitions:
            if any(is_match(descriptor, event) for descriptor in one.events):
                yield one


def _list_payloads(
    event: EventOutline, listening: list[TransitionOutline], data: Mapping[str, Any], outline: Outline
) -> Iterator[dict[str, Any]]:
    """List payloads of an event: combinations of the values of the fields that guards read, one value for others."""
    values: dict[Path, list[Any]] = {
        (field.name,): _merge(_list_compared(("event", field.name), listening, data), _list_defaults(field))
        for field in event.fields or ()
    }
    for path in _list_paths(listening):
        if len(path) > 1 or event.fields is None:
            values[path] = _merge(
                _list_compared(("event", *path), listening, data), _list_assigned(path, listening, outline)
            )
    guards = " ".join(one.guard_text or "" for one in listening)
    yield from _combine(values, guards)


def _combine(values: Mapping[Path, list[Any]], guards: str) -> Iterator[dict[str, Any]]:
    paths = [path for path in values if not any(other != path and other[: len(path)] == path for other in values)]
    varied = [path for path in paths if re.search(rf"\bevent\.{re.escape('.'.join(path))}\b", guards)][:MOST_FIELDS]
    fixed = [path for path in paths if path not in varied]
    for chosen in itertools.islice(itertools.product(*(values[path][:MOST_VALUES] for path in varied)), MOST_PAYLOADS):
        payload: dict[str, Any] = {}
        for path, value in [*zip(varied, chosen, strict=True), *((path, values[path][0]) for path in fixed)]:
            _put(payload, path, value)
        yield payload


def _put(payload: dict[str, Any], path: Path, value: Any) -> None:
    for key in path[:-1]:
        payload = payload.setdefault(key, {})
    payload[path[-1]] = value


def _list_paths(transitions: Iterable[TransitionOutline]) -> list[Path]:
    """List the fields of the payload that guards and actions read, as ``("result", "found")``."""
    texts = [text for one in transitions for text in (one.guard_text or "", *one.actions)]
    found = [tuple(match[1].strip(".").split(".")) for text in texts for match in _PATH.finditer(text)]
    return list(dict.fromkeys(found))


def _list_assigned(path: Path, transitions: Iterable[TransitionOutline], outline: Outline) -> list[Any]:
    """List values of the type of the data field that actions set to this part of the payload; some of any type
    otherwise."""
    end = f" = event.{'.'.join(path)}"
    names = {text.removesuffix(end) for one in transitions for text in one.actions if text.endswith(end)}
    found = [value for field in outline.data if field.name in names for value in _list_defaults(field)]
    return found or [True, False, "x"]


def _list_defaults(field: FieldOutline) -> list[Any]:
    found = [value for kind in field.types for value in _DEFAULTS.get(kind, ["x", 1, True])]
    return _merge([] if field.initial is None else [field.initial], found)


# Values that guards compare with


def _list_compared(path: Path, transitions: Iterable[TransitionOutline], data: Mapping[str, Any]) -> list[Any]:
    """List the values that guards compare a field with, and their neighbours; True and False for a field that is
    asked for its truth."""
    found: list[Any] = []
    for one in transitions:
        for left, right in _list_comparisons(one.guard_text):
            for mine, other in ((left, right), (right, left)):
                if _name(mine) == path or path in [_name(part) for part in ast.walk(mine)]:
                    found = _merge(found, _read_values(other, data))
        if any(_name(node) == path for node in _list_truths(one.guard_text)):
            found = _merge(found, [True, False])
    return found


def _parse(text: str | None) -> ast.AST | None:
    try:
        return ast.parse(text or "None", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _list_comparisons(text: str | None) -> Iterator[tuple[ast.AST, ast.AST]]:
    tree = _parse(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            yield from itertools.pairwise(parts)


def _list_truths(text: str | None) -> list[ast.AST]:
    """List the parts of a guard that count as true or false by themselves."""
    tree = _parse(text)
    waiting, found = ([] if tree is None else [tree]), []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.BoolOp):
            waiting += node.values
        elif isinstance(node, ast.UnaryOp):
            waiting.append(node.operand)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            found.append(node)
    return found


def _name(node: ast.AST) -> Path:
    """Return ``event.result.found`` as a tuple; empty for another expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


def _read_values(node: ast.AST, data: Mapping[str, Any]) -> list[Any]:
    """Return the values that an expression may stand for: constants, and the current data."""
    if isinstance(node, ast.Constant):
        return _add_neighbours(node.value)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [value for item in node.elts for value in _read_values(item, data)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return _add_neighbours(-value) if isinstance(value, (int, float)) else []
    found: list[Any] = []
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in data:
            found = _merge(found, _add_neighbours(data[part.id]))
        elif isinstance(part, ast.Constant):
            found = _merge(found, _add_neighbours(part.value))
    return found


def _add_neighbours(value: Any) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return [value]
    if isinstance(value, (int, float)):
        return [value, value + 1, value - 1]
    return [value, f"{value}x"] if isinstance(value, str) else []


def _merge(first: list[Any], second: list[Any]) -> list[Any]:
    """Join lists without repeating a value; 1 and True are two."""
    return list({repr(value): value for value in [*first, *second]}.values())


# Jobs and time


def _list_job_ends(sandbox: Sandbox, outlines: Mapping[str, Outline]) -> Iterator[When]:
    """List results and the failure of each job of an invoke that is ready."""
    for job in sandbox.list_waiting():
        if not job.invoke or job.place != "ready" or job.machine not in outlines:
            continue
        outline = outlines[job.machine]
        done = f"done.invoke.{job.invoke}"
        listening = [one for state in outline.states for one in state.transitions if done in one.events]
        data = job.data if isinstance(job.data, dict) else {}
        to = "" if job.machine == sandbox.machine else job.machine
        event = EventOutline(done, "", None)
        for payload in _list_payloads(event, listening, data, outline) if listening else [{}]:
            yield When("job", job.invoke, machine=to, outcome="done", result=payload.get("result"))
        yield When("job", job.invoke, machine=to, outcome="failed", error="failed by the scenario")


def _list_delays(sandbox: Sandbox, outlines: Mapping[str, Outline], instance: Instance) -> Iterator[When]:
    """List how long it is until the next timer, and until guards that ask for the time change their answer."""
    now = sandbox.kit.now
    instances = [
        instance,
        *(one for name in outlines if name != instance.machine for one in sandbox.find_instances(name)),
    ]
    dues = [timer.due for one in instances for timer in one.timers]
    dues += [job.due for job in sandbox.list_waiting() if job.place == "delayed"]
    waits = [min(dues) - now] if dues else []
    for state in (state for leaf in instance.configuration for state in outlines[instance.machine].lineage(leaf)):
        for one in state.transitions:
            for left, right in _list_comparisons(one.guard_text):
                if ("now",) in [_name(part) for side in (left, right) for part in ast.walk(side)]:
                    waits += [
                        round(value * 1000) - now + SECOND
                        for side in (left, right)
                        for value in _read_values(side, instance.data)
                        if isinstance(value, (int, float)) and not isinstance(value, bool)
                    ]
    for wait in dict.fromkeys(waits):
        if 0 < wait <= LONGEST_WAIT:
            yield When("after", delay=wait)
