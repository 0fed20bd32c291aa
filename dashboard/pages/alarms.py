"""What needs a person now: the strip on top of the overview, each alarm one click from what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from django.urls import reverse

from dashboard.pages.depths import Depth
from dashboard.pages.workers import is_alive
from machines.engine import WorkerRow


@dataclass(frozen=True, slots=True)
class Alarm:
    text: str
    url: str


def raised(
    depths: Iterable[Depth], workers: Iterable[WorkerRow], overdue: Mapping[str, int] | None = None
) -> list[Alarm]:
    """``overdue``: machine -> how many of its timers should have fired; workers see to that within moments."""
    alive = [worker for worker in workers if is_alive(worker)]
    served = {queue for worker in alive if worker.status == "working" for queue in worker.queues}
    late = [] if alive else [_late(machine, count) for machine, count in (overdue or {}).items() if count]
    return [alarm for depth in depths for alarm in _about(depth, served)] + late


def _late(machine: str, count: int) -> Alarm:
    timers = "1 timer" if count == 1 else f"{count:,} timers"
    return Alarm(f"{timers} of {machine} overdue, and no worker is running", reverse("machine", args=[machine]))


def _about(depth: Depth, served: set[str]) -> Iterator[Alarm]:
    address = reverse("queue", args=[depth.machine, depth.queue])
    if depth.dead:
        yield Alarm(f"{_jobs(depth.dead)} dead on {depth.route}", f"{address}?place=dead")
    if depth.ready and depth.route not in served:
        yield Alarm(f"{_jobs(depth.ready)} ready on {depth.route}, and no worker serves it", address)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
