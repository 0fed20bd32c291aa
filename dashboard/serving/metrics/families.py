"""Converts the engine's counters to Prometheus metric families. Does no I/O.

The number of series is bounded by what is published: states, transitions of current versions, and queues.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from dashboard.shared.counts import PLACES
from machines.alarms.workers import is_alive
from machines.engine import Live, QueueStats, Survey
from machines.patterns import Stats

MAGNITUDES = 23
"""Buckets of a histogram: the last one ends at 2^22 ms, some 70 minutes."""

STATUSES = ("working", "blocked", "quiet", "exhausted", "stopping", "silent")

OF_MACHINES = {
    "instances_present": ("Instances of a machine; an instance with several regions is counted once.", "total"),
    "timers_pending": ("Pending timers.", "timers"),
    "timers_overdue": ("Overdue timers.", "overdue"),
    "timers_failing": ("Overdue timers whose step failed; retried every minute.", "late"),
    "outbox_length": ("Messages between instances that are not delivered yet.", "mail"),
}
OF_QUEUES = {
    "jobs_enqueued": ("Jobs enqueued.", "enqueued"),
    "jobs_taken": ("Jobs taken by workers, each attempt counted.", "taken"),
    "jobs_completed": ("Jobs completed.", "completed"),
    "attempts_failed": ("Failed attempts.", "failed"),
    "attempts_lost": ("Attempts whose lease expired.", "lost"),
    "jobs_died": ("Jobs that became dead: out of attempts.", "died"),
    "jobs_withdrawn": ("Jobs withdrawn, by a step that left their state or by an operator.", "withdrawn"),
    "jobs_purged": ("Jobs purged by an operator.", "purged"),
}
TIMES = {
    "job_wait_seconds": ("Time from ready to taken; upper bounds are exclusive.", "waits"),
    "job_run_seconds": ("Time from taken to completed; upper bounds are exclusive.", "runs"),
}


@dataclass(frozen=True, eq=False)
class Snapshot(Collector):
    """One scrape. ``survey`` is None where Redis did not answer; ``now``: ms; ``sockets``: those of this process.

    ``approvals``: machine -> actions that wait for a second person; ``measured``: ms at which statistics were last
    taken. Both are None where the database did not answer, ``measured`` also where nobody has measured yet. ``kept``:
    background duty -> whether a worker has it. ``unwritten``: what waits for the database. ``audit``: number and digest
    of the head of the audit.
    """

    survey: Survey | None
    now: float = 0
    sockets: int = 0
    approvals: Mapping[str, int] | None = None
    measured: int | None = None
    kept: Mapping[str, bool] = field(default_factory=dict)
    unwritten: Mapping[str, Stats] = field(default_factory=dict)
    audit: tuple[int, str] | None = None

    def collect(self) -> Iterator[Metric]:
        yield _make_gauge("up", "1 if Redis answered, else 0.", int(self.survey is not None))
        if self.survey is None:
            return
        yield _make_gauge("websocket_clients", "Open websockets of this process.", self.sockets)
        yield _measure_readable(self.survey)
        lives = list(self.survey.lives.values())
        queues = [(name, stats) for name, each in self.survey.queues.items() for stats in each.values()]
        yield from _measure_machines(lives)
        yield from _measure_states(lives)
        yield from _measure_flow(lives)
        yield _count_refused(lives)
        yield _compile_failures(lives)
        yield from self._measure_unwritten()
        yield from self._measure_stored(max((live.now for live in lives), default=self.now))
        yield from _measure_queues(queues)
        # Rows say when they were written by the clock of Redis; that of this machine is for want of it.
        yield from _measure_workers(self.survey, max((live.now for live in lives), default=self.now))
        duties = _make_gauge("duty_kept", "1 if a worker holds this background duty, else 0.", labels=["duty"])
        for duty, has in self.kept.items():
            duties.add_metric([duty], int(has))
        yield duties

    def _measure_unwritten(self) -> Iterator[Metric]:
        entries = _make_gauge("unwritten_entries", "Entries waiting to be written to the database.", labels=["buffer"])
        oldest = _make_gauge(
            "unwritten_oldest_seconds",
            "Age of the oldest entry waiting to be written to the database.",
            labels=["buffer"],
        )
        for name, stats in self.unwritten.items():
            entries.add_metric([name], stats.pending + stats.held)
            oldest.add_metric([name], stats.oldest)
        yield from (entries, oldest)

    def _measure_stored(self, now: float) -> Iterator[Metric]:
        if self.approvals is not None:
            family = _make_gauge("approvals_waiting", "Actions waiting for approval.", labels=["machine"])
            for name in self.survey.lives if self.survey else ():
                family.add_metric([name], self.approvals.get(name, 0))
            yield family
        if self.audit is not None:
            number, digest = self.audit
            yield _make_gauge("audit_head", "Number of the newest audit entry.", number)
            meaning = "The first 12 hexadecimal digits of the digest of the newest audit entry, as a number."
            yield _make_gauge("audit_head_digest", meaning, int(digest[:12] or "0", 16))
        if self.measured is not None:
            age = max(0, now - self.measured) / 1000
            yield _make_gauge("statistics_age_seconds", "Time since a worker last recorded statistics.", age)


def list_families() -> list[Metric]:
    """List every metric, without values."""
    return list(Snapshot(Survey(), approvals={}, measured=0, audit=(0, "")).collect())


def list_series(family: Metric) -> list[str]:
    """List the names of a metric's series."""
    endings = {"counter": ["_total"], "histogram": ["_bucket", "_count"]}.get(family.type, [""])
    return [family.name + ending for ending in endings]


