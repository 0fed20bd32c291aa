"""Who is measured: the command of each worker, of its producer, and where its unfinished jobs are counted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from machines.engine.keys import Partition

from . import installed
from .ours import machine

ROOT = Path(__file__).parent.parent.parent
PRODUCE = installed.PEERS / "produce.py"

Command = tuple[str, ...]

#: one of each family, for a quick look
QUICK = (
    "RQ, SimpleWorker",
    "Celery, 8 threads",
    "Dramatiq, 8 threads",
    "Huey, 8 threads",
    "BullMQ, concurrency 50",
    "Signalbox, jobs that move a machine, 50 at a time",
    "Signalbox, bare jobs, 50 at a time",
)


@dataclass(frozen=True, slots=True)
class Contender:
    """``open``: commands whose answers add up to the unfinished jobs. ``ours`` needs its machine published."""

    title: str
    jobs: int  # in one measurement of throughput: a few seconds' worth
    work: Command
    produce: Command
    folder: Path
    open: tuple[tuple[str, str], ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False
    moves: bool = False  # each of its jobs moves an instance of a machine


def ours(options: Command) -> list[Contender]:
    """``options``: further ones for our worker."""
    kinds = (("jobs that move a machine", "moving", 60_000), ("bare jobs", "bare", 60_000))
    return [
        _ours(f"Signalbox, {kind}{title}", module, jobs, (*concurrency, *options))
        for kind, module, jobs in kinds
        for title, concurrency in (
            (", one at a time", ("--concurrency", "1")),
            ("", ()),
            (", 50 at a time", ("--concurrency", "50")),
        )
    ]


def _ours(title: str, module: str, jobs: int, options: Command) -> Contender:
    keys = Partition(f"{machine.PREFIX}{{{machine.NAME}:0}}")
    return Contender(
        title,
        jobs,
        (sys.executable, str(ROOT / "manage.py"), "worker", *options),
        (sys.executable, str(PRODUCE), f"benchmarks.queues.ours.{module}"),
        ROOT,
        (("ZCARD", keys.ready(machine.QUEUE)), ("ZCARD", keys.leased(machine.QUEUE))),
        {
            "DJANGO_SETTINGS_MODULE": "benchmarks.queues.ours.settings",
            "PYTHONPATH": str(ROOT),
            "SIGNALBOX_PREFIX": machine.PREFIX,
            "SIGNALBOX_EXAMPLES": "0",
            "LOG_LEVEL": "WARNING",
            "DATABASE_URL": "",
            "CACHE_URL": "",
        },
        ours=True,
        moves=module == "moving",
    )


def in_python(url: str) -> list[Contender]:
    """RQ, Celery, Dramatiq and Huey, started by the commands they come with."""
    python = installed.python()

    def peer(title: str, jobs: int, module: str, opened: Mapping[str, str], *work: str) -> Contender:
        program, *options = work
        return Contender(
            title,
            jobs,
            (str(python.parent / program), *options),
            (str(python), str(PRODUCE), module),
            installed.PEERS,
            tuple((command, key) for key, command in opened.items()),
            {"PYTHONPATH": str(installed.PEERS)},
        )

    rq = {"rq:queue:bench": "LLEN", "rq:wip:bench": "ZCARD"}
    celery = {"bench": "LLEN", "unacked": "HLEN"}
    app = ("celery", "-A", "celery_jobs", "worker", "--without-gossip", "--without-mingle", "-l", "WARNING")
    simple = ("--worker-class", "rq.SimpleWorker", "--logging_level", "WARNING")
    return [
        peer("RQ, SimpleWorker", 2000, "rq_jobs", rq, "rq", "worker", *simple, "--url", url, "bench"),
        peer("Celery, solo", 5000, "celery_jobs", celery, *app, "--pool", "solo"),
        peer("Celery, 8 threads", 5000, "celery_jobs", celery, *app, "--pool", "threads", "--concurrency", "8"),
        peer(
            "Dramatiq, 8 threads",
            8000,
            "dramatiq_jobs",
            {"dramatiq:bench.msgs": "HLEN"},
            *("dramatiq", "dramatiq_jobs", "--processes", "1", "--threads", "8"),
        ),
        *(
            peer(title, 10_000, "huey_jobs", {"huey.redis.bench": "LLEN"}, *command)
            for title, command in {
                "Huey, 1 thread": ("huey_consumer", "huey_jobs.huey", "-q", "-w", "1"),
                "Huey, 8 threads": ("huey_consumer", "huey_jobs.huey", "-q", "-w", "8"),
            }.items()
        ),
    ]


def in_node() -> list[Contender]:
    """BullMQ at three concurrencies."""
    folder = installed.node()
    script = ("node", installed.NODE_SCRIPT)
    opened = (("LLEN", "bull:bench:wait"), ("LLEN", "bull:bench:active"))
    return [
        Contender(f"BullMQ, concurrency {number}", jobs, (*script, "work", str(number)), script, folder, opened)
        for number, jobs in ((1, 20_000), (8, 50_000), (50, 60_000))
    ]
