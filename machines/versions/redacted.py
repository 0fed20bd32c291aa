"""Plans, dry runs and replays as one person may see them.

They are made of definitions, names and counts, but some of their texts come from instances: literals in the expressions
of a plan, reasons of a refusal, and the data in which a replay differs. Of a machine with sensitive fields, people
without the right to reveal see none of these: deny by default, since nobody can tell which value they repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from machines.catalog.redaction import MASK, Redactor
from machines.engine.versions import DryRun, MigrationPlan, Replay, SourcePlan
from machines.engine.versions.records import StepOutcome
from machines.instances.queries import redactor_of
from machines.people.actor import Actor


def hide_plan(actor: Actor, plan: MigrationPlan) -> MigrationPlan:
    """Return the plan without its expressions over the data. Its ``id`` is another one then: show that of the
    original."""
    if redactor_of(actor, plan.machine).open:
        return plan
    findings = tuple(replace(one, message=MASK, hint="") if "data" in one.path else one for one in plan.findings)
    return replace(plan, sources=tuple(map(_hide_source, plan.sources)), findings=findings)


def hide_document(actor: Actor, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same of its JSON."""
    plan = MigrationPlan.from_dict(document)
    return hide_plan(actor, plan).as_dict() | {"id": plan.id}


def hide_dry_run(actor: Actor, machine: str, found: DryRun) -> DryRun:
    """Return the dry run without reasons, and without effects that name a sensitive field; the codes stay."""
    redactor = redactor_of(actor, machine)
    if redactor.open:
        return found
    classes = [
        replace(one, reason=redactor.redact_text(one.reason), effects=tuple(map(redactor.message, one.effects)))
        for one in found.classes
    ]
    return replace(found, classes=classes, refused=[replace(one, reason=MASK) for one in found.refused])


def hide_replay(actor: Actor, found: Replay) -> Replay:
    """Return the replay without the values in which it differs from the record; the names of the fields stay."""
    redactor = redactor_of(actor, found.machine)
    if redactor.open:
        return found
    divergences = [
        replace(one, expected=_hide_outcome(redactor, one.expected), actual=_hide_outcome(redactor, one.actual))
        for one in found.divergences
    ]
    return replace(found, divergences=divergences)


def _hide_source(source: SourcePlan) -> SourcePlan:
    back = _hide_source(source.back) if source.back is not None else None
    return replace(source, data=dict.fromkeys(source.data, MASK), back=back)


def _hide_outcome(redactor: Redactor, outcome: StepOutcome) -> StepOutcome:
    return replace(outcome, data=redactor.work(outcome.data), error=redactor.redact_text(outcome.error))
