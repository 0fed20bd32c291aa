"""Reads groups of failures for an actor. Counts, dates, versions and queues are those of machines in scope alone."""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from django.db.models import (
    Case,
    Count,
    Exists,
    F,
    IntegerField,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.functions import Coalesce

from machines.engine import EngineUnavailable, Job, LookupFailed
from machines.jobs import queries as job_queries
from machines.jobs.errors import UnknownFailureGroup
from machines.people.actor import Actor
from machines.people.permissions import Forbidden, Scope
from machines.people.redaction import redactor_of

from .models import FailedJob, FailureAction, FailureGroup, FailureHour, FailurePart

HOUR_MS = 3_600_000
TREND_HOURS = 24
Rows = TypeVar("Rows", bound=QuerySet)
SIZE = 50
MAX_PAGE = 10_000
MAX_CHOICES = 200
MINE, NOBODY = "me", "none"


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group as one person sees it.

    ``open``: jobs still dead, as of the follower's last look; ``recent``: deaths of the last 24 hours; ``trend``: by
    hour, the oldest first; ``regressed_at`` and ``unmuted_by``: 0 and "" where they concern other machines alone.
    ``whole``: whether the person sees every machine of the group.
    """

    group: FailureGroup
    count: int
    attempts: int
    open: int
    recent: int
    first_seen: int
    last_seen: int
    trend: tuple[int, ...]
    machines: tuple[str, ...]
    versions: dict[str, list[int]] = field(default_factory=dict)
    queues: tuple[tuple[str, str], ...] = ()
    regressed_at: int = 0
    unmuted_by: str = ""
    whole: bool = True

    @property
    def is_regression(self) -> bool:
        return self.regressed_at > 0


@dataclass(frozen=True, slots=True)
class Listing:
    items: list[GroupView]
    page: int
    more: bool
    total: int


def list_groups(
    actor: Actor, *, state: str = "open", machine: str = "", assignee: str = "", query: str = "", page: int = 1,
    size: int = SIZE,
) -> Listing:  # fmt: skip
    """List groups, trouble first: regressions, then those with open jobs, then by the failures of the last day.

    ``assignee``: a name, "me" or "none". Raises Forbidden without ``view`` on any machine, or on ``machine``.
    """
    scope, now = _find_scope(actor, machine), int(time.time() * 1000)
    found = _list_visible(scope, machine)
    if state in FailureGroup.State.values:
        found = found.filter(state=state)
    if assignee:
        found = found.filter(assignee={MINE: actor.name, NOBODY: ""}.get(assignee, assignee))
    for word in query.split():
        found = found.filter(Q(handler__icontains=word) | Q(kind__icontains=word) | Q(shape__icontains=word))
    first = (max(1, min(page, MAX_PAGE)) - 1) * size
    total = found.count()
    rows = list(_order(found, scope, machine, now)[first : first + size])
    return Listing(_make_views(rows, scope, machine, now), page, total > first + size, total)


def get(actor: Actor, id: int, *, hours: int = TREND_HOURS, now: int | None = None) -> GroupView:
    """Read one group. Raises UnknownFailureGroup, and Forbidden in its place for an account without ``view`` on every
    machine: it does not learn which groups exist."""
    scope, now = _find_scope(actor, ""), int(time.time() * 1000) if now is None else now
    found = list(_list_visible(scope, "").filter(pk=id)) if 0 < id < 2**63 else []
    if not found:
        if not actor.may("view"):
            raise Forbidden("view")
        raise UnknownFailureGroup(id)
    return _make_views(found, scope, "", now, hours)[0]


def newest_jobs(actor: Actor, id: int, most: int = 20, *, handled: bool = False) -> list[Job]:
    """Read the newest open jobs of a group. ``handled``: those whose instance dealt with the failure, by ``onError`` or
    later, in their place."""
    rows = FailedJob.objects.filter(group_id=id, **({} if handled else {"open": True}))
    rows = in_scope(rows, _find_scope(actor, "")).order_by("-died", "-pk")[:most]
    return read_jobs(actor, list(rows), handled=handled)


def read_jobs(actor: Actor, rows: Sequence[FailedJob], *, handled: bool = False) -> list[Job]:
    """Read these jobs from Redis, redacted as the page of a job redacts them, without those that are open no more."""
    found, wanted = [], "handled" if handled else "dead"
    redactors = {machine: redactor_of(actor, machine) for machine in {row.machine for row in rows}}
    for row in rows:
        try:
            job = job_queries.get(actor, row.machine, row.job, redactor=redactors[row.machine])
        except LookupFailed:
            continue
        except EngineUnavailable:
            if not handled:
                raise
            continue  # nothing but a traceback is missing
        if job.place == wanted and job.finished == row.died:
            found.append(job)
    return found


def find_top_groups(queues: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[int, str, int]]:
    """Return (machine, queue) -> the group with most open jobs there: its number, its exception and how many."""
    wanted = set(queues)
    if not wanted:
        return {}
    machines, names = ({each[place] for each in wanted} for place in (0, 1))
    rows = FailedJob.objects.filter(open=True, machine__in=machines, queue__in=names)
    counted = rows.values_list("machine", "queue", "group", "group__kind").annotate(number=Count("pk"))
    return {
        (machine, queue): (group, kind, number)
        for machine, queue, group, kind, number in counted.order_by("number", "-group")
        if (machine, queue) in wanted
    }


def count_by_queue(scope: Scope) -> list[tuple[str, str, int]]:
    """List the queues with open jobs: machine, queue and how many."""
    rows = in_scope(FailedJob.objects.filter(open=True), scope).values_list("machine", "queue")
    return list(rows.annotate(number=Count("pk")).order_by("-number", "machine", "queue"))


def count_by_group(scope: Scope) -> list[tuple[FailureGroup, int]]:
    """List the groups with open jobs, and how many."""
    rows = in_scope(FailedJob.objects.filter(open=True), scope).values_list("group").annotate(number=Count("pk"))
    found = dict(rows.order_by("-number")[:MAX_CHOICES])
    groups = FailureGroup.objects.in_bulk(found)
    return [(groups[id], number) for id, number in found.items() if id in groups]


def running_actions(actor: Actor, id: int | None, most: int = 5) -> list[FailureAction]:
    """List the latest actions on a group, or on jobs of several, that concern machines the person sees, the newest
    first."""
    scope = _find_scope(actor, "")
    rows = FailureAction.objects.filter(group_id=id).order_by("-pk")[: most * 4]
    return [row for row in rows if all(machine in scope for machine in row.machines)][:most]


def in_scope(rows: Rows, scope: Scope, machine: str = "") -> Rows:
    """Keep the rows of machines in scope."""
    if machine:
        return rows.filter(machine=machine) if machine in scope else rows.none()
    return scope.narrow(rows)


def _find_scope(actor: Actor, machine: str) -> Scope:
    scope = actor.scope("view")
    if not scope or (machine and machine not in scope):
        raise Forbidden("view", machine)
    return scope


def _list_visible(scope: Scope, machine: str) -> QuerySet[FailureGroup]:
    parts = in_scope(FailurePart.objects.filter(group=OuterRef("pk")), scope, machine)
    return FailureGroup.objects.filter(Exists(parts))


def _order(found: QuerySet[FailureGroup], scope: Scope, machine: str, now: int) -> QuerySet[FailureGroup]:
    hours = FailureHour.objects.filter(group=OuterRef("pk"), hour__gt=now // HOUR_MS - TREND_HOURS)
    parts = in_scope(FailurePart.objects.filter(group=OuterRef("pk")), scope, machine)
    jobs = in_scope(FailedJob.objects.filter(group=OuterRef("pk"), open=True), scope, machine)
    recent = in_scope(hours, scope, machine).values("group").annotate(sum=Sum("count")).values("sum")
    latest = parts.values("group").annotate(latest=Max("last_seen")).values("latest")
    regressed = Q(state=FailureGroup.State.OPEN, regressed_at__gt=F("resolved_at"), resolved_at__gt=0)
    annotated = found.annotate(
        recent_count=Coalesce(Subquery(recent, output_field=IntegerField()), 0),
        latest=Subquery(latest),
        has_open=Exists(jobs),
    ).annotate(
        trouble=Case(
            When(regressed & Q(latest__gte=F("regressed_at")), then=Value(2)),
            When(has_open=True, then=Value(1)),
            default=Value(0),
        )
    )
    return annotated.order_by("-trouble", "-recent_count", "-latest", "-pk")


def _make_views(
    rows: Sequence[FailureGroup], scope: Scope, machine: str, now: int, hours: int = TREND_HOURS
) -> list[GroupView]:
    """Build the views of some groups, in four queries."""
    ids = [row.pk for row in rows]
    parts: dict[int, list[FailurePart]] = defaultdict(list)
    totals: dict[int, int] = defaultdict(int)
    for part in FailurePart.objects.filter(group__in=ids).order_by("machine"):
        totals[part.group_id] += 1
        if part.machine in scope and machine in ("", part.machine):
            parts[part.group_id].append(part)
    open_jobs = dict(
        in_scope(FailedJob.objects.filter(group__in=ids, open=True), scope, machine)
        .values_list("group")
        .annotate(number=Count("pk"))
    )
    trends = _read_trends(ids, scope, machine, now, hours)
    return [_view(row, parts[row.pk], open_jobs.get(row.pk, 0), trends[row.pk], scope, totals[row.pk]) for row in rows]


def _read_trends(ids: Iterable[int], scope: Scope, machine: str, now: int, hours: int) -> dict[int, list[int]]:
    first = now // HOUR_MS - hours + 1
    found: dict[int, list[int]] = defaultdict(lambda: [0] * hours)
    rows = in_scope(FailureHour.objects.filter(group__in=list(ids), hour__gte=first), scope, machine)
    for group, hour, count in rows.values_list("group", "hour", "count"):
        if hour < first + hours:
            found[group][hour - first] += count
    return found


def _view(
    row: FailureGroup, parts: list[FailurePart], open_jobs: int, trend: list[int], scope: Scope, machines: int
) -> GroupView:
    last = max(part.last_seen for part in parts)
    woken = row.unmuted_by.rpartition(" ")[2]
    return GroupView(
        group=row,
        count=sum(part.count for part in parts),
        attempts=sum(part.attempts for part in parts),
        open=open_jobs,
        recent=sum(trend[-TREND_HOURS:]),
        first_seen=min(part.first_seen for part in parts),
        last_seen=last,
        trend=tuple(trend),
        machines=tuple(part.machine for part in parts),
        versions={part.machine: part.versions for part in parts if part.versions},
        queues=tuple((part.machine, queue) for part in parts for queue in part.queues),
        regressed_at=row.regressed_at if row.is_regression and last >= row.regressed_at else 0,
        unmuted_by=row.unmuted_by if woken in scope else "",
        whole=machines == len(parts),
    )
