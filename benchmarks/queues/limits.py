"""Groups and their limits on a server of one's own: ``python -m benchmarks.queues.limits URL``.

Prints the server's time for a job (processor time, which other processes do not disturb), the memory of a waiting
group, the wait of a quiet group beside a flood in takes, the deviation from ideal weighted fair queueing in jobs, and
the error of a rate with twenty workers.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable

from machines.engine import Engine

MACHINE = {"id": "limits", "initial": "idle", "states": {"idle": {}}}
JOBS, GROUPS, FLOOD = 20_000, 100_000, 100_000
WEIGHTS = {"a": 1, "b": 2, "c": 5, "d": 10}
RATE, BURST, WORKERS, SECONDS = 50, 25, 20, 20
TOGETHER = 250  # jobs of one call


def put(engine: Engine, groups: Iterable[str | None], **options: object) -> None:
    items = [{"machine": "limits", "src": "work", "group": group} | options for group in groups]
    for start in range(0, len(items), TOGETHER):
        engine.enqueue_many(items[start : start + TOGETHER])


def drain(engine: Engine) -> None:
    while jobs := engine.take("limits", "work", "w", count=50):
        engine.complete_many([(job, None) for job in jobs])


def read_time(engine: Engine) -> float:
    info = engine.client.info("cpu")
    return float(info["used_cpu_user"] + info["used_cpu_sys"])


def measure_time(engine: Engine, groups: Iterable[str | None]) -> float:
    """Return the µs of the server for a job that is put, taken and completed."""
    chosen, before = list(groups), read_time(engine)
    put(engine, chosen)
    drain(engine)
    return (read_time(engine) - before) / len(chosen) * 1e6


def measure_memory(engine: Engine, limited: bool) -> tuple[float, float]:
    """Return the bytes for a job without a group, and those that its group adds."""
    sizes = []
    for groups in (None for _ in range(GROUPS)), (f"g{n:06}" for n in range(GROUPS)):
        engine.client.flushall()
        engine.publish(MACHINE | ({"queues": {"work": {"groups": {"concurrency": 2}}}} if limited else {}))
        before = engine.client.info("memory")["used_memory"]
        put(engine, groups)
        sizes.append((engine.client.info("memory")["used_memory"] - before) / GROUPS)
    return sizes[0], sizes[1] - sizes[0]


def measure_flood(engine: Engine) -> list[int]:
    """Return, of quiet jobs beside a flood and 100,000 groups, how many others were taken before each."""
    put(engine, ["flood"] * FLOOD)
    waits = []
    for number in range(50):
        put(engine, [f"quiet{number}"])
        passed = 0
        while not any(job.group != "flood" for job in engine.take("limits", "work", "w", count=1)):
            passed += 1
        waits.append(passed)
    return waits


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


def measure_rate(engine: Engine) -> float:
    """Return the error of a rate with many workers, in percent; the burst at the beginning is not one."""
    engine.limit("limits", "work", group="a", rate=f"{RATE}/s burst {BURST}")
    put(engine, ["a"] * RATE * SECONDS * 2)
    moments: list[float] = []
    until = time.monotonic() + SECONDS

    def work(name: str) -> None:
        while time.monotonic() < until:
            found = engine.take("limits", "work", name)
            moments.extend(time.monotonic() for _ in found)
            time.sleep(max(found.wait or 0, 1) / 1000)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = BURST + RATE * (max(moments) - min(moments))
    return (len(moments) - expected) / expected * 100


def main() -> None:
    engine = Engine.from_url(sys.argv[1])

    def begin(**more: object) -> None:
        engine.client.flushall()
        engine.publish(MACHINE | more)

    begin()
    print(f"no groups: {measure_time(engine, [None] * JOBS):.1f} µs of the server for a job")
    print(f"100 groups: {measure_time(engine, [f'g{n % 100}' for n in range(JOBS)]):.1f} µs")
    begin(queues={"work": {"groups": {"concurrency": 1000}}})
    print(f"100 groups with limits: {measure_time(engine, [f'g{n % 100}' for n in range(JOBS)]):.1f} µs")
    for limited in (False, True):
        alone, more = measure_memory(engine, limited)
        print(f"memory of a job {alone:.0f} bytes, a waiting group{' with limits' * limited} {more:.0f} more")
    begin()
    print(f"jobs taken before that of a quiet group, beside a flood: at most {max(measure_flood(engine))}")
    begin()
    print(f"largest deviation from ideal weighted fair queueing: {measure_deviation(engine):.1f} jobs")
    begin()
    print(f"error of a rate of {RATE}/s with {WORKERS} workers: {measure_rate(engine):+.2f} %")


if __name__ == "__main__":
    main()
