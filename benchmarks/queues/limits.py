"""Groups and their limits: ``python -m benchmarks.queues.limits [PART ...] [URL]``, on a server of its own without URL.

``time``: the server's time for a job (processor time, which other processes do not disturb); ``memory``: that of a
waiting group; ``wait``: that of jobs of quiet groups, of 100,000, beside a flood of a million jobs of another;
``deviation``: from ideal weighted fair queueing, in jobs; ``rate``: the error of a rate with twenty worker processes,
all there is on a cluster (``redis+cluster://...``). All take some ten minutes, ``wait`` three.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from benchmarks.stage import read_server_cpu, server
from machines.engine import Engine
from machines.worker import Job
from machines.worker.launcher import Launcher
from machines.worker.options import Options
from machines.worker.registry import Registry

MACHINE = {"id": "limits", "initial": "idle", "states": {"idle": {}}}
JOBS, GROUPS, FLOOD, QUIET = 20_000, 100_000, 1_000_000, 500
WEIGHTS = {"a": 1, "b": 2, "c": 5, "d": 10}
PARTS = ["time", "memory", "wait", "deviation", "rate"]
RATE, WORKERS, START, SECONDS = 50, 20, 10, 20
TOGETHER = 250  # jobs of one call


def put(engine: Engine, groups: Iterable[str | None], **options: object) -> None:
    items = [{"machine": "limits", "src": "work", "group": group} | options for group in groups]
    for start in range(0, len(items), TOGETHER):
        engine.enqueue_many(items[start : start + TOGETHER])


def measure_time(engine: Engine, groups: Iterable[str | None]) -> float:
    """Return the µs of the server for a job that is put, taken and completed."""
    chosen, before = list(groups), read_server_cpu(engine.client)
    put(engine, chosen)
    while jobs := engine.take("limits", "work", "w", count=50):
        engine.complete_many([(job, None) for job in jobs])
    return (read_server_cpu(engine.client) - before) / len(chosen) * 1e6


def measure_memory(engine: Engine, limited: bool) -> tuple[float, float]:
    """Return the bytes for a job without a group that is stored as a hash, as one of a group is, and those that the
    group adds. A plain job is a string, and smaller."""
    sizes = []
    for groups in (None for _ in range(GROUPS)), (f"g{n:06}" for n in range(GROUPS)):
        begin(engine, **({"queues": {"work": {"groups": {"concurrency": 2}}}} if limited else {}))
        before = engine.client.info("memory")["used_memory"]
        put(engine, groups, attempts=4)
        sizes.append((engine.client.info("memory")["used_memory"] - before) / GROUPS)
    return sizes[0], sizes[1] - sizes[0]


def measure_wait(engine: Engine, flood: int) -> float:
    """Return the 99th percentile of the ms from enqueue to the handler, of jobs of quiet groups beside a flood."""
    waits: list[float] = []
    begin(engine)
    measure_time(engine, (f"quiet{number}" for number in range(GROUPS)))
    put(engine, ["flood"] * flood)

    def note(job: Job) -> None:
        if job.taken.group != "flood":
            waits.append(time.time() * 1000 - job.taken.created)

    launcher = start_worker(engine, note)
    for number in range(QUIET):
        put(engine, [f"quiet{number * 199}"])
        time.sleep(0.02)
    assert engine.queues("limits")["work"]["ready"] or not flood, "the flood was over too soon"
    launcher.stop()
    return statistics.quantiles(waits, n=100)[98]


def start_worker(engine: Engine, function: Callable[[Job], None]) -> Launcher:
    registry = Registry()
    registry.handler("work")(function)
    launcher = Launcher(engine, registry, Options(id=f"w{os.getpid()}", helper_limit=0))
    threading.Thread(target=launcher.run, daemon=True).start()
    return launcher


def measure_deviation(engine: Engine) -> float:
    """Return by how many jobs a group was at most ahead of or behind its share, whenever jobs of all waited."""
    for group, weight in WEIGHTS.items():
        put(engine, [group] * 5000, weight=weight)
    taken: Counter[str] = Counter()
    worst, total = 0.0, sum(WEIGHTS.values())
    for number in range(1, 8000):
        taken.update(job.group for job in engine.take("limits", "work", "w", count=1))
        worst = max(worst, *(abs(taken[group] - number * weight / total) for group, weight in WEIGHTS.items()))
    return worst


def measure_rate(url: str, rate: str) -> float:
    """Return the error of a rate with many workers, in percent; their start and end do not count."""
    engine = Engine.from_url(url)
    engine.limit("limits", "work", group="a", rate=rate)
    put(engine, ["a"] * RATE * SECONDS * 3)
    found: multiprocessing.Queue[list[float]] = multiprocessing.Queue()
    until = time.time() + START + SECONDS
    workers = [multiprocessing.Process(target=work_until, args=(url, until, found)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    moments = sorted(moment for _ in workers for moment in found.get())
    counted = [moment for moment in moments if until - SECONDS < moment < until - 1]
    return ((len(counted) - 1) / (counted[-1] - counted[0]) / RATE - 1) * 100


def work_until(url: str, until: float, found: multiprocessing.Queue[list[float]]) -> None:
    moments: list[float] = []
    launcher = start_worker(Engine.from_url(url), lambda job: moments.append(time.time()))
    time.sleep(max(0.0, until - time.time()))
    launcher.stop()
    found.put(moments)


def begin(engine: Engine, **more: object) -> None:
    engine.client.execute_command("FLUSHALL", "SYNC")  # what is freed later would count as freed by what comes
    engine.publish(MACHINE | more)


def measure(part: str, engine: Engine, url: str) -> Iterator[str]:
    begin(engine)
    if part == "time":
        yield f"no groups: {measure_time(engine, [None] * JOBS):.1f} µs of the server for a job"
        yield f"100 groups: {measure_time(engine, [f'g{n % 100}' for n in range(JOBS)]):.1f} µs"
        begin(engine, queues={"work": {"groups": {"concurrency": 1000}}})
        yield f"100 groups with limits: {measure_time(engine, [f'g{n % 100}' for n in range(JOBS)]):.1f} µs"
    elif part == "memory":
        for limited in (False, True):
            alone, more = measure_memory(engine, limited)
            yield f"memory of a job {alone:.0f} bytes, a waiting group{' with limits' * limited} {more:.0f} more"
    elif part == "wait":
        for flood in 0, FLOOD:
            yield f"p99 of a quiet group beside a flood of {flood:,} jobs: {measure_wait(engine, flood):.1f} ms"
    elif part == "deviation":
        yield f"largest deviation from ideal weighted fair queueing: {measure_deviation(engine):.1f} jobs"
    else:
        for rate in f"{RATE}/s", f"{RATE}/s burst 1", f"{RATE}/s burst 25":
            begin(engine)
            yield f"error of a rate of {rate} with {WORKERS} workers: {measure_rate(url, rate):+.2f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="PART or URL")
    given = parser.parse_args().words
    urls, parts = [word for word in given if "://" in word], [word for word in given if "://" not in word] or PARTS
    if unknown := set(parts) - set(PARTS):
        parser.error(f"the parts are {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    with server(urls[0] if urls else None) as url:
        engine = Engine.from_url(url, partitions=6 if "cluster" in url else 1)
        for part in ["rate"] if "cluster" in url else parts:
            print(*measure(part, engine, url), sep="\n", flush=True)


if __name__ == "__main__":
    main()