def registry(snapshot: Snapshot) -> CollectorRegistry:
    """Return a registry of its own for each scrape, so that nothing is left for the next."""
    found = CollectorRegistry(auto_describe=False)
    found.register(snapshot)
    return found


def _make_gauge(name: str, meaning: str, value: float | None = None, labels: Iterable[str] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(
        f"signalbox_{name}", meaning, value=value, labels=None if value is not None else list(labels)
    )


def _make_counter(name: str, meaning: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"signalbox_{name}", meaning, labels=labels)


def _measure_readable(survey: Survey) -> Metric:
    family = _make_gauge("machine_readable", "1 if the machine could be read, else 0.", labels=["machine"])
    for name in (*survey.lives, *survey.faults):
        family.add_metric([name], int(name in survey.lives))
    return family


def _measure_machines(lives: list[Live]) -> Iterator[Metric]:
    for name, (meaning, attribute) in OF_MACHINES.items():
        family = _make_gauge(name, meaning, labels=["machine"])
        for live in lives:
            family.add_metric([live.machine], getattr(live, attribute))
        yield family


def _measure_states(lives: list[Live]) -> Iterator[Metric]:
    labels = ["machine", "state"]
    instances = _make_gauge("instances", "Instances by leaf state.", labels=labels)
    oldest = _make_gauge("oldest_seconds", "Time in state of the oldest instance in the state.", labels=labels)
    breaches = _make_gauge("sla_breaches", "Instances over the service level of the state.", labels=labels)
    for live in lives:
        for state, count in live.counts.items():
            instances.add_metric([live.machine, state], count)
        for state, since in live.oldest.items():
            oldest.add_metric([live.machine, state], max(0, live.now - since) / 1000)
        for state, count in live.breaches.items():
            breaches.add_metric([live.machine, state], count)
    yield from (instances, oldest, breaches)


def _measure_flow(lives: list[Live]) -> Iterator[Metric]:
    """Count each edge of the current version alone: the edges of all versions would grow without end."""
    all_of = _make_counter("transitions", "Transitions taken, all versions.", "machine")
    edges = _make_counter(
        "edge_transitions", "Transitions taken by the current version, by edge.", "machine", "version", "edge"
    )
    for live in lives:
        all_of.add_metric([live.machine], sum(live.flow.values()))
        for name, count in live.flow.items():
            version, _, edge = name.partition(":")
            if version == str(live.version):
                edges.add_metric([live.machine, version, edge], count)
    yield from (all_of, edges)


def _count_refused(lives: list[Live]) -> Metric:
    """Count refused events. Events that no state handles share an empty name, so the number of series is bounded."""
    family = _make_counter("events_refused", "Events refused.", "machine", "event")
    for live in lives:
        for event, count in live.refused.items():
            family.add_metric([live.machine, event], count)
    return family


def _compile_failures(lives: list[Live]) -> Metric:
    meaning = "Steps that could not be compiled, and are interpreted, since the servers loaded the library."
    family = _make_counter("compile_failures", meaning, "machine")
    for live in lives:
        family.add_metric([live.machine], live.compile_failures)
    return family


def _measure_queues(queues: list[tuple[str, QueueStats]]) -> Iterator[Metric]:
    labels = ["machine", "queue"]
    jobs = _make_gauge("jobs", "Jobs by queue and state.", labels=[*labels, "place"])
    oldest = _make_gauge("queue_oldest_ready_seconds", "Waiting time of the oldest ready job.", labels=labels)
    paused = _make_gauge("queue_paused", "1 if the queue is paused, else 0.", labels=labels)
    for machine, stats in queues:
        for place in PLACES:
            jobs.add_metric([machine, stats.queue, place], stats.depth[place])
        waited = 0 if stats.oldest is None else max(0, stats.now - stats.oldest)
        oldest.add_metric([machine, stats.queue], waited / 1000)
        paused.add_metric([machine, stats.queue], int(stats.paused is not None))
    yield from (jobs, oldest, paused)
    for name, (meaning, attribute) in OF_QUEUES.items():
        counter = _make_counter(name, meaning, *labels)
        for machine, stats in queues:
            counter.add_metric([machine, stats.queue], getattr(stats, attribute))
        yield counter
    yield from _measure_times(queues)


def _measure_times(queues: list[tuple[str, QueueStats]]) -> Iterator[Metric]:
    """Build the histograms of times, without sums: only the magnitude of a time is known, and a made-up sum would be
    taken for a true one."""
    for name, (meaning, attribute) in TIMES.items():
        family = HistogramMetricFamily(f"signalbox_{name}", meaning, labels=["machine", "queue"])
        for machine, stats in queues:
            counted: dict[int, int] = getattr(stats, attribute)
            family.add_metric([machine, stats.queue], _make_buckets(counted), None)
            count = sum(counted.values())
            family.add_sample(f"{family.name}_count", {"machine": machine, "queue": stats.queue}, count)
        yield family


def _make_buckets(counted: dict[int, int]) -> list[tuple[str, float]]:
    """Return cumulative buckets, as Prometheus wants them: magnitude n stands for less than 2^n ms."""
    found, so_far = [], 0
    for magnitude in range(MAGNITUDES):
        so_far += counted.get(magnitude, 0)
        found.append((str(2**magnitude / 1000), float(so_far)))
    return [*found, ("+Inf", float(sum(counted.values())))]


def _measure_workers(survey: Survey, now: float) -> Iterator[Metric]:
    workers = _make_gauge("workers", "Workers by status; silent: no recent heartbeat.", labels=["status"])
    counts = dict.fromkeys(STATUSES, 0)
    for row in survey.workers:
        status = row.status if is_alive(row, now) else "silent"
        counts[status] = counts.get(status, 0) + 1
    for status, count in counts.items():
        workers.add_metric([status], count)
    yield workers
    yield _make_gauge("jobs_in_hand", "Jobs running on workers.", sum(row.in_hand for row in survey.workers))
