"""Each attack in turn, and what a probe found meanwhile."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection as Pipe
from typing import Any

from benchmarks.children import receive, run_child

from . import attacks, probe
from .attacks import TITLES
from .scene import Scene

QUIET = 4.0  # seconds without an attack, before the first
LEAST = 5.0  # seconds that are measured however soon an attack is through
REST = 8.0  # seconds between two
HEALTH_GOAL, PAGE_GOAL = 200.0, 1000.0  # ms at p99


def measured(scene: Scene, names: list[str]) -> Iterator[dict[str, Any]]:
    with run_child(probe.serve, scene) as probing, run_child(attacks.serve, scene) as attacking:
        _asked(probing, QUIET)  # what is read once in a process is read now
        yield _row("nobody attacks", "", _asked(probing, QUIET))
        for name in names:
            probing.send("start")
            started = time.monotonic()
            attacking.send(name)
            tally = receive(attacking)
            time.sleep(max(0.0, LEAST - (time.monotonic() - started)))
            probing.send("stop")
            yield _row(TITLES[name], ", ".join(attacks.rows(tally)), receive(probing))
            time.sleep(REST)


def _asked(probing: Pipe, seconds: float) -> tuple[probe.Lane, probe.Lane]:
    probing.send("start")
    time.sleep(seconds)
    probing.send("stop")
    lanes: tuple[probe.Lane, probe.Lane] = receive(probing)
    return lanes


def _row(title: str, came: str, lanes: tuple[probe.Lane, probe.Lane]) -> dict[str, Any]:
    health, pages = lanes
    row = {
        "title": title,
        "healthz": [round(health.at(share)) for share in (0.5, 0.99, 1.0)],
        "pages": [round(pages.at(share)) for share in (0.5, 0.95, 0.99, 1.0)],
        "bad": {name: lane.bad for name, lane in (("healthz", health), ("pages", pages))},
        "asked": [sum(health.statuses.values()), sum(pages.statuses.values())],
        "came": came,
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(row), flush=True)
    return row
