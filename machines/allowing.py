"""Events that a definition keeps for certain people: its transitions say ``"allow": ["group", ...]``.

The groups are Django's. Pages and admin ask here before they send a person's event; programs, workers and timers are no
people, and nobody asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from machines.engine import Engine, Explanation, SignalboxError
from machines.engine.definitions import Outline


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


def ask(
    engine: Engine, user: Any, outline: Outline, machine: str, id: str, event: str, payload: Mapping[str, Any]
) -> None:
    """Raise NotAllowed where the event would now take a transition that ``user`` may not take.

    The caller then sends it with ``expect``, so that what was looked at is what is moved. What the engine would refuse
    anyway passes: it says so itself, and better. Raises what ``explain`` raises.
    """
    if user.is_superuser or not guarded(outline):
        return
    wanted = missing(user, engine.explain(machine, id, event, dict(payload)))
    if wanted:
        raise NotAllowed(machine, id, event, groups=wanted)


def missing(user: Any, explanation: Explanation) -> list[str]:
    """The groups of the first transition it would take that has none of the user's; none when all are open to them."""
    taken = [
        candidate.allow for candidate in explanation.candidates if candidate.verdict == "taken" and candidate.allow
    ]
    if not taken:
        return []
    own = set(user.groups.values_list("name", flat=True))
    return next((groups for groups in taken if own.isdisjoint(groups)), [])
