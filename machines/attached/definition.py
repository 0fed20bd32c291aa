"""Makes a definition of the transitions that a model declares.

Conditions and permissions are code of the model. They are named in the description of a transition, and are no guards:
what is recorded has happened, so the machine has nothing to decide.
"""

from __future__ import annotations

import json
from typing import Any

from .registry import Attachment
from .states import list_targets, list_transitions

TARGET = "target"
"""The field of an event's payload that names the state, where a transition declares several."""


def build_definition(attachment: Attachment) -> dict[str, Any]:
    states = attachment.states
    methods = list_transitions(attachment.model, attachment.field)
    first = states.find(attachment.field.get_default()) or next(iter(states.names.values()), "")
    return {
        "id": attachment.machine,
        "description": f"Mirrors {attachment.label}: rows decide, and instances follow.",
        "meta": {"mirrored": attachment.label},
        "initial": first,
        "events": {name: _describe_event(attachment, name, sources) for name, sources in methods.items()},
        "states": {
            name: _build_state(attachment, value, name, methods) for value, name in states.names.items()
        },
    }  # fmt: skip


def _describe_event(attachment: Attachment, name: str, sources: dict[Any, Any]) -> dict[str, str]:
    labels = [str(one.custom["label"]) for one in sources.values() if one.custom.get("label")]
    doc = (getattr(attachment.model, name).__doc__ or "").strip().partition("\n")[0]
    text = (labels or [doc])[0]
    return {"description": text[:200]} if text else {}


def _build_state(attachment: Attachment, value: Any, name: str, methods: dict[str, Any]) -> dict[str, Any]:
    built: dict[str, Any] = {}
    if label := attachment.states.labels.get(name):
        built["description"] = label
    on = {}
    for method, sources in methods.items():
        if (transition := find_transition(sources, value)) is not None:
            on[method] = _build_transitions(attachment, transition)
    return built | ({"on": on} if on else {})


def find_transition(sources: dict[Any, Any], value: Any) -> Any:
    """Return the transition of a method from a state: its own, else that of any state, else that of any other one."""
    for source in (value, "*"):
        if source in sources:
            return sources[source]
    other = sources.get("+")
    return None if other is None or other.target == value else other


def _build_transitions(attachment: Attachment, transition: Any) -> Any:
    names = attachment.states
    targets = [names.find(one) for one in list_targets(transition)]
    targets = list(dict.fromkeys(one for one in targets if one is not None))
    about = _describe(attachment, transition)
    if hasattr(transition.target, "get_state") and not transition.target.allowed_states:
        about = [*about, "computes its target, and declares no states"]
        targets = list(names.names.values())
    said: dict[str, Any] = {"description": "; ".join(about)[:500]} if about else {}
    if transition.target is None:
        stays = [said] if not targets else [said | {"guard": f"event.{TARGET} == ''"}]
    else:
        stays = []
    if len(targets) == 1 and not stays:
        return said | {"target": targets[0]}
    chosen = [said | {"target": one, "guard": f"event.{TARGET} == {_quote(one)}"} for one in targets]
    return [*stays, *chosen]


def is_open(attachment: Attachment, transition: Any) -> bool:
    """Tell whether an event has to name its target, since several are declared."""
    built = _build_transitions(attachment, transition)
    return isinstance(built, list) and any("guard" in one for one in built)


def _describe(attachment: Attachment, transition: Any) -> list[str]:
    found = []
    if transition.conditions:
        found.append("if " + " and ".join(_name(one) for one in transition.conditions))
    if transition.permission:
        permission = transition.permission
        found.append("permission " + (permission if isinstance(permission, str) else _name(permission)))
    if transition.on_error is not None:
        found.append(f"{attachment.states.find(transition.on_error)} when the method raises")
    return found


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
