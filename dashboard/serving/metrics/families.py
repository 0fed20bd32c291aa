"""Converts the engine's counters to Prometheus metric families. Does no I/O.

The number of series is bounded by what is published: states, transitions of current versions, and queues.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from dashboard.shared.counts import PLACES
from machines.alarms.workers import is_alive
from machines.engine import Live, QueueStats, Survey

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
    background duty -> whether a worker has it. ``audit``: number and digest
    of the head of the audit.
    """

    survey: Survey | None
    now: float = 0
    sockets: int = 0
    approvals: Mapping[str, int] | None = None
    measured: int | None = None
    kept: Mapping[str, bool] = field(default_factory=dict)
    audit: tuple[int, str] | None = None

    def collect(self) -> Iterator[Metric]:
        yield _make_gauge("up", "1 if Redis answered, else 0.", int(self.survey is not None))
        if self.survey is None:
            return
        yield _make_gauge("websocket_clients", "Open websockets of this process.", self.sockets)
        readable = [([name], int(name in self.survey.lives)) for name in (*self.survey.lives, *self.survey.faults)]
        yield _make_gauges("machine_readable", "1 if the machine could be read, else 0.", ["machine"], readable)
        lives = list(self.survey.lives.values())
        # Rows say when they were written by the clock of Redis; that of this machine is for want of it.
        now = max((live.now for live in lives), default=self.now)
        yield from _measure_machines(lives)
        yield from _measure_states(lives)
        yield from _measure_flow(lives)
        yield from self._measure_stored(now)
        yield from _measure_queues(
            [(name, stats) for name, each in self.survey.queues.items() for stats in each.values()]
        )
        yield from _measure_workers(self.survey, now)
        kept = [([duty], int(has)) for duty, has in self.kept.items()]
        yield _make_gauges("duty_kept", "1 if a worker holds this background duty, else 0.", ["duty"], kept)

    def _measure_stored(self, now: float) -> Iterator[Metric]:
        if self.approvals is not None and self.survey is not None:
            waiting = [([name], self.approvals.get(name, 0)) for name in self.survey.lives]
            yield _make_gauges("approvals_waiting", "Actions waiting for approval.", ["machine"], waiting)
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


Rows = Iterable[tuple[list[str], float]]
"""The labels of each series with its value."""


def _make_gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(f"signalbox_{name}", meaning, value=value)


def _make_gauges(name: str, meaning: str, labels: list[str], rows: Rows) -> Metric:
    return _add_rows(GaugeMetricFamily(f"signalbox_{name}", meaning, labels=labels), rows)


def _make_counters(name: str, meaning: str, labels: list[str], rows: Rows) -> Metric:
    return _add_rows(CounterMetricFamily(f"signalbox_{name}", meaning, labels=labels), rows)


def _add_rows(family: GaugeMetricFamily | CounterMetricFamily, rows: Rows) -> Metric:
    for labels, value in rows:
        family.add_metric(labels, value)
    return family


def _measure_machines(lives: list[Live]) -> Iterator[Metric]:
    for name, (meaning, attribute) in OF_MACHINES.items():
        yield _make_gauges(name, meaning, ["machine"], [([live.machine], getattr(live, attribute)) for live in lives])


def _measure_states(lives: list[Live]) -> Iterator[Metric]:
    labels = ["machine", "state"]
    counts = [([live.machine, state], count) for live in lives for state, count in live.counts.items()]
    yield _make_gauges("instances", "Instances by leaf state.", labels, counts)
    ages = [
        ([live.machine, state], max(0, live.now - since) / 1000)
        for live in lives
        for state, since in live.oldest.items()
    ]
    yield _make_gauges("oldest_seconds", "Time in state of the oldest instance in the state.", labels, ages)
    breaches = [([live.machine, state], count) for live in lives for state, count in live.breaches.items()]
    yield _make_gauges("sla_breaches", "Instances over the service level of the state.", labels, breaches)


def _measure_flow(lives: list[Live]) -> Iterator[Metric]:
    """Count each edge of the current version alone: the edges of all versions would grow without end. Events that no
    state handles share an empty name, so the number of their series is bounded, too."""
    taken = [([live.machine], sum(live.flow.values())) for live in lives]
    yield _make_counters("transitions", "Transitions taken, all versions.", ["machine"], taken)
    found = [(live, *name.partition(":")[::2], count) for live in lives for name, count in live.flow.items()]
    edges = [([live.machine, at, edge], count) for live, at, edge, count in found if at == str(live.version)]
    meaning, labels = "Transitions taken by the current version, by edge.", ["machine", "version", "edge"]
    yield _make_counters("edge_transitions", meaning, labels, edges)
    refused = [([live.machine, event], count) for live in lives for event, count in live.refused.items()]
    yield _make_counters("events_refused", "Events refused.", ["machine", "event"], refused)
    meaning = "Steps that could not be compiled, and are interpreted, since the servers loaded the library."
    failures = [([live.machine], live.compile_failures) for live in lives]
    yield _make_counters("compile_failures", meaning, ["machine"], failures)


def _measure_queues(queues: list[tuple[str, QueueStats]]) -> Iterator[Metric]:
    labels = ["machine", "queue"]
    jobs = [([name, stats.queue, place], stats.depth[place]) for name, stats in queues for place in PLACES]
    yield _make_gauges("jobs", "Jobs by queue and state.", [*labels, "place"], jobs)
    waits = [
        ([name, stats.queue], 0 if stats.oldest is None else max(0, stats.now - stats.oldest) / 1000)
        for name, stats in queues
    ]
    yield _make_gauges("queue_oldest_ready_seconds", "Waiting time of the oldest ready job.", labels, waits)
    paused = [([name, stats.queue], int(stats.paused is not None)) for name, stats in queues]
    yield _make_gauges("queue_paused", "1 if the queue is paused, else 0.", labels, paused)
    for counter, (meaning, attribute) in OF_QUEUES.items():
        rows = [([name, stats.queue], getattr(stats, attribute)) for name, stats in queues]
        yield _make_counters(counter, meaning, labels, rows)
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
    counts = Counter(row.status if is_alive(row, now) else "silent" for row in survey.workers)
    rows = [([status], counts[status]) for status in dict.fromkeys([*STATUSES, *counts])]
    yield _make_gauges("workers", "Workers by status; silent: no recent heartbeat.", ["status"], rows)
    yield _make_gauge("jobs_in_hand", "Jobs running on workers.", sum(row.in_hand for row in survey.workers))
