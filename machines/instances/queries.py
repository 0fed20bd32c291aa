"""Reads instances for an actor, redacted where fields are sensitive and the actor may not reveal them.

Each raises Forbidden without ``view`` on the machine, and what the engine raises. A caller that reads several things
of one instance hands the same ``redactor`` to each: what is hidden in one answer is found in the texts of those after
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from machines.audit.reveals import RevealAudit, Viewer
from machines.catalog import redaction
from machines.catalog.redaction import Redactor
from machines.connections import get_engine
from machines.engine import (
    BadPayload,
    Explanation,
    Inspection,
    Instance,
    Page,
    Refused,
    SensitiveFields,
    SignalboxError,
    Step,
    UnknownInstance,
)
from machines.instances.archive import opening
from machines.instances.archive.record import Page as ArchivePage
from machines.instances.archive.store import get_archive
from machines.people.actor import Actor
from machines.people.limits import guesses
from machines.people.permissions import among


def redactor_of(actor: Actor, machine: str, known: SensitiveFields | None = None) -> Redactor:
    """What is hidden from them of this machine. What a person is shown of it in clear is noted for the audit.

    ``known``: what is sensitive, where that was read already; else it costs a round trip.
    """
    reveal = reveals(actor, machine)
    if reveal and actor.is_person:
        return RevealAudit(Viewer(actor.user, actor.source), machine, hidden=None if known is None else known.names)
    return redaction.redactor_if(reveal, machine, known)


@contextmanager
def redacting(actor: Actor, machine: str, *, strict: bool = False) -> Iterator[None]:
    """Errors of the engine leave the block without the values they would repeat, for this actor or, ``strict``, for
    anybody. What is sensitive is asked for only where there is such an error."""
    try:
        yield
    except (Refused, BadPayload):
        redactor = redaction.strict_redactor(machine) if strict else redactor_of(actor, machine)
        with redactor.raising():
            raise


def reveals(actor: Actor, machine: str) -> bool:
    return actor.may("reveal", machine)


def seen_by(actor: Actor, instance: Instance) -> Instance:
    """An instance of a machine they may see: masked, and without kin of machines out of their scope."""
    return redactor_of(actor, instance.machine).instance(among(instance, actor.scope()))


def get(actor: Actor, machine: str, id: str, *, redactor: Redactor | None = None) -> Instance:
    """An instance, of the archive where Redis has it no longer."""
    actor.demand("view", machine)
    try:
        found = get_engine().get(machine, id)
    except UnknownInstance:
        found, _ = opening.open_archived(machine, id)
    return (redactor or redactor_of(actor, machine)).instance(among(found, actor.scope()))


def inspect(
    actor: Actor, machine: str, id: str, *, events: Iterable[str] = (), steps: int = 100
) -> tuple[Inspection, Redactor]:
    """As ``Engine.inspect``, in one round trip, and the redactor that hid what is hidden from them in it. An archived
    instance waits for nothing and takes no event."""
    actor.demand("view", machine)
    try:
        found = get_engine().inspect(machine, id, events=events, steps=steps)
    except UnknownInstance:
        kept, told = opening.open_archived(machine, id)
        found = Inspection(kept, told[:steps], [], [], {}, get_engine().sensitive(machine))
    explanations = guesses.withhold(actor, machine, id, found.instance.revision, found.explanations)
    redactor = redactor_of(actor, machine, found.sensitive)
    instance, inside = redactor.instance(among(found.instance, actor.scope())), redactor.of(id)
    seen = replace(
        found,
        instance=instance,
        steps=inside.steps(found.steps),
        jobs=[redactor.job(job) for job in found.jobs],
        explanations={name: _explained(inside, told) for name, told in explanations.items()},
    )
    return seen, redactor


def explain_all(
    actor: Actor, machine: str, id: str, events: Iterable[str], *, redactor: Redactor
) -> dict[str, Explanation | SignalboxError]:
    """What each of these events would do without a payload, or why that cannot be said. One round trip."""
    actor.demand("view", machine)
    told = get_engine().explain_all(machine, id, events)
    revisions = [one.revision for one in told.values() if isinstance(one, Explanation)]
    told = guesses.withhold(actor, machine, id, max(revisions, default=0), told)
    return {name: _explained(redactor.of(id), one) for name, one in told.items()}


def _explained(redactor: Redactor, told: Explanation | SignalboxError) -> Explanation | SignalboxError:
    return redactor.explanation(told) if isinstance(told, Explanation) else told


def history(
    actor: Actor,
    machine: str,
    id: str,
    *,
    limit: int = 100,
    before: int | None = None,
    redactor: Redactor | None = None,
) -> list[Step]:
    """The latest steps, newest first, of an archived instance, too; ``before`` is a revision, for the page after."""
    actor.demand("view", machine)
    try:
        found = get_engine().history(machine, id, limit=limit, before=before)
    except UnknownInstance:
        _, told = opening.open_archived(machine, id)
        found = opening.select_steps(told, limit, before)
    return (redactor or redactor_of(actor, machine)).of(id).steps(found)


def find_archived(actor: Actor, machine: str, **terms: Any) -> ArchivePage:
    """``terms``: those of ``Archive.search``. Records tell id, state, times and the last actor, and no data."""
    actor.demand("view", machine)
    get_engine().versions(machine)  # raises where there is no such machine
    return get_archive().search(machine, **terms)


def explain(
    actor: Actor,
    machine: str,
    id: str,
    event: str,
    payload: Mapping[str, Any] | None = None,
    *,
    redactor: Redactor | None = None,
) -> Explanation:
    """What firing it would do, and why. It asks for no right to fire."""
    actor.demand("view", machine)
    guesses.spend_explanation(actor, machine, id, event, payload)
    redactor = (redactor or redactor_of(actor, machine)).of(id)
    redactor.learn(payload)
    return redactor.explanation(get_engine().explain(machine, id, event, payload))


def find(actor: Actor, machine: str, /, *, redactor: Redactor | None = None, **terms: Any) -> Page:
    """``terms``: those of ``Engine.find``. A field that is hidden is not found by either: that would tell its value."""
    actor.demand("view", machine)
    demand_findable(reveals(actor, machine), machine, terms)
    page, scope = get_engine().find(machine, **terms), actor.scope()
    seen = (redactor or redactor_of(actor, machine)).instances(page.instances)
    return replace(page, instances=[among(instance, scope) for instance in seen])


def demand_findable(reveal: bool, machine: str, terms: Mapping[str, Any]) -> None:
    """Raises Concealed where terms of ``Engine.find`` would tell what is hidden: values of fields, or what a handler
    said, of which ``error`` finds the beginning."""
    redaction.demand_findable(reveal, machine, named_by(terms), terms.get("error") or "")


def named_by(terms: Mapping[str, Any]) -> list[str]:
    """The data fields that terms of ``Engine.find`` name."""
    return [*(terms.get("where") or ()), *([terms["by"]] if terms.get("by") else ())]


def counts(actor: Actor, machine: str) -> dict[str, int]:
    actor.demand("view", machine)
    return get_engine().counts(machine)
