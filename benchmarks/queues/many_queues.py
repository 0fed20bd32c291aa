"""``python -m benchmarks.queues.many_queues``: what idle workers cost where there are many machines and partitions, how
soon they start a job, and how they share the work.

Prints figures and writes no file. The server's commands include those that functions run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from benchmarks.queues.latency import at
from benchmarks.queues.worker import _family, _spent
from machines.engine import Engine
from machines.engine.connection import routing
from machines.server import Guarded, Server
from tests.engine.connection import clusters

ROOT = Path(__file__).parents[2]
PREFIX = "bench:"
QUEUE = "work"
SETTLE = 90.0  # seconds: what a worker does once is over by then


def definition(number: int) -> dict[str, Any]:
    """A small machine: one state with a timer, one with a job."""
    return {
        "id": f"m{number}",
        "initial": "Waiting",
        "states": {
            "Waiting": {"on": {"go": "Working"}, "after": {"1h": "Done"}},
            "Working": {"invoke": {"src": "wait", "queue": QUEUE, "onDone": "Done", "onError": "Done"}},
            "Done": {"type": "final"},
        },
    }


@contextlib.contextmanager
def _server(folder: Path, cluster: bool) -> Iterator[str]:
    if cluster:
        with clusters.running(folder, None) as nodes:
            yield clusters.url_of(nodes)
    else:
        with Server(folder / "server", persistent=False) as server:
            yield server.url


@contextlib.contextmanager
def _workers(count: int, url: str, folder: Path) -> Iterator[list[Guarded]]:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "benchmarks.queues.ours.settings",
        "REDIS_URL": url,
        "SIGNALBOX_PREFIX": PREFIX,
        "SIGNALBOX_HOME": str(folder),
        "DATABASE_URL": f"sqlite:///{folder}/worker.sqlite3",
    }
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
    found = []
    try:
        for number in range(count):
            with (folder / f"worker{number}.log").open("wb") as log:
                own = environment | {"BENCH_WAITS": str(folder / f"waits{number}")}
                command = [sys.executable, "manage.py", "worker"]
                found.append(Guarded(command, output=log, env=own, cwd=ROOT, grace=20))
        yield found
    finally:
        for each in found:
            each.ask()
        for each in found:
            each.stop()


class Reading:
    """What the servers and the workers have used so far."""

    def __init__(self, nodes: list[redis.Redis], workers: list[Guarded]) -> None:
        self.at = time.monotonic()
        self.commands: Counter[str] = Counter()
        self.server = 0.0
        for node in nodes:
            for name, row in node.info("commandstats").items():
                self.commands[name.removeprefix("cmdstat_")] += row["calls"]
            used = node.info("cpu")
            self.server += used["used_cpu_user"] + used["used_cpu_sys"]
        self.workers = [sum(_spent(pid) for pid in _family(each.pid)) / 1e9 for each in workers]


def _report(title: str, before: Reading, after: Reading) -> None:
    took = after.at - before.at
    spent = after.commands - before.commands
    del spent["info"]
    cpu = [(b - a) / took * 100 for a, b in zip(before.workers, after.workers, strict=True)]
    print(f"\n{title}, {took:.0f} s, {len(cpu)} workers")
    print(
        f"  server: {sum(spent.values()) / took:,.1f} commands/s, {(after.server - before.server) / took * 100:.2f} %"
    )
    print(f"  CPU of a worker: {sum(cpu) / len(cpu):.2f} % of a core, at most {max(cpu):.2f}")
    print("  " + ", ".join(f"{name} {count / took:.1f}/s" for name, count in spent.most_common(14)), flush=True)


def _print_sent(node: redis.Redis, seconds: float) -> None:
    """Prints the functions and commands that clients send, by their number."""
    counted: Counter[str] = Counter()
    until = time.monotonic() + seconds
    with node.monitor() as monitor:
        while time.monotonic() < until:
            if monitor.connection.can_read(timeout=0.2):
                command = monitor.next_command()
                if command["client_type"] != "lua":
                    words = command["command"].split()
                    counted[words[1] if words[0].startswith("FCALL") else words[0]] += 1
    print("  sent: " + ", ".join(f"{name} {count / seconds:.1f}/s" for name, count in counted.most_common(25)))


def _load(engine: Engine, given: argparse.Namespace) -> int:
    """Enqueues jobs on random machines at a steady mean rate; answers how many."""
    names = [f"m{number}" for number in range(given.machines)]
    until, count, due = time.monotonic() + given.load_seconds, 0, time.monotonic()
    while time.monotonic() < until:
        due += random.expovariate(given.rate)
        time.sleep(max(0.0, due - time.monotonic()))
        engine.enqueue(random.choice(names), "wait", {"sent": time.monotonic_ns()}, queue=QUEUE)
        count += 1
    return count


def _waits(folder: Path, workers: int, count: int) -> list[list[float]]:
    """ms from enqueueing to the start, of each worker."""
    deadline = time.monotonic() + 60
    while True:
        files = [folder / f"waits{number}" for number in range(workers)]
        found = [[int(line) / 1e6 for line in f.read_text().split()] if f.exists() else [] for f in files]
        if sum(map(len, found)) >= count or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queues.many_queues", description=__doc__)
    parser.add_argument("--machines", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=12)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30.0, help="how long idle workers are measured")
    parser.add_argument("--rate", type=float, default=100.0, help="jobs a second")
    parser.add_argument("--load-seconds", type=float, default=10.0)
    parser.add_argument("--sent", action="store_true", help="also what the clients of the first server send")
    parser.add_argument("--cluster", action="store_true", help="three nodes instead of one server")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="signalbox-bench-") as name,
        _server(Path(name) / "data", given.cluster) as url,
    ):
        engine = Engine.from_url(url, prefix=PREFIX, partitions=given.partitions)
        for number in range(given.machines):
            engine.publish(definition(number))
        nodes = routing.list_nodes(engine.client)
        print(f"{given.machines} machines of {given.partitions} partitions, {len(nodes)} servers")
        with _workers(given.workers, url, Path(name)) as workers:
            deadline = time.monotonic() + 120
            while len(engine.workers()) < given.workers and time.monotonic() < deadline:
                time.sleep(0.5)
            time.sleep(SETTLE)
            before = Reading(nodes, workers)
            time.sleep(given.seconds)
            after = Reading(nodes, workers)
            _report("idle", before, after)
            if given.sent:
                _print_sent(nodes[0], given.seconds)
            if given.load_seconds:
                count = _load(engine, given)
                _report(f"{given.rate:g} jobs/s", after, Reading(nodes, workers))
                shares = _waits(Path(name), given.workers, count)
                waits = [wait for share in shares for wait in share]
                print(f"  started {len(waits)} of {count}: p50 {at(waits, 0.5):.2f} ms, p99 {at(waits, 0.99):.2f} ms")
                print(f"  by worker: {sorted(map(len, shares))}")


if __name__ == "__main__":
    main()
