"""Collects what needs attention now: alarms, each with a link to what it is about."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from machines.engine import Live, QueueStats, Survey, WorkerInfo
from machines.engine.definitions import durations
from machines.patterns import Stats
from machines.services import approvals
from machines.statistics import Present, Storm, buffer_flush, last_measured, storms

from . import times, version_view
from .access import Scope
from .queue_depths import Depth, read_depths

SILENT_AFTER = 11_000  # ms without a heartbeat: two were missed, and after the third the row is gone
MAX_NAMED = 3  # events of a storm
UNMEASURED = 300_000  # ms
PAUSED_LONG = 3_600_000  # ms: by then a pause may have been forgotten


@dataclass(frozen=True, slots=True)
class Alarm:
    """Holds an alarm. ``url``: of its subject; ``act_url``: of a form that fixes it, if there is one."""

    text: str
    url: str
    act: str = ""
    act_url: str = ""


@dataclass(frozen=True, slots=True)
class Stuck:
    """Counts instances that are in ``state`` for longer than its service level, ``sla`` ms.

    ``operated``: whether the viewer may act on them.
    """

    machine: str
    state: str
    count: int
    sla: int
    operated: bool = False

    @property
    def url(self) -> str:
        """Return the address of the list of these instances."""
        return f"{reverse('signalbox:machine', args=[self.machine])}?{self._terms}#instances"

    @property
    def act_url(self) -> str:
        """Return the address of a bulk action on them."""
        return f"{reverse('signalbox:bulk-new', args=[self.machine])}?{self._terms}"

    @property
    def _terms(self) -> str:
        return urlencode({"state": self.state, "older": durations.format_duration(self.sla)})


def collect_alarms(scope: Scope, operated: Scope, survey: Survey, rates: Mapping[str, Present]) -> list[Alarm]:
    """Collect the alarms of the machines in scope. ``operated``: the machines on which the viewer may act."""
    lives = sorted(survey.lives.items())
    return raise_alarms(
        [depth for name, live in lives for depth in read_depths(name, live.queues)],
        survey.workers,
        {name: live.overdue for name, live in lives},
        stuck=_find_stuck(survey, operated),
        paused=[(name, stats) for name, _ in lives for stats in survey.queues[name].values()],
        late={name: live.late for name, live in survey.lives.items()},
        storms=storms(rates),
        approvals=approvals.waiting(scope).count(),
        unmeasured=_since_measured(survey.lives.values()),
        unwritten=buffer_flush.waiting(),
    )


def _find_stuck(survey: Survey, operated: Scope) -> Iterator[Stuck]:
    """Yield the states whose service level is broken. Definitions are read of machines with such states alone."""
    late = {name: live.version for name, live in sorted(survey.lives.items()) if any(live.breaches.values())}
    for name, version in version_view.load_versions(late).items():
        for state in version.outline.states:
            if state.sla:
                count = survey.lives[name].breaches.get(state.name, 0)
                yield Stuck(name, state.name, count, state.sla, name in operated)


def _since_measured(lives: Iterable[Live]) -> int:
    """Return the ms since the last measurement, by the clock of Redis; 0 before the first."""
    measured = last_measured()
    return max(0, max((live.now for live in lives), default=0) - measured) if measured else 0


def raise_alarms(
    depths: Iterable[Depth],
    workers: Iterable[WorkerInfo],
    overdue: Mapping[str, int] | None = None,
    *,
    stuck: Iterable[Stuck] = (),
    paused: Iterable[tuple[str, QueueStats]] = (),
    late: Mapping[str, int] | None = None,
    storms: Iterable[Storm] = (),
    approvals: int = 0,
    unmeasured: int = 0,
    unwritten: Mapping[str, Stats] | None = None,
) -> list[Alarm]:
    """Make alarms of the figures.

    ``overdue``: machine -> its overdue timers, which workers fire within moments. ``late``: timers whose step failed.
    ``paused``: queues with their machine; queues that are not paused raise nothing. ``approvals``: pending requests.
    ``unmeasured``: ms since a worker last measured. ``unwritten``: pending writes to the database.
    """
    alive = [worker for worker in workers if is_alive(worker)]
    working = [worker for worker in alive if worker.status == "working"]
    served = {queue for worker in working for queue in worker.queues}
    found = [_approvals_alarm(approvals)] if approvals else []
    found += [alarm for depth in depths for alarm in (*_queue_alarms(depth, served), *_handler_alarms(depth, working))]
    if alive:
        found += [_failing_timers_alarm(machine, count) for machine, count in (late or {}).items() if count]
        lagging = {name: stats for name, stats in (unwritten or {}).items() if stats.oldest * 1000 > UNMEASURED}
        found += [_writes_alarm(name, stats) for name, stats in lagging.items()]
        found += [_metrics_alarm(unmeasured)] if unmeasured > UNMEASURED and "statistics" not in lagging else []
    else:
        found += [_overdue_timers_alarm(machine, count) for machine, count in (overdue or {}).items() if count]
    found += [_stuck_alarm(each) for each in stuck if each.count]
    found += [_refusals_alarm(each) for each in storms]
    return found + [_paused_alarm(machine, stats) for machine, stats in paused if _is_forgotten(stats)]


def _stuck_alarm(stuck: Stuck) -> Alarm:
    place = f"{stuck.machine} in {stuck.state}"
    text = f"{_pluralize(stuck.count, 'instance')} of {place} for longer than {times.format_duration(stuck.sla)}"
    return Alarm(text, stuck.url, *(("Repair", stuck.act_url) if stuck.operated else ()))


def _approvals_alarm(count: int) -> Alarm:
    text = "1 action waits" if count == 1 else f"{count:,} actions wait"
    return Alarm(f"{text} for approval", reverse("signalbox:approvals"))


def _refusals_alarm(storm: Storm) -> Alarm:
    """Make an alarm for a storm of refused events. It links to their chart on the machine's page."""
    named = [event or "events that no state accepts" for event in storm.events[:MAX_NAMED]]
    more = f" and {len(storm.events) - MAX_NAMED} more" if len(storm.events) > MAX_NAMED else ""
    text = f"about {storm.rate:,.0f} events per minute refused by {storm.machine}: {', '.join(named)}{more}"
    return Alarm(text, f"{reverse('signalbox:machine', args=[storm.machine])}#chart-refused")


