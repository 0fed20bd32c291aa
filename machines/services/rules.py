"""Whether a definition lets this person do it alone: transitions for certain groups, actions that take a second one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from machines import allowing
from machines.engine import BadInput, Conflict, Engine, Explanation
from machines.engine.definitions import Outline
from machines.engine.definitions.outline import matches
from machines.outlines import every_outline

from .actor import Actor
from .errors import ApprovalNeeded

FIRE = "fire:"


def demands(outlines: Iterable[Outline], action: str) -> bool:
    """Whether one of these versions asks for a second person. ``action``: a repair's name, or ``fire:<event>``."""
    return any(_covers(named, action) for outline in outlines for named in outline.approval)


def _covers(named: str, action: str) -> bool:
    """``fire:door`` covers ``fire:door.open`` too, as a transition on ``door`` does."""
    if action.startswith(FIRE) and named.startswith(FIRE):
        return matches(named.removeprefix(FIRE), action.removeprefix(FIRE))
    return named == action


def explained(
    actor: Actor, engine: Engine, outline: Outline, machine: str, id: str, event: str, payload: Mapping[str, Any] | None
) -> Explanation | None:
    """What the event would do, where a rule has to know. Raises NotAllowed."""
    if not actor.is_person:
        return None
    groups = allowing.groups_of(actor.user) if allowing.guarded(outline) else None
    if groups is None and not demands([outline], FIRE + event):
        return None
    explanation = engine.explain(machine, id, event, payload)
    allowing.check(groups, explanation)
    return explanation


def demand_alone(actor: Actor, machine: str, action: str) -> None:
    """Raise BadInput where a lever on a job, or on many, would do what takes a second person on an instance."""
    if actor.is_person and demands(every_outline(machine), action):
        raise BadInput(
            f"that is {action} for the instances that wait, which asks for a second person, as the definition of"
            f" {machine} says: do it on the instance, or as a bulk",
            code=ApprovalNeeded.code,
        )


def second_person(
    actor: Actor, outline: Outline, machine: str, id: str, action: str, *,
    asked: dict[str, Any], reason: str, expect: int | None, version: int,
) -> None:  # fmt: skip
    """Raise ApprovalNeeded where the definition asks for one. ``version``: the one just looked at, which counts where
    the caller names none. Only for what the engine would not refuse anyway."""
    if not actor.is_person or not demands([outline], action):
        return
    if expect is not None and expect != version:
        raise Conflict(machine, id, expected=expect, actual=version)
    if not reason.strip():
        raise BadInput(f"{action} asks for a second person, who has to read why: give a reason", code="SB404")
    raise ApprovalNeeded(machine, id, action, asked=asked, reason=reason, expect=version)
