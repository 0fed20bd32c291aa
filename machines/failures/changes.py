"""Changes the state of a group: assigned, muted, resolved, open again. A group is shared by its machines, so each
change takes ``operate`` on all of them, and a reason."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from machines.engine import BadInput
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.limits import rate_limit

from .errors import BadFailureAction
from .models import FailureGroup, FailurePart
from .queries import GroupView, get

MAX_REASON = 1000
Change = dict[str, Any]


def assign(actor: Actor, id: int, assignee: str, *, reason: str = "") -> GroupView:
    """Give a group to a user; "" to nobody. Raises UnknownFailureGroup, Forbidden, BadFailureAction."""
    return _change(
        actor, id, "failure.assign", reason, lambda group, now: {"assignee": _check_user(assignee)}, needed=False
    )


def mute(actor: Actor, id: int, *, reason: str) -> GroupView:
    """Mute a group until it fails in another version of a machine, or on another machine."""

    def change(group: FailureGroup, now: int) -> Change:
        versions = dict(FailurePart.objects.filter(group=group).values_list("machine", "versions"))
        return {"state": FailureGroup.State.MUTED, "muted_versions": versions, "unmuted_by": ""}

    return _change(actor, id, "failure.mute", reason, change)


def resolve(actor: Actor, id: int, *, reason: str) -> GroupView:
    """Note that the cause is gone: a later failure makes the group a regression."""
    return _change(
        actor, id, "failure.resolve", reason,
        lambda group, now: {"state": FailureGroup.State.RESOLVED, "resolved_at": now, "regressed_at": 0},
    )  # fmt: skip


def reopen(actor: Actor, id: int, *, reason: str) -> GroupView:
    """End the mute, or take back that the group is resolved."""
    return _change(
        actor, id, "failure.reopen", reason, lambda group, now: {"state": FailureGroup.State.OPEN, "resolved_at": 0}
    )


def demand_on_all(actor: Actor, id: int) -> list[str]:
    """Return the machines of a group. Raises Forbidden unless the actor may ``operate`` on each of them."""
    machines = sorted(FailurePart.objects.filter(group_id=id).values_list("machine", flat=True))
    for machine in machines:
        if not actor.may("operate", machine):  # only accounts that may see the machine learn its name
            raise Forbidden("operate", machine if actor.may("view", machine) else "")
    return machines


def check_reason(reason: str) -> str:
    """Return the reason. Raises BadInput where it is missing or too long."""
    if not reason.strip():
        raise BadInput("give a reason: it is recorded in the audit", code=NO_REASON)
    if len(reason) > MAX_REASON:
        raise BadInput(f"a reason has at most {MAX_REASON} characters; this one has {len(reason)}", code=NO_REASON)
    return reason


NO_REASON = "SB404"


def _change(
    actor: Actor, id: int, action: str, reason: str, change: Callable[[FailureGroup, int], Change], needed: bool = True
) -> GroupView:
    about = {"target": str(id), "reason": reason}
    with actor.records(action, **about) as entry:
        before = get(actor, id).group
        demand_on_all(actor, id)
        if needed:
            check_reason(reason)
        rate_limit.spend(actor, action, **about)
        now = int(time.time() * 1000)
        with transaction.atomic():
            group = FailureGroup.objects.get(pk=id)
            changed = change(group, now)
            if "state" in changed:
                changed |= {"changed_by": actor.name, "changed_at": now}
            FailureGroup.objects.filter(pk=id).update(**changed)
        entry.note(handler=before.handler, kind=before.kind, was=before.state, assignee=changed.get("assignee"))
    return get(actor, id)


def _check_user(name: str) -> str:
    if not name:
        return ""
    users = get_user_model().objects
    field = get_user_model().USERNAME_FIELD
    if len(name) > 150 or "\0" in name or not users.filter(**{field: name}, is_active=True).exists():
        raise BadFailureAction(f"there is no active user {name[:150]!r}", "assignee")
    return name
