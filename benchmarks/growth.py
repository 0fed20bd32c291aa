"""``python -m benchmarks.growth [INSTANCES]``: a machine goes into a file and out of it, and grows under load.

Prints instances a second, the pauses of two callers meanwhile, and how evenly the partitions are filled. Revisions are
added up at the end: each acknowledged step is there once.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from machines.engine import Engine
from machines.engine.transfer import Export, Import, Repartition
from machines.engine.transfer.repartitioning import SETTLE

from . import stage

STEPS = 5  # of each instance, beside its creation
BATCH = 1000
MACHINE = {
    "id": "c",
    "initial": "On",
    "context": {"n": 0},
    "states": {"On": {"on": {"add": {"actions": {"set": {"n": "n + 1"}}}}}},
}


def fill(engine: Engine, count: int) -> None:
    engine.publish(MACHINE)
    root = engine.keys.partition("c").root
    for start in range(0, count, BATCH):
        pipeline = engine.client.pipeline(transaction=False)
        for number in range(start, min(count, start + BATCH)):
            pipeline.fcall("sb_create", 1, root, f"order-{number}")
            for _ in range(STEPS):
                pipeline.fcall("sb_fire", 1, root, f"order-{number}", "add")
        pipeline.execute()


class Caller(threading.Thread):
    """Fires at random instances, one call after the other."""

    def __init__(self, url: str, count: int) -> None:
        super().__init__(daemon=True)
        self.engine, self.count = Engine.from_url(url), count
        self.over = threading.Event()
        self.done, self.longest = 0, 0.0

    def run(self) -> None:
        while not self.over.is_set():
            began = time.perf_counter()
            self.engine.fire("c", f"order-{random.randrange(self.count)}", "add")
            self.done, self.longest = self.done + 1, max(self.longest, time.perf_counter() - began)
        self.engine.client.close()


def measure(url: str, count: int, folder: Path) -> None:
    engine, other = Engine.from_url(url), Engine.from_url(url, prefix="other:")
    fill(engine, count)
    began = time.monotonic()
    Export(engine.client, engine.keys, "c", folder / "c.sb").run()
    exported = time.monotonic()
    problems = Import(other.client, other.keys, folder / "c.sb", partitions=8).run().others
    imported = time.monotonic()
    size = (folder / "c.sb").stat().st_size / count
    print(f"export {count / (exported - began):.0f} instances/s, {size:.0f} bytes each")
    print(f"import {count / (imported - exported):.0f} instances/s, {problems} problems")
    callers = [Caller(url, count) for _ in range(2)]
    for caller in callers:
        caller.start()
    time.sleep(2)
    alone = sum(caller.done for caller in callers) / 2
    for caller in callers:
        caller.longest = 0.0
    fired, began = sum(caller.done for caller in callers), time.monotonic()
    report = Repartition(engine.client, engine.keys, "c", 8).run()
    took = time.monotonic() - began
    during = (sum(caller.done for caller in callers) - fired) / took
    for caller in callers:
        caller.over.set()
        caller.join()
    rate = report.moved / (took - SETTLE)
    print(f"1 -> 8 partitions: {report.moved} moved, {rate:.0f} instances/s after {SETTLE:.0f} s")
    print(f"busiest partition {report.busiest:.3f} of the mean, {sum(report.sizes)} instances")
    longest = max(caller.longest for caller in callers) * 1000
    print(f"two callers: {alone:.0f} fires/s before, {during:.0f} meanwhile, longest {longest:.0f} ms")
    fresh, revisions = Engine.from_url(url), 0
    for start in range(0, count, BATCH):
        ids = [f"order-{number}" for number in range(start, min(count, start + BATCH))]
        revisions += sum(instance.version for instance in fresh.get_many("c", ids))
    expected = count * (STEPS + 1) + sum(caller.done for caller in callers)
    print(f"revisions {revisions}, acknowledged steps {expected}")
    for one in (engine, other, fresh):
        one.client.close()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with stage.server(None) as url, tempfile.TemporaryDirectory() as folder:
        measure(url, count, Path(folder))


if __name__ == "__main__":
    main()
