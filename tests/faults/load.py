"""Processes that use a machine while it grows: ``python -m tests.faults.load WHAT URL FILE``.

``tick`` fires at random instances, ``create`` makes new ones; they write down what was acknowledged, and end with their
standard input. ``grow`` spreads the machine over more partitions, ``migrate`` moves all instances to its version 2.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections import Counter
from pathlib import Path

from machines.engine import Engine, EngineUnavailable
from machines.engine.transfer.repartitioning import Repartition

MACHINE = "spread"
JOBS = 2
RENAMED = {"s0": "a0", "On": "Counting"}  # state of version 1 -> state of version 2
KNOWN = 1000  # instances that are there from the beginning


def spread() -> dict:
    """One region counts ticks; the other does two jobs and waits for a timer."""
    work = {
        "initial": "s0",
        "states": {
            f"s{n}": {
                "invoke": {
                    "src": "quick", "queue": "jobs", "lease": "2s", "retry": {"attempts": 20, "backoff": "10ms"},
                    "onDone": {"target": f"s{n + 1}", "actions": {"set": {"jobs": "jobs + 1"}}}, "onError": "lost",
                }
            }
            for n in range(JOBS)
        },
    }  # fmt: skip
    work["states"][f"s{JOBS}"] = {"after": {"200ms": {"target": "timed", "actions": {"set": {"timers": "timers + 1"}}}}}
    work["states"] |= {"timed": {}, "lost": {}}
    count = {"initial": "On", "states": {"On": {"on": {"tick": {"actions": {"set": {"n": "n + 1"}}}}}}}
    return {
        "id": MACHINE,
        "initial": "Both",
        "history": 200,
        "context": {"n": 0, "jobs": 0, "timers": 0},
        "states": {"Both": {"type": "parallel", "states": {"Work": work, "Count": count}}},
    }


class Load:
    """Does ``act`` until its standard input ends, then writes what was acknowledged."""

    def __init__(self, url: str, file: str) -> None:
        self.engine = Engine.from_url(url)
        self.file = Path(file)
        self.over = threading.Event()
        self.acknowledged: Counter[str] = Counter()
        self.problems: Counter[str] = Counter()

    def run(self, act) -> None:
        threading.Thread(target=self._watch, daemon=True).start()
        while not self.over.is_set():
            try:
                act()
            except EngineUnavailable as error:
                self.problems[error.code] += 1
                if not error.retry_safe:
                    self.problems[f"unsure: {error}"] += 1
            except Exception as error:
                self.problems[f"{type(error).__name__}: {error}"[:200]] += 1
            self.over.wait(0.004)
        self.file.write_text(json.dumps({"acknowledged": self.acknowledged, "problems": self.problems}))

    def _watch(self) -> None:
        sys.stdin.read()
        self.over.set()

    def tick(self) -> None:
        id = f"i{random.randrange(KNOWN)}"
        key = f"k{os.getpid()}-{self.acknowledged.total()}"
        self.engine.fire(MACHINE, id, "tick", key=key)
        self.acknowledged[id] += 1
        if self.acknowledged.total() % 5 == 0:  # the same call again
            again = self.engine.fire(MACHINE, id, "tick", key=key)
            if not again.outcome.replayed:
                self.problems["a repeated call counted twice"] += 1

    def tick_many(self) -> None:
        ids = random.sample(range(KNOWN), 10)
        for id, found in zip(ids, self.engine.fire_many([(MACHINE, f"i{n}", "tick") for n in ids]), strict=True):
            if isinstance(found, Exception):
                self.problems[f"{type(found).__name__}: {found}"[:200]] += 1
            else:
                self.acknowledged[f"i{id}"] += 1

    def create(self) -> None:
        id = f"c{self.acknowledged.total()}"
        self.engine.create(MACHINE, id)
        self.acknowledged[id] += 1


def main(what: str, url: str, file: str) -> None:
    if what == "grow":
        engine = Engine.from_url(url)
        report = Repartition(engine.client, engine.keys, MACHINE, 8).run()
        Path(file).write_text(
            json.dumps({"moved": report.moved, "finished": report.finished, "resumed": report.resumed})
        )
        return
    if what == "migrate":
        engine = Engine.from_url(url)
        found = engine.migrate(engine.plan(MACHINE, 2, states=RENAMED))
        Path(file).write_text(
            json.dumps(
                {"moved": found.moved, "already": found.already, "kept": found.kept, "refused": len(found.refused)}
            )
        )
        return
    load = Load(url, file)
    load.run(getattr(load, what))


if __name__ == "__main__":
    main(*sys.argv[1:])
