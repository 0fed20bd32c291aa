"""Publishes a definition, for the admin, the API and the command line."""

from collections.abc import Callable
from typing import Any

from machines.audit.entries import AuditRecord
from machines.catalog import publishing
from machines.catalog.errors import ApprovalNeeded, DraftNeeded, NotAccepted
from machines.catalog.models import MachineVersion
from machines.catalog.rules import VersionChange, lock_versions, prepare_change
from machines.connections import get_engine
from machines.engine import UnknownMachine
from machines.engine.definitions import CompiledDefinition, outline
from machines.people.actor import Actor
from machines.people.errors import Forbidden


def publish(  # noqa: PLR0913
    actor: Actor,
    definition: object | CompiledDefinition,
    *,
    reason: str = "",
    rollout: float | None = None,
    second: str = "",
    draft: int | None = None,
    check: Callable[[VersionChange], None] | None = None,
    operation: str = "publish",
) -> MachineVersion:
    """Make it its machine's current version; the same document is the same version. ``reason``: what changed, kept with
    the version. A new machine takes the right on all of them. A definition that is compiled is not read again.
    ``rollout``: per cent of new instances that get it. ``draft``: the number of the draft that it was; ``second``: who
    approved that. ``check``: called once no other change of the versions can come in between, raises what forbids it.
    ``operation``: as ``version_rules`` names it.

    The machines it brings along are published first, by the same rule: each that is new or changes takes the right on
    it and leaves an entry of its own. One right that is missing refuses all of them, before anything is written.

    Raises Forbidden, NotAccepted, DefinitionError with every finding, Diverged, EngineUnavailable; DraftNeeded where a
    second person has to approve it, or a machine that it brings along.
    """
    machine = _read_name(definition)
    target = "" if draft is None else f"draft {draft}"
    with actor.records("publish", machine=machine, target=target, reason=reason) as entry:
        entry.note(**({"draft": draft} if draft is not None else {}), **({"approved_by": second} if second else {}))
        actor.demand("publish", machine)
        publication = publishing.prepare(definition)
        with lock_versions(actor, *publication.own):
            change = prepare_change(operation, machine, definition=publication.compiled.outline)
            if check is not None:
                try:
                    check(change)
                except ApprovalNeeded:  # the request has an entry of its own
                    entry.void()
                    raise
            _demand_drafts(publication, change, second)
            for name in publication.along:
                _demand_along(actor, name, machine, reason)
            _demand_recipients(actor, publication)
            for name, inner in publication.along.items():
                with actor.records("publish", machine=name, reason=reason) as inner_entry:
                    inner_entry.note(within=machine)
                    _write(actor, inner, reason, inner_entry)
            return _write(actor, publication.compiled, reason, entry, rollout)


def _demand_drafts(publication: publishing.Publication, change: VersionChange, second: str) -> None:
    """Demand a draft for what takes a second person. Raises DraftNeeded."""
    changes = [
        prepare_change(change.operation, name, definition=inner.outline) for name, inner in publication.along.items()
    ]
    for one in (*changes, *(() if second else (change,))):
        if one.rule is not None:
            raise DraftNeeded(one.machine, one.rule)


def _demand_along(actor: Actor, name: str, within: str, reason: str) -> None:
    """Demand the right on a machine that is brought along. Its audit has the refusal too."""
    if actor.may("publish", name):
        return
    with actor.records("publish", machine=name, reason=reason) as entry:
        entry.note(within=within)
        raise Forbidden("publish", name, within=within)


def _demand_recipients(actor: Actor, publication: publishing.Publication) -> None:
    """Demand rights on machines that a definition sends to: the right to publish one does not move the instances of
    others. Raises NotAccepted for the first."""
    if not actor.is_person:
        return
    for compiled in (*publication.along.values(), publication.compiled):
        sender = compiled.source["id"]
        for one in compiled.recipients:
            if one.machine in publication.own:
                continue
            may = any(actor.may(right, one.machine) for right in ("fire", "publish"))
            if not may and not _accepts(one.machine, sender):
                raise NotAccepted(one.machine, sender, one.path)


def _accepts(machine: str, sender: str) -> bool:
    """Tell whether a machine accepts another one; false where there is none."""
    try:
        return not {"*", sender}.isdisjoint(outline(get_engine().definition(machine)).accepts or ())
    except UnknownMachine:
        return False


def _write(
    actor: Actor, compiled: CompiledDefinition, reason: str, entry: AuditRecord, rollout: float | None = None
) -> MachineVersion:
    user = actor.user if actor.is_person else None
    version = publishing.write(compiled, user=user, notes=reason, rollout=rollout)
    entry.name(target=f"v{version.number}")
    entry.note(digest=version.digest, **({} if rollout is None else {"rollout": rollout}))
    return version


def _read_name(definition: Any) -> str:
    source = definition.source if isinstance(definition, CompiledDefinition) else definition
    name = source.get("id") if isinstance(source, dict) else None
    return name if isinstance(name, str) else ""
