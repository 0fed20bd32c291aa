"""Presents the workers: each with its running jobs, the background duties, pending writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from machines.alarms.workers import is_alive
from machines.connections import get_pattern
from machines.duties import DUTIES
from machines.engine import WorkerInfo
from machines.patterns import LentBatch, Locks, Stats
from machines.statistics import writing
from machines.worker.duties.exclusive_duties import read_lock_holders

from .forms import OPEN_TO, ORDERS, OrderForm

LATE = 300_000  # ms that something may wait for the database
MAX_TAKES = 5  # claims of a batch before it needs attention


@dataclass(frozen=True, slots=True)
class Worker:
    """Holds a worker. ``jobs``: running jobs of its row; ``more``: how many others; ``form``: an order not accepted."""

    row: WorkerInfo
    alive: bool
    jobs: list[dict[str, Any]]
    more: int
    orders: list[tuple[str, str, bool]]
    form: OrderForm | None = None


@dataclass(frozen=True, slots=True)
class Duty:
    """Holds a background duty. ``worker``: its holder, "" for none; ``alive``: whether that worker sent a heartbeat
    lately.

    ``since`` and ``until``: ms; ``until`` moves on as long as the worker lives.
    """

    duty: str
    about: str
    worker: str = ""
    fence: int = 0
    since: int = 0
    until: int = 0
    alive: bool = False


@dataclass(frozen=True, slots=True)
class PendingWrites:
    """Holds what waits for the database. ``oldest``: ms; ``stuck``: batches that were claimed again and again."""

    name: str
    stats: Stats
    oldest: float
    late: bool
    stuck: list[LentBatch]


def list_duties(rows: Iterable[WorkerInfo], now: int) -> list[Duty]:
    """List every duty that one worker at a time holds, at ``now`` (ms by the clock of Redis)."""
    living = {row.id for row in rows if is_alive(row, now)}
    return [
        Duty(duty, DUTIES[duty])
        if holder is None
        else Duty(
            duty, DUTIES[duty], holder.owner, holder.fence, holder.since, now + int((holder.left or 0) * 1000),
            holder.owner in living,
        )
        for duty, holder in read_lock_holders(get_pattern(Locks), DUTIES).items()
    ]  # fmt: skip


def list_pending_writes() -> list[PendingWrites]:
    found = []
    for name, stats in writing.waiting().items():
        oldest, stuck = stats.oldest * 1000, [lent for lent in stats.lent if lent.takes > MAX_TAKES]
        found.append(PendingWrites(name, stats, oldest, oldest > LATE, stuck))
    return found


def make_worker(row: WorkerInfo, now: float) -> Worker:
    """Present a worker at ``now`` (ms)."""
    jobs = [job for job in row.holding if isinstance(job, dict)]
    sensible = OPEN_TO.get(row.status, tuple(ORDERS))
    orders = [(order, label, order in sensible) for order, (label, _) in ORDERS.items()]
    return Worker(row, is_alive(row, now), jobs, max(0, row.in_hand - len(jobs)), orders)
