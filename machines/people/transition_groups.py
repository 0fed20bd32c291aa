"""Groups of people that a transition is reserved for: ``"allow": ["group", ...]`` in a definition.

The groups are Django's. What counts is decided by the engine, in the call that commits: services, and workers for the
bulk of a person, send it the groups as a permit. A look ahead says the same for the moment of looking. Programs,
workers and timers are no people, and nobody asks for them.
"""

from collections.abc import Collection
from typing import Any

from machines.engine import Explanation, NotAllowed

Groups = frozenset[str] | None
"""Names of an account's groups; None for an account that may take any transition."""


def groups_of(user: Any) -> Groups:
    """Return the groups of a person, in one query. Superusers may take any transition."""
    return None if user.is_superuser else frozenset(user.groups.values_list("name", flat=True))


def is_allowed(groups: Groups, allow: Collection[str]) -> bool:
    """Return whether a transition reserved for the groups ``allow``, empty for anyone, is for this account."""
    return groups is None or not allow or not groups.isdisjoint(allow)


def check_transitions(groups: Groups, explanation: Explanation) -> None:
    """Raise NotAllowed where the event would take a transition that is for others. What the engine would refuse anyway
    passes: it says so itself, and better."""
    for one in explanation.candidates:
        if one.verdict == "taken" and not is_allowed(groups, one.allow):
            raise NotAllowed(
                explanation.machine, explanation.id, explanation.event,
                groups=one.allow, transition=one.id, target=one.target or "",
            )  # fmt: skip
