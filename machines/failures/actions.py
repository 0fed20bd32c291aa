"""Actions on groups of failures.

The state of a group is assigned, muted, resolved, open again: a group is shared by its machines, so each change takes
``operate`` on all of them, and a reason. The open jobs of a group are re-driven or skipped at a rate: they are fixed
when the action starts, and a worker goes through them (``machines.failures.duties``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from machines.audit.entries import AuditRecord
from machines.connections import get_engine
from machines.engine import BadInput, Miscounted
from machines.engine.limits import MAX_REASON
from machines.people import limits, rules
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.permissions import Scope

from .dead_jobs import DeadJobs, list_open_of
from .errors import BadFailureAction
from .models import FailedJob, FailureAction, FailureGroup, FailurePart
from .queries import GroupView, get, in_scope

REPAIR = {"redrive": "retry", "skip": "skip"}
"""action -> the repair that does the same to an instance."""
RATE = 20
MAX_RATE = 1_000
MAX_RESULT = 10_000  # characters of JSON
NO_REASON = "SB404"
Change = dict[str, Any]


def count_open(actor: Actor, id: int, machine: str = "") -> int:
    """Count the open jobs of a group that the actor may act on, exactly, as of now; 10,000 at most."""
    get(actor, id)
    return len(_open_jobs(id, actor.scope("operate"), machine))


def redrive(
    actor: Actor, id: int, *, reason: str, rate: int = RATE, machine: str = "", expect: int | None = None
) -> FailureAction:
    """Make the open jobs of a group ready again, ``rate`` a second at most. ``machine``: of one machine alone.
    ``expect``: how many the actor saw.

    Raises UnknownFailureGroup, Forbidden, Miscounted, BadFailureAction, and BadInput where a definition asks for a
    second person.
    """
    return _start(actor, id, "redrive", reason, rate, machine, expect, {})


def skip(
    actor: Actor, id: int, *, reason: str, result: Any = None, rate: int = RATE, machine: str = "",
    expect: int | None = None,
) -> FailureAction:  # fmt: skip
    """Move the instances that wait for the open jobs as if these had returned ``result``. Jobs without an instance are
    passed over. Raises as ``redrive``."""
    try:
        size = len(json.dumps(result, allow_nan=False))
    except (TypeError, ValueError):
        raise BadFailureAction("the result is no JSON", "result") from None
    if size > MAX_RESULT:
        raise BadFailureAction(f"a result has at most {MAX_RESULT} characters of JSON; this has {size}", "result")
    return _start(actor, id, "skip", reason, rate, machine, expect, {"result": result})


def stop(actor: Actor, id: int, *, reason: str) -> FailureAction | None:
    """Stop the running action of a group; return it, None where none runs. What was moved stays moved."""
    with actor.records("failure.stop", target=str(id), reason=reason) as entry:
        get(actor, id)
        running = FailureAction.objects.filter(group_id=id, state=FailureAction.State.RUNNING).first()
        _demand(actor, id, "")
        for machine in running.machines if running else ():
            actor.demand_discreetly(machine, "operate")
        if running is None:
            entry.void()
            return None
        FailureAction.objects.filter(pk=running.pk, state=FailureAction.State.RUNNING).update(
            state=FailureAction.State.STOPPED, updated=_read_clock()
        )
        running.refresh_from_db()
        entry.note(does=running.action, done=running.done, count=running.total)
        return running


def _start(
    actor: Actor, id: int, action: str, reason: str, rate: int, machine: str, expect: int | None, terms: dict[str, Any]
) -> FailureAction:
    about = {"machine": machine, "target": str(id), "reason": reason}
    with actor.records(f"failure.{action}", **about) as entry, ExitStack() as approvals:
        group = get(actor, id).group
        entry.note(handler=group.handler, kind=group.kind, rate=rate, **terms)
        scope = _demand(actor, id, machine)
        check_reason(reason)
        if isinstance(rate, bool) or not 1 <= rate <= MAX_RATE:
            raise BadFailureAction(f"a rate is 1 to {MAX_RATE} jobs a second", "rate")
        limits.spend_rate(actor, f"failure.{action}", **about)
        rows = _open_jobs(id, scope, machine)
        if expect is not None and expect != len(rows):
            raise Miscounted(f"of failure group {id}", "dead", expected=expect, actual=len(rows))
        machines = sorted({row.machine for row in rows})
        for each in machines:
            approvals.enter_context(rules.alone(actor, each, REPAIR[action]))
        return _store(actor, group, action, reason, rate, rows, machines, terms, entry)


def _store(
    actor: Actor, group: FailureGroup, action: str, reason: str, rate: int, rows: list[FailedJob],
    machines: list[str], terms: dict[str, Any], entry: AuditRecord,
) -> FailureAction:  # fmt: skip
    if not rows:
        raise BadFailureAction("this group has no open jobs that you may act on")
    now = _read_clock()
    with transaction.atomic():
        FailureGroup.objects.filter(pk=group.pk).update(key=group.key)  # of two who start at once the second waits
        if FailureAction.objects.filter(group=group, state=FailureAction.State.RUNNING).exists():
            raise BadFailureAction("another action on this group is running: wait for its end, or stop that one")
        made: FailureAction = FailureAction.objects.create(
            group=group, action=action, actor=actor.name, person=actor.is_person, reason=reason, rate=rate, terms=terms,
            machines=machines, jobs=[row.pk for row in rows], started=now, updated=now - 1000,
        )  # fmt: skip
    entry.note(count=len(rows), machines=machines)
    return made


def _demand(actor: Actor, id: int, machine: str) -> Scope:
    """Return the machines that the action may reach."""
    if machine:
        actor.demand_discreetly(machine, "operate")
    elif not any(actor.may("operate", name) for name in get(actor, id).machines):
        raise Forbidden("operate")
    return actor.scope("operate")


def _open_jobs(id: int, scope: Scope, machine: str) -> list[FailedJob]:
    rows = in_scope(FailedJob.objects.filter(group_id=id), scope, machine)
    return list_open_of(DeadJobs(get_engine()), rows)


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
        actor.demand_discreetly(machine, "operate")
    return machines


def check_reason(reason: str) -> str:
    """Return the reason. Raises BadInput where it is missing or too long."""
    if not reason.strip():
        raise BadInput("give a reason: it is recorded in the audit", code=NO_REASON)
    if len(reason) > MAX_REASON:
        raise BadInput(f"a reason has at most {MAX_REASON} characters; this one has {len(reason)}", code=NO_REASON)
    return reason


def _change(
    actor: Actor, id: int, action: str, reason: str, change: Callable[[FailureGroup, int], Change], needed: bool = True
) -> GroupView:
    about = {"target": str(id), "reason": reason}
    with actor.records(action, **about) as entry:
        before = get(actor, id).group
        demand_on_all(actor, id)
        if needed:
            check_reason(reason)
        limits.spend_rate(actor, action, **about)
        now = _read_clock()
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


def _read_clock() -> int:
    return int(time.time() * 1000)
