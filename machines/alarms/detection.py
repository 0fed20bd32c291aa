"""Makes alarms of the figures of machines, queues and workers. Does no I/O."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from machines.audit.models import AuditReceiver
from machines.engine import QueueStats, Rollout, WorkerInfo
from machines.engine.definitions import durations
from machines.engine.jobs.clock_jump import ClockJump
from machines.engine.keys import get_machine
from machines.insight.comparison import DriftRule
from machines.insight.records import Drift
from machines.insight.statistics.ages import format_age, format_duration
from machines.insight.statistics.present import Storm
from machines.jobs.groups import GroupFigures

from .alarm import CRITICAL, KINDS, MANY, Alarm, join_words, pluralize
from .workers import WORKING, QueueDepth, is_alive, raise_worker_alarms

MAX_NAMED = 3  # events of a storm, actors of a pause, or groups of a queue
UNMEASURED = 300_000  # ms
PAUSED_LONG = 3_600_000  # ms: by then a pause, or a limit, may have been forgotten


@dataclass(frozen=True, slots=True)
class StuckCount:
    """Counts instances that are in ``state`` for longer than its service level, ``sla`` ms. ``since``: ms at which the
    first of them reached it, 0 for unknown. ``exact``: False where suspended instances may be among them."""

    machine: str
    state: str
    count: int
    sla: int
    since: int = 0
    exact: bool = True

    @property
    def terms(self) -> dict[str, str]:
        """Return the terms of a list of these instances."""
        return {"state": self.state, "older": durations.format_duration(self.sla)}


@dataclass(frozen=True, slots=True)
class LostSchedule:
    """A schedule that is paused because of ``why``: its author may not do any more what it does. ``since``: ms."""

    name: str
    machine: str
    why: str
    since: int = 0


@dataclass(frozen=True, slots=True)
class Stall:
    """A queue, not paused, whose first job waits for more than an hour. ``groups``: those whose limits hold jobs back
    for that long; ``unread``: they were not read; ``hidden``: their names may not be shown."""

    machine: str
    stats: QueueStats
    groups: Sequence[GroupFigures] = ()
    hidden: bool = False
    unread: bool = False

    @property
    def route(self) -> str:
        return f"{self.machine}/{self.stats.queue}"


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures that alarms are made of.

    ``overdue``: machine -> its overdue timers, which workers fire within seconds. ``oldest``: ``machine/queue`` -> ms
    since when its first ready job waits. ``late``: timers whose step failed. ``paused``: queues with their machine;
    queues that are not paused raise nothing. ``stalls``: those without a worker, or whose jobs only wait for their
    turn, raise nothing. ``approvals``: pending requests. ``unmeasured``: ms since a worker last
    measured. ``stopped``: roll-outs that their guards stopped.
    ``lost``: schedules whose author lost the right. ``missing``: roots of partitions that did not answer. ``jumps``: of
    servers' clocks. ``receivers``: of the audit that do not take entries. ``drifts``: broken rules. ``now``: ms, 0 for
    unknown.
    """

    depths: Sequence[QueueDepth] = ()
    workers: Sequence[WorkerInfo] = ()
    overdue: Mapping[str, int] = field(default_factory=dict)
    _: KW_ONLY
    oldest: Mapping[str, int] = field(default_factory=dict)
    stuck: Iterable[StuckCount] = ()
    paused: Iterable[tuple[str, QueueStats]] = ()
    stalls: Iterable[Stall] = ()
    late: Mapping[str, int] = field(default_factory=dict)
    storms: Iterable[Storm] = ()
    approvals: int = 0
    unmeasured: int = 0
    stopped: Iterable[Rollout] = ()
    lost: Iterable[LostSchedule] = ()
    missing: Sequence[str] = ()
    jumps: Iterable[ClockJump] = ()
    receivers: Iterable[AuditReceiver] = ()
    drifts: Iterable[tuple[DriftRule, Drift]] = ()
    now: int = 0


def raise_alarms(figures: Figures) -> list[Alarm]:
    """Make alarms of the figures, in no order."""
    depths, now = figures.depths, figures.now
    found = [_make_approvals_alarm(figures.approvals)] if figures.approvals else []
    found += _make_partitions_alarm(figures.missing)
    current = (each for each in figures.jumps if not (each.undone or each.acknowledged or 0 < each.over < now))
    found += [_make_clock_alarm(each) for each in current]
    found += [_make_dead_alarm(depth) for depth in depths if depth.dead]
    found += raise_worker_alarms(depths, figures.workers, figures.overdue, figures.oldest)
    if any(is_alive(worker) for worker in figures.workers):
        found += [_make_timers_alarm(machine, count) for machine, count in figures.late.items() if count]
        if figures.unmeasured > UNMEASURED:
            found.append(_make_metrics_alarm(figures.unmeasured, now))
    found += [_make_audit_alarm(each) for each in figures.receivers]
    found += [_make_stuck_alarm(each) for each in figures.stuck if each.count]
    found += [_make_refusals_alarm(each) for each in figures.storms]
    found += [_make_rollout_alarm(each) for each in figures.stopped]
    found += [_make_schedule_alarm(each) for each in figures.lost]
    found += [_make_drift_alarm(rule, each) for rule, each in figures.drifts]
    served = list_served(figures.workers)
    found += [
        _make_stall_alarm(each, why, now)
        for each in figures.stalls
        if each.route in served and (why := explain_stall(each))
    ]
    return [*found, *_make_pause_alarms(figures.paused, now)]


