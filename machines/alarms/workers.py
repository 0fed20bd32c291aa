"""Alarms about workers: none is running, some are quiet, exhausted or blocked, none serves a queue, none has a handler.

One cause makes one alarm, however many queues and machines it affects.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from machines.engine import WorkerInfo

from .alarm import KINDS, Alarm, join_words, pluralize

SILENT_AFTER = 11_000  # ms without a heartbeat: two were missed, and after the third the row is gone
MAX_NAMED = 3  # workers, or handlers, of one line
WORKING = ("working", "blocked")
HANGING = {
    "exhausted": "hang past their deadlines; it takes no jobs and ends",
    "blocked": "keep its event loop from answering",
}
MAX_KEY = 120  # characters


class QueueDepth(NamedTuple):
    """Jobs of a queue by place, as far as alarms count them."""

    machine: str
    queue: str
    ready: int = 0
    delayed: int = 0
    dead: int = 0

    @property
    def route(self) -> str:
        return f"{self.machine}/{self.queue}"


def is_alive(row: WorkerInfo, now: float | None = None) -> bool:
    """Return whether the last heartbeat is recent at ``now`` (ms); a silent worker may be stuck, cut off or gone."""
    return (now if now is not None else time.time() * 1000) - row.seen < SILENT_AFTER


def raise_worker_alarms(
    depths: Sequence[QueueDepth], workers: Iterable[WorkerInfo], overdue: Mapping[str, int], oldest: Mapping[str, int]
) -> Iterator[Alarm]:
    """Yield the alarms. ``overdue``: machine -> overdue timers; ``oldest``: ``machine/queue`` -> ms since when its
    first ready job waits."""
    alive = [worker for worker in workers if is_alive(worker)]
    if not alive:
        yield from _make_no_worker_alarm([depth for depth in depths if depth.ready], overdue, oldest)
        return
    yield from _make_hanging_alarms(alive)
    working = [worker for worker in alive if worker.status in WORKING]
    served = {queue for worker in working for queue in worker.queues}
    waiting = [depth for depth in depths if depth.ready and depth.route not in served]
    yield from _make_unserved_alarms(waiting, [worker for worker in alive if worker.status == "quiet"], oldest)
    for depth in depths:
        yield from _make_handler_alarms(depth, working, oldest)


def _make_no_worker_alarm(
    waiting: Sequence[QueueDepth], overdue: Mapping[str, int], oldest: Mapping[str, int]
) -> Iterator[Alarm]:
    """Yield one alarm for all that waits for any worker."""
    overdue = {machine: count for machine, count in overdue.items() if count}
    if not waiting and not overdue:
        return
    jobs, timers = sum(depth.ready for depth in waiting), sum(overdue.values())
    parts = [f"{pluralize(jobs, 'job')} ready on {_name_queues(waiting)}"] if waiting else []
    parts += [f"{pluralize(timers, 'timer')} of {_name_machines(list(overdue))} overdue"] if overdue else []
    causes = [f"{depth.route}: {pluralize(depth.ready, 'job')} ready" for depth in waiting]
    causes += [f"{machine}: {pluralize(count, 'timer')} overdue" for machine, count in overdue.items()]
    yield Alarm(
        "no-worker", "no-worker", KINDS["no-worker"].severity, f"no worker is running: {', '.join(parts)}",
        count=jobs + timers, causes=tuple(causes), since=_find_first(waiting, oldest),
        machines=tuple(dict.fromkeys([*(depth.machine for depth in waiting), *overdue])),
    )  # fmt: skip


def _make_unserved_alarms(
    waiting: Iterable[QueueDepth], quiet: Sequence[WorkerInfo], oldest: Mapping[str, int]
) -> Iterator[Alarm]:
    """Yield an alarm for each group of quiet workers that queues wait for, and one for each machine with queues that
    no worker serves at all."""
    behind: dict[tuple[str, ...], list[QueueDepth]] = defaultdict(list)
    unserved: dict[str, list[QueueDepth]] = defaultdict(list)
    names = {worker.id: f"{worker.host} {worker.pid}" for worker in quiet}
    for depth in waiting:
        group = tuple(sorted(worker.id for worker in quiet if depth.route in worker.queues))
        if group:
            behind[group].append(depth)
        else:
            unserved[depth.machine].append(depth)
    for group, depths in behind.items():
        yield _make_quiet_alarm(group, [names[id] for id in group], depths, oldest)
    for machine, depths in unserved.items():
        yield _make_unserved_alarm(machine, depths, oldest)


def _make_hanging_alarms(workers: Iterable[WorkerInfo]) -> Iterator[Alarm]:
    """Yield an alarm for each worker that is exhausted or blocked, with the handlers that hang."""
    for worker in workers:
        if worker.status in HANGING:
            names = sorted({name for names in worker.hanging.values() for name in names})
            text = f"worker {worker.host} {worker.pid} is {worker.status}: {join_words(names, MAX_NAMED) or 'handlers'}"
            kind = worker.status
            key = f"{kind}:{worker.id}"[:MAX_KEY]
            yield Alarm(
                key, kind, KINDS[kind].severity, f"{text} {HANGING[kind]}", count=len(names),
                causes=tuple(f"{route}: {', '.join(found)}" for route, found in worker.hanging.items()),
                machines=tuple(dict.fromkeys(route.partition("/")[0] for route in worker.hanging)),
            )  # fmt: skip


def _make_quiet_alarm(
    ids: Sequence[str], names: Sequence[str], depths: Sequence[QueueDepth], oldest: Mapping[str, int]
) -> Alarm:
    who = f"worker {names[0]} is quiet" if len(names) == 1 else f"{len(names)} workers are quiet"
    which = "" if len(names) == 1 else f" ({join_words(names, MAX_NAMED)})"
    it = "it" if len(names) == 1 else "them"
    waits = f"queue {depths[0].route} waits" if len(depths) == 1 else f"{len(depths)} queues wait"
    joined = ",".join(ids)
    key = joined if len(joined) <= MAX_KEY else hashlib.sha256(joined.encode()).hexdigest()[:16]
    return Alarm(
        f"quiet:{key}", "quiet", KINDS["quiet"].severity, f"{who}{which}: {waits} for {it}",
        count=sum(depth.ready for depth in depths), since=_find_first(depths, oldest), causes=_list_routes(depths),
        machines=tuple(dict.fromkeys(depth.machine for depth in depths)),
    )  # fmt: skip


def _make_unserved_alarm(machine: str, depths: Sequence[QueueDepth], oldest: Mapping[str, int]) -> Alarm:
    jobs = sum(depth.ready for depth in depths)
    one = len(depths) == 1
    text = (
        f"{pluralize(jobs, 'job')} ready on {depths[0].route}, but no worker serves it"
        if one
        else f"no worker serves {len(depths)} queues of {machine}: {pluralize(jobs, 'job')} ready"
    )
    return Alarm(
        f"unserved:{machine}", "unserved", KINDS["unserved"].severity, text, machine, since=_find_first(depths, oldest),
        count=jobs, causes=() if one else _list_routes(depths), subject=depths[0].queue if one else "",
    )  # fmt: skip


def _make_handler_alarms(
    depth: QueueDepth, working: Iterable[WorkerInfo], oldest: Mapping[str, int]
) -> Iterator[Alarm]:
    """Yield an alarm for handlers that all workers of the queue lack. Such a job goes back to ready or delayed."""
    lacking = [set(worker.lacking.get(depth.route, ())) for worker in working if depth.route in worker.queues]
    missing = sorted(set.intersection(*lacking)) if lacking else []
    if missing and depth.ready + depth.delayed:
        text = f"no worker has a handler for {', '.join(missing)}, needed by jobs on {depth.route}"
        yield Alarm(
            f"no-handler:{depth.route}", "no-handler", KINDS["no-handler"].severity, text, depth.machine,
            since=_find_first([depth], oldest), count=depth.ready + depth.delayed, subject=depth.queue,
        )  # fmt: skip


def _name_queues(depths: Sequence[QueueDepth]) -> str:
    return depths[0].route if len(depths) == 1 else f"{len(depths):,} queues"


def _name_machines(machines: Sequence[str]) -> str:
    return machines[0] if len(machines) == 1 else f"{len(machines):,} machines"


def _list_routes(depths: Iterable[QueueDepth]) -> tuple[str, ...]:
    return tuple(f"{depth.route}: {pluralize(depth.ready, 'job')} ready" for depth in depths)


def _find_first(depths: Iterable[QueueDepth], oldest: Mapping[str, int]) -> int:
    return min((oldest[depth.route] for depth in depths if oldest.get(depth.route)), default=0)
