"""Reads instances for an actor, redacted where fields are sensitive and the actor may not reveal them.

Each raises Forbidden without ``view`` on the machine, and what the engine raises. A caller that reads several things
of one instance hands the same ``redactor`` to each: what is hidden in one answer is found in the texts of those after
it.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from machines.audit import redaction
from machines.audit.redaction import Redactor
from machines.connections import get_engine
from machines.engine import (
    Explanation,
    Inspection,
    Instance,
    Page,
    Problem,
    SignalboxError,
    Step,
    UnknownInstance,
)
from machines.instances.archive import store
from machines.instances.archive.sql import Page as ArchivePage
from machines.instances.archive.store import get_archive
from machines.people.actor import Actor
from machines.people.permissions import among
from machines.people.redaction import redactor_of

from . import guesses


def get(actor: Actor, machine: str, id: str, *, redactor: Redactor | None = None) -> Instance:
    """Return an instance, of the archive where Redis has it no longer."""
    actor.demand("view", machine)
    try:
        found = get_engine().get(machine, id)
    except UnknownInstance:
        found, _ = store.open_archived(machine, id)
    return (redactor or redactor_of(actor, machine)).instance(among(found, actor.scope()))


def read_fields(actor: Actor, machine: str, id: str, names: Container[str]) -> dict[str, Any]:
    """Return some fields of an instance's data, redacted. Raises Forbidden."""
    actor.demand("view", machine)
    data = {name: value for name, value in get_engine().get(machine, id).data.items() if name in names}
    return redactor_of(actor, machine).of(id).data(data)


def find_problems(actor: Actor, machine: str, id: str) -> list[Problem]:
    """Return what holds an instance up, with the texts that handlers wrote redacted. Raises Forbidden."""
    actor.demand("view", machine)
    get_engine().get(machine, id)  # raises where there is none
    redactor, found = redactor_of(actor, machine).of(id), get_engine().problems(machine, [id])
    return [replace(one, text=redactor.redact_text(one.text)) for one in found.get(id, [])]


def inspect(
    actor: Actor, machine: str, id: str, *, events: Iterable[str] = (), steps: int = 100
) -> tuple[Inspection, Redactor]:
    """Inspect an instance as ``Engine.inspect`` does, in one round trip, and return the redactor that hid its values.
    An archived instance waits for nothing and takes no event."""
    actor.demand("view", machine)
    try:
        found = get_engine().inspect(machine, id, events=events, steps=steps)
    except UnknownInstance:
        kept, steps_kept = store.open_archived(machine, id)
        found = Inspection(kept, steps_kept[:steps], [], [], {}, get_engine().sensitive(machine))
    explanations = guesses.withhold(actor, machine, id, found.instance.revision, found.explanations)
    redactor = redactor_of(actor, machine, found.sensitive)
    instance, inside = redactor.instance(among(found.instance, actor.scope())), redactor.of(id)
    seen = replace(
        found,
        instance=instance,
        steps=inside.steps(found.steps),
        jobs=[redactor.job(job) for job in found.jobs],
        explanations={name: _redact_explanation(inside, explanation) for name, explanation in explanations.items()},
    )
    return seen, redactor


def explain_all(
    actor: Actor, machine: str, id: str, events: Iterable[str], *, redactor: Redactor
) -> dict[str, Explanation | SignalboxError]:
    """Return what each of these events would do without a payload, or why that cannot be said. One round trip."""
    actor.demand("view", machine)
    explanation = get_engine().explain_all(machine, id, events)
    revisions = [one.revision for one in explanation.values() if isinstance(one, Explanation)]
    explanation = guesses.withhold(actor, machine, id, max(revisions, default=0), explanation)
    return {name: _redact_explanation(redactor.of(id), one) for name, one in explanation.items()}


def _redact_explanation(redactor: Redactor, explanation: Explanation | SignalboxError) -> Explanation | SignalboxError:
    return redactor.explanation(explanation) if isinstance(explanation, Explanation) else explanation


def history(
    actor: Actor,
    machine: str,
    id: str,
    *,
    limit: int = 100,
    before: int | None = None,
    redactor: Redactor | None = None,
) -> list[Step]:
    """Return the latest steps, newest first, of an archived instance, too; ``before`` is a revision, for the page
    after."""
    actor.demand("view", machine)
    try:
        found = get_engine().history(machine, id, limit=limit, before=before)
    except UnknownInstance:
        _, kept = store.open_archived(machine, id)
        found = [step for step in kept if before is None or step.revision < before][:limit]
    return (redactor or redactor_of(actor, machine)).of(id).steps(found)


def find_archived(actor: Actor, machine: str, **terms: Any) -> ArchivePage:
    """Find archived instances. ``terms``: those of ``Archive.search``. Records tell id, state, times and the last
    actor, and no data."""
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
    """Return what firing it would do, and why. It asks for no right to fire."""
    actor.demand("view", machine)
    guesses.spend_explanation(actor, machine, id, event, payload)
    redactor = (redactor or redactor_of(actor, machine)).of(id)
    redactor.learn(payload)
    return redactor.explanation(get_engine().explain(machine, id, event, payload))


def find(actor: Actor, machine: str, /, *, redactor: Redactor | None = None, **terms: Any) -> Page:
    """Find instances. ``terms``: those of ``Engine.find``. A field that is hidden is not found by either: that would
    tell its value."""
    actor.demand("view", machine)
    terms = conceal_terms(actor.may("reveal", machine), machine, terms)
    page, scope = get_engine().find(machine, **terms), actor.scope()
    seen = (redactor or redactor_of(actor, machine)).instances(page.instances)
    return replace(page, instances=[among(instance, scope) for instance in seen])


def conceal_terms(reveal: bool, machine: str, terms: Mapping[str, Any]) -> dict[str, Any]:
    """Return terms of ``Engine.find`` that are not looked for in what is hidden, nor in copies of it. Raise Concealed
    for others that would tell it."""
    text, asked = terms.get("text"), list(terms.get("where") or ())
    without = sorted(redaction.redactor_if(reveal, machine).fields) if text or asked else []
    if text or without:
        words = text["words"] if isinstance(text, Mapping) else text or ()
        text = {"words": words, "without": without, "fields": asked}
    found = {**terms, "text": text}
    demand_findable(reveal, machine, found)
    return found


def demand_findable(reveal: bool, machine: str, terms: Mapping[str, Any]) -> None:
    """Raise Concealed where terms of ``Engine.find`` would tell what is hidden: values of fields, or what a handler
    said, of which ``error`` finds the beginning."""
    named = [*(terms.get("where") or ()), *([terms["by"]] if terms.get("by") else ())]
    redaction.demand_findable(reveal, machine, named, terms.get("error") or "", terms.get("text"))


def counts(actor: Actor, machine: str) -> dict[str, int]:
    actor.demand("view", machine)
    return get_engine().counts(machine)
