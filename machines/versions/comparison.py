"""Compares versions with each other and with drafts, and replays recorded histories on them."""

from __future__ import annotations

from machines.catalog.models.draft import Draft
from machines.connections import get_engine
from machines.engine import BadInput, DefinitionError
from machines.engine.definitions import CompiledDefinition
from machines.engine.versions import DefinitionDiff, Replay
from machines.people.actor import Actor

from . import drafts, redacted

MOST_SAMPLE = 1000  # instances whose histories are replayed in one request


def diff(actor: Actor, machine: str, a: int, b: int) -> DefinitionDiff:
    """Return how two published versions differ. Raises Forbidden, UnknownMachine."""
    actor.demand("view", machine)
    return get_engine().diff(machine, a, b)


def diff_draft(actor: Actor, id: int, *, charge: drafts.Charge | None = None) -> DefinitionDiff:
    """Return how a draft differs from the current version, so that it can be rebased onto it. Raises Forbidden,
    DefinitionError where the draft is not a definition; BadInput for a draft of a new machine."""
    draft, compiled = _read(actor, id, charge)
    current = drafts.current_of(draft)
    if current is None:
        raise BadInput(f"draft {id} is of a new machine: there is nothing to compare it with", code="SB649")
    return get_engine().diff(draft.machine, current, compiled)


def replay(actor: Actor, machine: str, version: int, *, sample: int | None = None) -> Replay:
    """Replay recorded histories on a published version, redacted. Takes the right to operate: it is work for the
    server. Raises Forbidden, UnknownMachine, BadInput."""
    actor.demand("operate", machine)
    return redacted.hide_replay(actor, get_engine().replay(machine, version, sample=_check_sample(sample)))


def replay_draft(actor: Actor, id: int, *, sample: int | None = None, charge: drafts.Charge | None = None) -> Replay:
    """Do the same on a draft, with the right to publish it."""
    draft, compiled = _read(actor, id, charge)
    return redacted.hide_replay(actor, get_engine().replay(draft.machine, compiled, sample=_check_sample(sample)))


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
