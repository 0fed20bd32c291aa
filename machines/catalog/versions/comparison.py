"""Compares versions with each other and with drafts, replays recorded histories on them, and redacts plans, dry runs
and replays for one person.

These are made of definitions, names and counts, but some of their texts come from instances: literals in the
expressions of a plan, reasons of a refusal, and the data in which a replay differs. Of a machine with sensitive fields,
people without the right to reveal see none of these: deny by default, since nobody can tell which value they repeat.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from machines.audit.redaction import MASK, Redactor
from machines.catalog.models import Draft
from machines.catalog.queries import find_latest
from machines.connections import get_engine
from machines.engine import BadInput, DefinitionDiff, DefinitionError, MigrationPlan, Replay, SourcePlan
from machines.engine.definitions import CompiledDefinition
from machines.engine.versions.records import DryRun, StepOutcome
from machines.people.actor import Actor
from machines.people.redaction import redactor_of

from . import drafts

MOST_SAMPLE = 1000  # instances whose histories are replayed in one request


def diff(actor: Actor, machine: str, a: int, b: int) -> DefinitionDiff:
    """Return how two published versions differ. Raises Forbidden, UnknownMachine."""
    actor.demand("view", machine)
    return get_engine().diff(machine, a, b)


def diff_draft(actor: Actor, id: int, *, charge: drafts.Charge | None = None) -> DefinitionDiff:
    """Return how a draft differs from the current version, so that it can be rebased onto it. Raises Forbidden,
    DefinitionError where the draft is not a definition; BadInput for a draft of a new machine."""
    draft, compiled = _read(actor, id, charge)
    current = find_latest(draft.machine)
    if current is None:
        raise BadInput(f"draft {id} is of a new machine: there is nothing to compare it with", code="SB649")
    return get_engine().diff(draft.machine, current, compiled)


def replay(actor: Actor, machine: str, version: int, *, sample: int | None = None) -> Replay:
    """Replay recorded histories on a published version, redacted. Takes the right to operate: it is work for the
    server. Raises Forbidden, UnknownMachine, BadInput."""
    actor.demand("operate", machine)
    return hide_replay(actor, get_engine().replay(machine, version, sample=_check_sample(sample)))


def replay_draft(actor: Actor, id: int, *, sample: int | None = None, charge: drafts.Charge | None = None) -> Replay:
    """Do the same on a draft, with the right to publish it."""
    draft, compiled = _read(actor, id, charge)
    return hide_replay(actor, get_engine().replay(draft.machine, compiled, sample=_check_sample(sample)))


def _read(actor: Actor, id: int, charge: drafts.Charge | None) -> tuple[Draft, CompiledDefinition]:
    draft = drafts.get(actor, id)
    compiled = (submission := drafts.read(actor, draft, whole=True, charge=charge)).compiled
    if compiled is None:
        raise DefinitionError(list(submission.findings))
    return draft, compiled


def _check_sample(sample: int | None) -> int:
    if sample is not None and not 1 <= sample <= MOST_SAMPLE:
        raise BadInput(
            f"a request replays the histories of 1 to {MOST_SAMPLE} instances, not of {sample}", code="SB402"
        )
    return MOST_SAMPLE if sample is None else sample


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
