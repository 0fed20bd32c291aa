"""Publishing a definition: by the admin, the API and the command line."""

from __future__ import annotations

from typing import Any

from machines import publishing
from machines.models import MachineVersion

from .actor import Actor


def publish(actor: Actor, definition: object, *, reason: str = "") -> MachineVersion:
    """Make it its machine's current version; the same document is the same version. ``reason``: what changed, kept with
    the version. A new machine takes the right on all of them.

    Raises Forbidden, DefinitionError with every finding, Diverged, EngineUnavailable.
    """
    machine = _named(definition)
    with actor.records("publish", machine=machine, reason=reason) as deed:
        actor.demand("publish", machine)
        version = publishing.publish(definition, user=actor.user if actor.is_person else None, notes=reason)
        deed.name(target=f"v{version.number}")
        deed.note(digest=version.digest)
    return version


def _named(definition: Any) -> str:
    name = definition.get("id") if isinstance(definition, dict) else None
    return name if isinstance(name, str) else ""
