"""Applies the rules of a definition to people: transitions for certain groups, actions that need an approval.

The engine decides it, in the call that commits: a permit names the person behind the call. The functions here
are for pages, which show it before a person tries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from machines.access import transition_groups
from machines.catalog.outlines import every_outline
from machines.engine import BadInput, NeedsApproval, Permit
from machines.engine.definitions import Outline
from machines.engine.definitions.outline import is_match

from .actor import Actor
from .errors import ApprovalNeeded

FIRE = "fire:"


def permit_of(actor: Actor) -> Permit | None:
    """What the engine holds the actor to; None for who is no person. One query, none for a superuser."""
    return Permit(transition_groups.groups_of(actor.user)) if actor.is_person else None


def needs_approval(outlines: Iterable[Outline], action: str) -> bool:
    """Whether one of these versions asks for a second person. ``action``: a repair's name, or ``fire:<event>``."""
    return any(_covers(named, action) for outline in outlines for named in outline.approval)


def _covers(named: str, action: str) -> bool:
    """``fire:door`` covers ``fire:door.open`` too, as a transition on ``door`` does."""
    if action.startswith(FIRE) and named.startswith(FIRE):
        return is_match(named.removeprefix(FIRE), action.removeprefix(FIRE))
    return named == action


@contextmanager
def alone(actor: Actor, machine: str, action: str) -> Iterator[Permit | None]:
    """Makes the permit of an action on jobs. ``action``: the repair that does the same.

    Raises BadInput where a version asks for a second person for that, and where the engine finds that the version of an
    instance does: no request could be filed for it.
    """
    if actor.is_person and needs_approval(every_outline(machine), action):
        raise _not_here(machine, action)
    try:
        yield Permit(None) if actor.is_person else None
    except NeedsApproval:
        raise _not_here(machine, action) from None


def _not_here(machine: str, action: str) -> BadInput:
    return BadInput(
        f"this applies {action} to the waiting instances, which needs approval by the definition of"
        f" {machine}: do it on the instance, or as a bulk action",
        code=ApprovalNeeded.code,
    )
