"""Reads ``approvers``: for each action of ``approval`` who may approve it, how many, and until when."""

from collections.abc import Collection

from machines.engine.definitions.approval_terms import ANY, MAX_QUORUM, MOST_EXPIRES, ApprovalTerms
from machines.engine.definitions.durations import read_duration
from machines.engine.definitions.findings import quote
from machines.engine.definitions.place import Place

KEYS = ("group", "quorum", "expires")
_FORM = 'write {"delete": {"group": "supervisors", "quorum": 2, "expires": "4h"}}, or "*" for each action'


def read_approvers(place: Place, approval: Collection[str]) -> dict[str, ApprovalTerms]:
    """Read the terms of each action. ``approval``: the actions that the definition reserves."""
    if not place.is_object("an object of actions", _FORM):
        return {}
    found: dict[str, ApprovalTerms] = {}
    for name, inner in place.items():
        if name != ANY and name not in approval:
            inner.error("SB125", f"{quote(name)} is not among the actions of approval", "name it there, too")
        elif inner.is_object("an object with group, quorum or expires", _FORM):
            inner.refuse_unknown(KEYS)
            found[name] = _read_terms(inner)
    return found


def _read_terms(place: Place) -> ApprovalTerms:
    named = place.part("group").text("the name of a group")
    count = place.part("quorum").whole(1, MAX_QUORUM)
    expires = read_duration(place.part("expires"), None, 1, MOST_EXPIRES)
    return ApprovalTerms((named,) if named else (), count or 1, expires)
