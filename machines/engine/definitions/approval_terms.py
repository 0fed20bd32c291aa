"""The terms on which an action is approved: by which groups, by how many people, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

ANY = "*"
"""Every action, in place of the name of one."""
MAX_QUORUM = 10
MOST_EXPIRES = 30 * 86_400_000  # ms


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """``groups``: those of which an approver is a member, of each; ``quorum``: how many people approve; ``expires``: ms
    from the request on, None for a day."""

    groups: tuple[str, ...] = ()
    quorum: int = 1
    expires: int | None = None

    def merge(self, other: ApprovalTerms) -> ApprovalTerms:
        """Return terms that fulfil both."""
        ends = [one.expires for one in (self, other) if one.expires is not None]
        groups = tuple(dict.fromkeys((*self.groups, *other.groups)))
        return ApprovalTerms(groups, max(self.quorum, other.quorum), min(ends, default=None))

    def is_weaker(self, other: ApprovalTerms) -> bool:
        """Tell whether the other terms ask for something that these do not."""
        return not set(other.groups) <= set(self.groups) or self.quorum < other.quorum


def merge_terms(found: Iterable[ApprovalTerms]) -> ApprovalTerms:
    """Return terms that fulfil all of them."""
    return reduce(ApprovalTerms.merge, found, ApprovalTerms())


def find_terms(approvers: Mapping[str, ApprovalTerms], names: Iterable[str]) -> ApprovalTerms:
    """Return the terms of actions by the names that ``approvers`` has for them."""
    wanted = {ANY, *names}
    return merge_terms(terms for name, terms in approvers.items() if name in wanted)
