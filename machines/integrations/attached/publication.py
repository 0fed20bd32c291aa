"""Publishes the machine of an attachment: when a process first needs it, and when the declarations have changed."""

from __future__ import annotations

from machines.catalog import publishing
from machines.engine import Engine

from .definition import build_definition
from .registry import Attachment

_known: set[tuple[str, str]] = set()
"""Prefix of the keys, and machine: what this process has found published."""


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