def list_served(workers: Iterable[WorkerInfo]) -> set[str]:
    """List the queues that a worker takes jobs from, as ``machine/queue``."""
    return {queue for row in workers if is_alive(row) and row.status in WORKING for queue in row.queues}


def _make(kind: str, key: str, text: str, machine: str = "", *, severity: str = "", **more: Any) -> Alarm:
    return Alarm(key, kind, severity or KINDS[kind].severity, text, machine, **more)


def _choose_severity(kind: str, count: int) -> str:
    return CRITICAL if count >= MANY else KINDS[kind].severity


def _make_dead_alarm(depth: QueueDepth) -> Alarm:
    text = f"{pluralize(depth.dead, 'job')} dead on {depth.route}"
    return _make(
        "dead", f"dead:{depth.route}", text, depth.machine, count=depth.dead, subject=depth.queue,
        severity=_choose_severity("dead", depth.dead),
    )  # fmt: skip


def _make_stuck_alarm(stuck: StuckCount) -> Alarm:
    about = "" if stuck.exact else "at most "
    place = f"{stuck.machine} in {stuck.state}"
    text = f"{about}{pluralize(stuck.count, 'instance')} of {place} for longer than {format_duration(stuck.sla)}"
    return _make(
        "sla", f"sla:{stuck.machine}/{stuck.state}", text, stuck.machine, count=stuck.count, subject=stuck.state,
        terms=stuck.terms, since=stuck.since, severity=_choose_severity("sla", stuck.count),
    )  # fmt: skip


def _make_partitions_alarm(missing: Sequence[str]) -> list[Alarm]:
    """Make one alarm for all partitions that do not answer: of a lost node they are those of many machines."""
    if not missing:
        return []
    by_machine: dict[str, int] = defaultdict(int)
    for root in missing:
        by_machine[get_machine(root)] += 1
    names = sorted(by_machine)
    of = names[0] if len(names) == 1 else f"{len(names)} machines"
    verb = "does" if len(missing) == 1 else "do"
    text = f"{pluralize(len(missing), 'partition')} of {of} {verb} not answer: a node of the cluster is away"
    causes = tuple(f"{name}: {pluralize(by_machine[name], 'partition')}" for name in names)
    return [_make("partitions", "partitions", text, count=len(missing), causes=causes, machines=tuple(names))]


def _make_clock_alarm(jump: ClockJump) -> Alarm:
    server = f"the server {jump.server}" if jump.server else "the server"
    ahead = jump.by > 0
    span = format_age(abs(jump.by) / 1000)
    effect = f"timers fired up to {span} early" if ahead else f"timers that were set before fire up to {span} late"
    text = f"the clock of {server} jumped {'forward' if ahead else 'back'} by {span}: {effect}"
    key = f"clock:{jump.server}@{jump.shown // 1000}"
    return _make("clock", key, text, since=jump.shown, subject=jump.server, causes=(f"noticed by {jump.worker}",))


def _make_approvals_alarm(count: int) -> Alarm:
    text = "1 action waits" if count == 1 else f"{count:,} actions wait"
    return _make("approvals", "approvals", f"{text} for approval", count=count)


def _make_refusals_alarm(storm: Storm) -> Alarm:
    """Make an alarm for a storm of refused events."""
    named = [event or "events that no state accepts" for event in storm.events[:MAX_NAMED]]
    more = f" and {len(storm.events) - MAX_NAMED} more" if len(storm.events) > MAX_NAMED else ""
    text = f"about {storm.rate:,.0f} events per minute refused by {storm.machine}: {', '.join(named)}{more}"
    return _make("refused", f"refused:{storm.machine}", text, storm.machine, count=round(storm.rate))


def _make_rollout_alarm(rollout: Rollout) -> Alarm:
    text = f"roll-out of {rollout.machine} v{rollout.version} stopped by its guard: {rollout.reason}"
    key = f"rollout:{rollout.machine}/{rollout.version}"
    return _make("rollout", key, text, rollout.machine, since=rollout.stopped or 0)


