"""Collects the alarms of the machines in a scope, by their figures now."""

import contextlib
from collections.abc import Iterator, Mapping

from machines.approvals import queries as approval_queries
from machines.audit.redaction import strict_redactor
from machines.catalog.queries import outlines_of
from machines.connections import get_engine
from machines.engine import Survey
from machines.engine.errors import EngineUnavailable, SignalboxError
from machines.engine.jobs.clock_jump import ClockJump
from machines.insight.comparison import find_drifts
from machines.insight.statistics.present import Present, last_measured, present, select_noisy, storms
from machines.jobs.groups import find_stalled, read_groups
from machines.people.permissions import Scope
from machines.schedules import SCHEDULES, Schedules, authors
from machines.webhooks import audit_stream

from .alarm import Alarm
from .detection import PAUSED_LONG, Figures, LostSchedule, Stall, StuckCount, list_served, raise_alarms
from .workers import QueueDepth


def detect_alarms(scope: Scope, survey: Survey, rates: Mapping[str, Present] | None = None) -> list[Alarm]:
    """Detect what is wrong with the machines of ``survey``, which are those in ``scope``, in no order and without what
    people did about it. ``rates``: those of all machines, where the caller has read them. Raises EngineUnavailable."""
    lives = sorted(survey.lives.items())
    figures = Figures(
        [depth for name, live in lives for depth in read_depths(name, live.queues)],
        [row.only(scope) for row in survey.workers],
        {name: live.overdue for name, live in lives},
        oldest={
            f"{name}/{stats.queue}": stats.oldest
            for name, _ in lives
            for stats in survey.queues[name].values()
            if stats.oldest
        },
        stuck=find_stuck(survey),
        paused=[(name, stats) for name, _ in lives for stats in survey.queues[name].values()],
        stalls=list(find_stalls(survey)),
        late={name: live.late for name, live in lives},
        storms=storms(present(select_noisy(survey.lives), survey.now) if rates is None else rates),
        approvals=approval_queries.count_open(scope),
        unmeasured=_compute_measurement_age(survey.now),
        stopped=[
            each for name, each in get_engine().rollouts(recent=True).items() if name in survey.lives and each.by_guard
        ],
        lost=find_lost_schedules(scope, survey),
        missing=survey.missing,
        jumps=_read_jumps(),
        receivers=audit_stream.list_failing(),
        drifts=find_drifts(survey.lives),
        now=survey.now,
    )
    return raise_alarms(figures)


def read_depths(machine: str, queues: Mapping[str, Mapping[str, int]]) -> Iterator[QueueDepth]:
    """Yield the depth of each queue, of the engine's ``{queue: {place: n}}``."""
    for queue, held in queues.items():
        yield QueueDepth(machine, queue, *(int(held.get(place, 0)) for place in ("ready", "delayed", "dead")))


def find_stuck(survey: Survey) -> Iterator[StuckCount]:
    """Yield the states whose service level is broken. Definitions are read of machines with such states alone."""
    late = {name: live.version for name, live in sorted(survey.lives.items()) if any(live.breaches.values())}
    for name, outline in outlines_of(late).items():
        live = survey.lives[name]
        for state in outline.states:
            if state.sla:
                entered = live.breached_since.get(state.name, 0)
                since = entered + state.sla if entered else 0
                count, exact = live.breaches.get(state.name, 0), not live.unchecked.get(state.name)
                yield StuckCount(name, state.name, count, state.sla, since, exact)


MAX_STALLS = 20  # queues whose groups one pass reads
LOOKED = 1_000  # ready jobs of each


def find_stalls(survey: Survey) -> Iterator[Stall]:
    """Yield the queues that workers serve and whose first job waits for long, with the groups that hold jobs back."""
    before, reads, served = survey.now - PAUSED_LONG, MAX_STALLS, list_served(survey.workers)
    for name in sorted(survey.lives):
        for stats in survey.queues[name].values():
            if f"{name}/{stats.queue}" not in served:
                continue
            if stats.paused is not None or not stats.oldest or stats.oldest > before:
                continue
            if not stats.held or not reads:
                yield Stall(name, stats, unread=stats.held > 0)
                continue
            reads -= 1
            try:
                groups = find_stalled(read_groups(get_engine(), name, stats.queue, most=LOOKED).items, before)
                yield Stall(name, stats, groups, not strict_redactor(name).open)
            except SignalboxError:  # a partition went away
                yield Stall(name, stats, unread=True)


def find_lost_schedules(scope: Scope, survey: Survey) -> list[LostSchedule]:
    """Find the paused schedules on machines in scope whose author lost the right. Reads where any is paused alone."""
    live = survey.lives.get(SCHEDULES)
    if not (live.counts.get("paused") if live else SCHEDULES in survey.others):
        return []
    rows = Schedules(get_engine()).find_paused()
    return [
        LostSchedule(row.name, row.schedule.machine, lost, row.entered)
        for row in rows
        if row.schedule.machine in scope and (lost := authors.find_lost_right(row.order))
    ]


def _read_jumps() -> list[ClockJump]:
    """Return the jumps of servers' clocks; none where the shard that has them is away."""
    with contextlib.suppress(EngineUnavailable):
        return get_engine().clock_jumps.read()
    return []


def _compute_measurement_age(now: int) -> int:
    """Return the ms since the last measurement; 0 before the first. ``now``: ms by the clock of Redis."""
    measured = last_measured()
    return max(0, now - measured) if measured else 0