def _metrics_alarm(ms: int) -> Alarm:
    text = f"no metrics recorded for {times.format_age(ms / 1000)} although workers are running: see the worker logs"
    return Alarm(text, reverse("signalbox:workers"))


def _writes_alarm(name: str, stats: Stats) -> Alarm:
    verb = "wait" if name.endswith("s") else "waits"
    text = f"{name} {verb} to be written to the database for {times.format_age(stats.oldest)}: see the worker logs"
    return Alarm(text, f"{reverse('signalbox:workers')}#unwritten")


def _failing_timers_alarm(machine: str, count: int) -> Alarm:
    text = f"{_pluralize(count, 'timer')} of {machine} due, but the step fails; retried every minute"
    return Alarm(text, reverse("signalbox:machine", args=[machine]))


def _is_forgotten(stats: QueueStats) -> bool:
    return stats.paused is not None and stats.now - stats.paused.since > PAUSED_LONG


def _paused_alarm(machine: str, stats: QueueStats) -> Alarm:
    since, by = (stats.paused.since, stats.paused.actor) if stats.paused else (0, "")
    told = f" by {by}" if by else ""
    text = f"{machine}/{stats.queue} paused for {times.format_age((stats.now - since) / 1000)}{told}"
    return Alarm(text, reverse("signalbox:queue", args=[machine, stats.queue]))


def _overdue_timers_alarm(machine: str, count: int) -> Alarm:
    text = f"{_pluralize(count, 'timer')} of {machine} overdue: no worker is running"
    return Alarm(text, reverse("signalbox:machine", args=[machine]))


def _queue_alarms(depth: Depth, served: set[str]) -> Iterator[Alarm]:
    address = reverse("signalbox:queue", args=[depth.machine, depth.queue])
    if depth.dead:
        yield Alarm(f"{_pluralize(depth.dead, 'job')} dead on {depth.route}", f"{address}?place=dead")
    if depth.ready and depth.route not in served:
        yield Alarm(f"{_pluralize(depth.ready, 'job')} ready on {depth.route}, but no worker serves it", address)


def _handler_alarms(depth: Depth, working: Iterable[WorkerInfo]) -> Iterator[Alarm]:
    """Yield an alarm for handlers that all workers of the queue lack. Such a job goes back to ready or delayed."""
    lacking = [set(worker.lacking.get(depth.route, ())) for worker in working if depth.route in worker.queues]
    missing = sorted(set.intersection(*lacking)) if lacking else []
    if missing and depth.ready + depth.delayed:
        text = f"no worker has a handler for {', '.join(missing)}, needed by jobs on {depth.route}"
        yield Alarm(text, reverse("signalbox:queue", args=[depth.machine, depth.queue]))


def _pluralize(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"


def is_alive(row: WorkerInfo, now: float | None = None) -> bool:
    """Return whether the last heartbeat is recent at ``now`` (ms); a silent worker may be stuck, cut off or gone."""
    return (now if now is not None else time.time() * 1000) - row.seen < SILENT_AFTER
