"""Actions on groups of failures.

The state of a group is assigned, muted, resolved, open again: a group is shared by its machines, so each change takes
``operate`` on all of them, and a reason. Open jobs, of a group or of any, are retried or skipped at a rate: they are
fixed when the action starts, and a worker goes through them (``machines.jobs.failures.duties``).
"""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F

from machines.audit.entries import AuditRecord
from machines.catalog import rules
from machines.connections import get_engine
from machines.engine import BadInput, Miscounted
from machines.engine.limits import MAX_REASON
from machines.jobs.errors import BadFailureAction
from machines.people import limits
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.permissions import Scope

from .dead_jobs import DeadJobs, list_open_of
from .models import FailedJob, FailureAction, FailureGroup, FailurePart
from .queries import GroupView, get, in_scope

REPAIR = {"redrive": "retry", "skip": "skip"}
"""action -> the repair that does the same to an instance."""
RATE = 20
MAX_RATE = 1_000
MAX_RESULT = 10_000  # characters of JSON
NO_REASON = "SB404"
Change = dict[str, Any]
_RUNNING = FailureAction.objects.filter(state=FailureAction.State.RUNNING)


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects open jobs: of a group, 0 for any; of a machine and a queue, "" for any."""

    group: int = 0
    machine: str = ""
    queue: str = ""


def list_open(actor: Actor, where: Selection) -> list[FailedJob]:
    """List the open jobs that the actor may act on, exactly, as of now, the oldest first; 10,000 at most. Jobs of a
    running action are left out, and all of a group that one is about."""
    if where.group:
        get(actor, where.group)
    return _leave_out_running(where, _open_jobs(where, actor.scope("operate")))


def redrive(
    actor: Actor, id: int = 0, *, reason: str, rate: int = RATE, machine: str = "", queue: str = "",
    expect: int | None = None,
) -> FailureAction:  # fmt: skip
    """Make open jobs ready again, ``rate`` a second at most. ``id``: of their group, 0 for any; ``machine``, ``queue``:
    of this one alone. ``expect``: how many the actor saw. Jobs of a running action are left out.

    Raises UnknownFailureGroup, Forbidden, Miscounted, BadFailureAction, and BadInput where a definition asks for a
    second person.
    """
    return _start(actor, Selection(id, machine, queue), "redrive", reason, rate, expect, {})


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
    return _start(actor, Selection(id, machine), "skip", reason, rate, expect, {"result": result})


def stop(actor: Actor, id: int, *, reason: str) -> FailureAction | None:
    """Stop the running action of a group; return it, None where none runs. What was moved stays moved."""
    with actor.records("failure.stop", target=str(id), reason=reason) as entry:
        get(actor, id)
        running = _RUNNING.filter(group_id=id).first()
        _demand(actor, Selection(id))
        return _stop(actor, running, entry)


def stop_retry(actor: Actor, number: int, *, reason: str) -> FailureAction | None:
    """Stop a running retry of jobs of several groups; return it, None where it does not run."""
    with actor.records("failure.stop", reason=reason) as entry:
        _demand(actor, Selection())
        check_reason(reason)
        return _stop(actor, _RUNNING.filter(pk=number, group=None).first(), entry)


def _stop(actor: Actor, running: FailureAction | None, entry: AuditRecord) -> FailureAction | None:
    for machine in running.machines if running else ():
        actor.demand_discreetly(machine, "operate")
    if running is None:
        entry.void()
        return None
    _RUNNING.filter(pk=running.pk).update(state=FailureAction.State.STOPPED, updated=_read_clock())
    running.refresh_from_db()
    entry.note(does=running.action, done=running.done, count=running.total)
    return running


def _start(
    actor: Actor, where: Selection, action: str, reason: str, rate: int, expect: int | None, terms: dict[str, Any]
) -> FailureAction:
    about = {"machine": where.machine, "queue": where.queue, "reason": reason}
    about |= {"target": str(where.group)} if where.group else {}
    with actor.records(f"failure.{action}", **about) as entry, ExitStack() as approvals:
        group = get(actor, where.group).group if where.group else None
        entry.note(**({"handler": group.handler, "kind": group.kind} if group else {}), rate=rate)
        scope = _demand(actor, where)
        check_reason(reason)
        if isinstance(rate, bool) or not 1 <= rate <= MAX_RATE:
            raise BadFailureAction(f"a rate is 1 to {MAX_RATE} jobs a second", "rate")
        limits.spend_rate(actor, f"failure.{action}", **about)
        found = _open_jobs(where, scope)
        left = _leave_out_running(where, found)
        rows = left or found  # which another action has: _store says so
        if expect is not None and expect != len(left) and (left or not found):
            subject = f"failure group {where.group}" if where.group else "the selection"
            raise Miscounted(f"of {subject}", "dead", expected=expect, actual=len(left))
        machines = sorted({row.machine for row in rows})
        for each in machines:
            approvals.enter_context(rules.alone(actor, each, REPAIR[action]))
            terms = {name: get_engine().encrypt(each, value) for name, value in terms.items()}
        entry.note(**terms)
        now = _read_clock()
        made = FailureAction(
            group=group, action=action, actor=actor.name, person=actor.is_person, reason=reason, rate=rate,
            terms=terms if group else {"machine": where.machine, "queue": where.queue}, machines=machines,
            jobs=[row.pk for row in rows], started=now, updated=now - 1000,
        )  # fmt: skip
        _store(made, rows)
        entry.note(count=len(rows), machines=machines, groups=len({row.group_id for row in rows}))
        return made


def _store(made: FailureAction, rows: list[FailedJob]) -> None:
    if not rows:
        raise BadFailureAction("there are no open jobs here that you may act on")
    groups, jobs = {row.group_id for row in rows}, set(made.jobs)
    with transaction.atomic():
        FailureGroup.objects.filter(pk__in=groups).update(key=F("key"))  # of two who start at once the second waits
        for other in _RUNNING.all():
            if (made.group_id and other.group_id == made.group_id) or jobs.intersection(other.jobs):
                raise BadFailureAction("another action on these jobs is running: wait for its end, or stop that one")
        made.save()


def _demand(actor: Actor, where: Selection) -> Scope:
    """Return the machines that the action may reach."""
    scope = actor.scope("operate")
    if where.machine:
        actor.demand_discreetly(where.machine, "operate")
    elif not (any(name in scope for name in get(actor, where.group).machines) if where.group else scope):
        raise Forbidden("operate")
    return scope


def _open_jobs(where: Selection, scope: Scope) -> list[FailedJob]:
    rows = in_scope(FailedJob.objects.all(), scope, where.machine)
    named = {name: value for name, value in (("group", where.group), ("queue", where.queue)) if value}
    return list_open_of(DeadJobs(get_engine()), rows.filter(**named))


def _leave_out_running(where: Selection, rows: list[FailedJob]) -> list[FailedJob]:
    running = list(_RUNNING.all())
    if where.group and any(action.group_id == where.group for action in running):
        return []
    taken = {job for action in running for job in action.jobs}
    return [row for row in rows if row.pk not in taken]


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
