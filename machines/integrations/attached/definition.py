"""Makes a definition of the transitions that a model declares, and publishes it when a process first needs it and when
the declarations have changed.

Conditions and permissions are code of the model. They are named in the description of a transition, and are no guards:
what is recorded has happened, so the machine has nothing to decide.
"""

import json
from typing import Any

from machines.catalog import publishing
from machines.engine import Engine

from .columns import NotAttachable, declare_context
from .libraries import ANY, ANY_OTHER, DeclaredTransition
from .registry import Attachment

TARGET = "target"
"""The field of an event's payload that names the state, where a transition declares several."""

_known: set[tuple[str, str]] = set()
"""Prefix of the keys, and machine: what this process has found published."""


def build_definition(attachment: Attachment) -> dict[str, Any]:
    states = attachment.states
    events = attachment.transitions
    if unknown := sorted(set(attachment.sla) - set(states.names.values())):
        raise NotAttachable(
            f"sla of {attachment.label} names {', '.join(unknown)}; its states are {', '.join(states.names.values())}"
        )
    first = states.find(attachment.library.get_initial()) or next(iter(states.names.values()), "")
    return {
        "id": attachment.machine,
        "description": f"Mirrors {attachment.label}: rows decide, and instances follow.",
        "meta": {"mirrored": attachment.label},
        "initial": first,
        **_declare_columns(attachment),
        "events": {name: _describe_event(sources) for name, sources in events.items()},
        "states": {
            name: _build_state(attachment, value, name) for value, name in states.names.items()
        },
    }  # fmt: skip


def _declare_columns(attachment: Attachment) -> dict[str, Any]:
    if not (names := attachment.columns):
        return {}
    return {"context": declare_context(attachment.model, names), "index": list(names)}


def _describe_event(sources: dict[Any, DeclaredTransition]) -> dict[str, str]:
    text = next((one.label for one in sources.values() if one.label), "")
    return {"description": text[:200]} if text else {}


def _build_state(attachment: Attachment, value: Any, name: str) -> dict[str, Any]:
    built: dict[str, Any] = {}
    if label := attachment.states.labels.get(name):
        built["description"] = label
    if level := attachment.sla.get(name):
        built["sla"] = level
    on = {}
    for event, sources in attachment.transitions.items():
        if (declared := find_transition(sources, value)) is not None:
            on[event] = _build_transitions(attachment, declared)
    return built | ({"on": on} if on else {})


def find_transition(sources: dict[Any, DeclaredTransition], value: Any) -> DeclaredTransition | None:
    """Return the transition of an event from a state: its own, else that of any state, else that of any other one."""
    for source in (value, ANY):
        if source in sources:
            return sources[source]
    other = sources.get(ANY_OTHER)
    return None if other is None or value in other.targets[:1] else other


def _build_transitions(attachment: Attachment, declared: DeclaredTransition) -> Any:
    names = attachment.states
    targets = [names.find(one) for one in declared.targets]
    targets = list(dict.fromkeys(one for one in targets if one is not None))
    about = _describe(attachment, declared)
    if declared.computes:
        about = [*about, "computes its target, and declares no states"]
        targets = list(names.names.values())
    said: dict[str, Any] = {"description": "; ".join(about)[:500]} if about else {}
    if declared.stays and not targets:
        return [said]
    stays = [said | {"guard": f"event.{TARGET} == ''"}] if declared.stays else []
    if len(targets) == 1 and not stays:
        return said | {"target": targets[0]}
    chosen = [said | {"target": one, "guard": f"event.{TARGET} == {_quote(one)}"} for one in targets]
    return [*stays, *chosen]


def is_open(attachment: Attachment, declared: DeclaredTransition) -> bool:
    """Tell whether an event has to name its target, since several are declared."""
    built = _build_transitions(attachment, declared)
    return isinstance(built, list) and any("guard" in one for one in built)


def _describe(attachment: Attachment, declared: DeclaredTransition) -> list[str]:
    found = []
    if declared.conditions:
        found.append("if " + " and ".join(declared.conditions))
    if declared.permission:
        found.append(f"permission {declared.permission}")
    if declared.on_error is not None:
        found.append(f"{attachment.states.find(declared.on_error)} when the method raises")
    return found


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def ensure(engine: Engine, attachment: Attachment) -> None:
    """Raise EngineUnavailable, DefinitionError."""
    known = (engine.keys.prefix, attachment.machine)
    if known not in _known:
        publish(engine, attachment)
        _known.add(known)


def publish(engine: Engine, attachment: Attachment) -> None:
    """Make the declarations of the code the current version, and have instances of older ones follow."""
    definition = build_definition(attachment)
    publication = publishing.prepare(definition)
    if not publishing.is_current(attachment.machine, publication.compiled):
        publishing.write(publication.compiled, notes=f"the declarations of {attachment.label}")


def migrate(engine: Engine, attachment: Attachment) -> None:
    """Move instances of older versions to the current one; those in a state that is gone get the initial one, and are
    put into the state of their row afterwards."""
    machine = attachment.machine
    current = engine.live(machine).version
    older = [number for number in engine.versions(machine) if number != current]
    if not older:
        return
    initial = build_definition(attachment)["initial"]
    names = set(attachment.states.names.values())
    for number in older:
        lost = [name for name in engine.definition(machine, number)["states"] if name not in names]
        plan = engine.plan(machine, current, from_versions=[number], states=dict.fromkeys(lost, initial))
        engine.migrate(plan, actor="row", reason="the declarations of the model have changed")