def _make_schedule_alarm(lost: LostSchedule) -> Alarm:
    text = f"schedule {lost.name} on {lost.machine} paused: {lost.why}"
    key = f"schedule:{lost.machine}/{lost.name}"
    return _make("schedule", key, text, lost.machine, subject=lost.name, since=lost.since)


def _make_drift_alarm(rule: DriftRule, found: Drift) -> Alarm:
    window = format_duration(rule.window)
    way = "from {} to {}".format(*rule.states) if len(rule.states) == 2 else " → ".join(rule.states)
    if rule.percent:
        of = f"p{rule.percent} of {rule.machine} {'on' if rule.is_path else 'in'} {' → '.join(rule.states)}"
        now, before = (format_duration(ms) for ms in (found.now, found.before))
    else:
        of = f"share of {rule.machine} {way}"
        now, before = (f"{100 * share:.3g} %" for share in (found.now, found.before))
    text = f"{of} was {now} in the last {window}, and {before} in the {window} before"
    return _make("drift", f"drift:{rule.machine}/{rule.text}", text, rule.machine, subject=rule.states[0])


def _make_metrics_alarm(ms: int, now: int) -> Alarm:
    text = f"no metrics recorded for {format_age(ms / 1000)} although workers are running: see the worker logs"
    return _make("metrics", "metrics", text, since=max(0, now - ms) if now else 0)


def _make_audit_alarm(receiver: AuditReceiver) -> Alarm:
    text = f"{receiver.name} does not take the audit since entry {receiver.number}: {receiver.error}"
    since = int(receiver.since.timestamp() * 1000) if receiver.since else 0
    return _make("audit", f"audit:{receiver.name}", text, since=since)


def _make_timers_alarm(machine: str, count: int) -> Alarm:
    text = f"{pluralize(count, 'timer')} of {machine} due, but the step fails; retried every minute"
    return _make("timers", f"timers:{machine}", text, machine, count=count)


def _make_pause_alarms(queues: Iterable[tuple[str, QueueStats]], now: int) -> Iterator[Alarm]:
    """Yield an alarm for each machine with queues whose pause may have been forgotten."""
    by_machine: dict[str, list[QueueStats]] = defaultdict(list)
    for machine, stats in queues:
        if stats.paused is not None and now - stats.paused.since > PAUSED_LONG:
            by_machine[machine].append(stats)
    for machine, held in by_machine.items():
        pauses = [stats.paused for stats in held if stats.paused is not None]
        since, actors = min(pause.since for pause in pauses), sorted({pause.actor for pause in pauses if pause.actor})
        by_actors = f" by {join_words(actors, MAX_NAMED)}" if actors else ""
        one = len(held) == 1
        what = f"{machine}/{held[0].queue}" if one else f"{len(held)} queues of {machine}"
        text = f"{what} paused for {format_age((now - since) / 1000)}{by_actors}"
        yield _make(
            "paused", f"paused:{machine}", text, machine, since=since, count=len(held),
            subject=held[0].queue if one else "",
            causes=() if one else tuple(f"{machine}/{stats.queue}" for stats in held),
        )  # fmt: skip


def explain_stall(stall: Stall) -> str:
    """Say what holds the jobs of a queue back; "" where they only wait for their turn."""
    stats, parts = stall.stats, []
    if stall.unread:
        return f"its groups hold {pluralize(stats.held, 'job')} back"
    if paused := [each.name for each in stall.groups if each.paused]:
        parts.append(f"{_name_groups(paused, stall.hidden)} {'is' if len(paused) == 1 else 'are'} paused")
    if limited := [each for each in stall.groups if not each.paused]:
        named = _name_groups([each.name for each in limited], stall.hidden)
        limits = f"limited to {limited[0].limits}" if len(limited) == 1 else "limited"
        parts.append(f"{named} {'is' if len(limited) == 1 else 'are'} {limits}")
    if parts:
        return join_words(parts)
    leased = stats.depth["leased"]
    if stats.concurrency is not None and leased >= stats.concurrency:
        return f"the queue is limited to {stats.concurrency:,} at a time, and as many run"
    if stats.rate:
        return f"the queue is limited to {stats.rate}"
    return "" if leased else "workers serve the queue, but take none of its jobs"


def _name_groups(names: Sequence[str], hidden: bool) -> str:
    if hidden:
        return pluralize(len(names), "group")
    return f"group{'' if len(names) == 1 else 's'} {join_words(names, MAX_NAMED)}"


def _make_stall_alarm(stall: Stall, why: str, now: int) -> Alarm:
    stats, oldest = stall.stats, stall.stats.oldest or now
    count = stats.held if stall.groups else stats.depth["ready"]
    text = f"{pluralize(count, 'job')} ready on {stall.route}, the first for {format_age((now - oldest) / 1000)}: {why}"
    return _make(
        "stalled", f"stalled:{stall.route}", text, stall.machine, since=oldest, count=count, subject=stats.queue
    )
