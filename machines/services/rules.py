"""Applies the rules of a definition to people: transitions for certain groups, actions that need an approval.

The engine decides it, in the call that commits: a permit names the person behind the call. The functions here
are for pages, which show it before a person tries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from machines.access import transition_groups
from machines.catalog import builtin_machines, outlines
from machines.catalog.outlines import every_outline
from machines.conf import conf
from machines.engine import BadInput, NeedsApproval, Permit
from machines.engine.definitions import Outline
from machines.engine.definitions.outline import is_match

from .actor import Actor
from .errors import ApprovalNeeded, SystemMachine

FIRE = "fire:"
PUBLISH, MIGRATE = "publish", "migrate"
"""Actions on the versions of a machine."""


REMOVING = ("cancel", "skip")
"""Repairs that take a job away, or end it in place of its handler."""


def demand_open(machine: str) -> None:
    """Raises SystemMachine for a machine of the product: its own pages and services alone change its instances."""
    if machine in builtin_machines.NAMES:
        raise SystemMachine(machine)


def permit_of(actor: Actor) -> Permit | None:
    """What the engine holds the actor to; None for who is no person. One query, none for a superuser."""
    return Permit(transition_groups.groups_of(actor.user)) if actor.is_person else None


def groups_among(actor: Actor, outline: Outline) -> transition_groups.Groups:
    """Return the groups of a person, for a version that reserves a transition for some; None where nothing is closed to
    the actor. One query, none for a version without such transitions."""
    reserved = any(transition.allow for state in outline.states for transition in state.transitions)
    return transition_groups.groups_of(actor.user) if reserved and actor.is_person else None


def needs_approval(outlines: Iterable[Outline], action: str) -> bool:
    """Whether one of these versions asks for a second person. ``action``: a repair's name, or ``fire:<event>``."""
    return any(_covers(named, action) for outline in outlines for named in outline.approval)


def takes_second(actor: Actor, machine: str, action: str, versions: Iterable[int] | None = None) -> bool:
    """Whether ``publish`` or ``migrate`` on a machine takes a second person: by one of these published versions (the
    current one where none is named), or by the setting ``APPROVAL``. Programs are not asked. Raises UnknownMachine."""
    if not actor.is_person:
        return False
    if action in conf.APPROVAL:
        return True
    if versions is None:
        current = outlines.find_current(machine)
        versions = () if current is None else (current,)
    return needs_approval((outlines.outline_of(machine, one) for one in versions), action)


def _covers(named: str, action: str) -> bool:
    """``fire:door`` covers ``fire:door.open`` too, as a transition on ``door`` does."""
    if action.startswith(FIRE) and named.startswith(FIRE):
        return is_match(named.removeprefix(FIRE), action.removeprefix(FIRE))
    return named == action


@contextmanager
def alone(actor: Actor, machine: str, action: str) -> Iterator[Permit | None]:
    """Makes the permit of an action on jobs. ``action``: the repair that does the same.

    Raises SystemMachine for a repair that would end a job of the product's machines, BadInput where a version asks for
    a second person for that, and where the engine finds that the version of an instance does: no request could be filed
    for it.
    """
    if action in REMOVING and machine not in builtin_machines.WITHOUT_INSTANCES:
        demand_open(machine)
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
