"""A chart as the definition that ``publish`` takes."""

from __future__ import annotations

from typing import Any

from .language import CONTEXT, Action
from .model import Chart, State, Transition

QUEUE = "work"  # of every invoke
HISTORY = 10_000  # steps kept: all of them, for the tests that look back


def definition_of(chart: Chart) -> dict[str, Any]:
    made = {"id": chart.top.name, "context": CONTEXT, "history": HISTORY, "errors": chart.errors}
    return made | _state(chart.top)


def _state(state: State) -> dict[str, Any]:
    if state.is_history:
        return {"type": "history", "history": state.kind, "target": _start(state)}
    parts: dict[str, Any] = {
        "type": state.kind if state.kind in ("parallel", "final") else "",
        "entry": _actions(state.entry),
        "exit": _actions(state.exit),
        "initial": _start(state) if state.kind == "compound" else "",
        "on": _grouped((transition.descriptor, transition) for transition in state.on),
        "invoke": _invoke(state) if state.work else "",
        "onDone": [_transition(transition) for transition in state.done],
        "after": _grouped((str(transition.delay), transition) for transition in state.after),
        "always": [_transition(transition) for transition in state.always],
        "states": {child.name: _state(child) for child in state.children},
        "output": {"x": state.output} if state.output else "",
    }
    return {key: part for key, part in parts.items() if part}


def _invoke(state: State) -> dict[str, Any]:
    """By default an invoke has the name of its state. ``worked`` holds what ends well, then what fails."""
    ways: dict[str, Any] = {"onDone": [], "onError": []}
    for transition in state.worked:
        ways["onDone" if transition.descriptor.startswith("done") else "onError"].append(_transition(transition))
    return {"src": QUEUE, "retry": {"attempts": 1}} | {key: way for key, way in ways.items() if way}


def _start(state: State) -> Any:
    target = _target(state.initial)
    return {"target": target, "actions": _actions(state.initial_actions)} if state.initial_actions else target


def _grouped(found: Any) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for key, transition in found:
        groups.setdefault(key, []).append(_transition(transition))
    return groups


def _transition(transition: Transition) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "target": _target(transition.targets),
        "guard": transition.guard.text if transition.guard else "",
        "actions": _actions(transition.actions),
        "reenter": transition.reenter,
    }
    return {key: part for key, part in parts.items() if part}


def _target(names: tuple[str, ...]) -> Any:
    marked = [f"#{name}" for name in names]
    return marked[0] if len(marked) == 1 else marked


def _actions(actions: tuple[Action, ...]) -> list[Any]:
    return [action.json for action in actions]
