"""Events that a definition keeps for certain people: its transitions say ``"allow": ["group", ...]``.

The groups are Django's. Services ask here before they send a person's event, and workers before they send that of a
bulk a person started; programs, workers and timers are no people, and nobody asks for them.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from machines.engine import Explanation, SignalboxError
from machines.engine.definitions import Outline

Groups = Set[str] | None
"""Names of somebody's groups; None for who may take any transition."""


class NotAllowed(SignalboxError):
    """A person sent an event whose transition is for members of certain groups. ``groups``: their names."""

    code = "SB433"

    def __init__(self, machine: str, id: str, event: str, *, groups: list[str]) -> None:
        self.machine = machine
        self.id = id
        self.event = event
        self.groups = groups
        super().__init__(f"{event} on {machine}/{id} is for members of {' or '.join(groups)}, as its definition says")

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"machine": self.machine, "id": self.id, "event": self.event, "groups": self.groups}


def guarded(outline: Outline) -> bool:
    """Whether any transition is for certain groups only."""
    return any(transition.allow for state in outline.states for transition in state.transitions)


def groups_of(user: Any) -> Groups:
    """One query. Superusers may take any transition."""
    return None if user.is_superuser else frozenset(user.groups.values_list("name", flat=True))


def check(groups: Groups, explanation: Explanation) -> None:
    """Raise NotAllowed where the event would take a transition that is for others.

    The caller then sends it with the version that was explained, so that what was looked at is what is moved. What the
    engine would refuse anyway passes: it says so itself, and better.
    """
    wanted = missing(groups, explanation)
    if wanted:
        raise NotAllowed(explanation.machine, explanation.id, explanation.event, groups=wanted)


def missing(groups: Groups, explanation: Explanation) -> list[str]:
    """The groups of the first transition it would take that has none of these; none when all are open to them."""
    taken = [one.allow for one in explanation.candidates if one.verdict == "taken" and one.allow]
    return [] if groups is None else next((names for names in taken if groups.isdisjoint(names)), [])
