"""What an idle worker costs at very many machines, duties included: its CPU, and the commands that it sends."""

from __future__ import annotations

import time
from functools import partial

from benchmarks.process import read_cpu
from benchmarks.queues.idle import watch
from benchmarks.report import Aim, Row, Section
from benchmarks.site import Installation

from .pages import seed
from .place import Place, nodes

MACHINES, PARTITIONS = 500, 12
SETTLE, SECONDS = 300.0, 120.0  # by then duties have read what the start brought
ADOPT = "from machines.catalog.publishing import adopt_published; adopt_published({})"


def measure(one: Place, many: Place) -> Section:
    rows, aims = [], []
    for place in (one, many):
        cpu, commands = _measure(place)
        rows += [
            Row(f"{place.title}: CPU of the worker", cpu, unit="% of a core"),
            Row(f"{place.title}: commands sent", commands),
        ]
        aims.append(Aim(f"idle worker, {place.title}, % of a core", 1.0, cpu, at_most=True))
        aims.append(Aim(f"idle worker, {place.title}, commands a second", 50, commands, at_most=True))
    title = f"An idle worker at {MACHINES} machines of {PARTITIONS} partitions"
    return Section(title, rows, f"Over {SECONDS:.0f} s, {SETTLE:.0f} s after its start.", aims)


def _measure(place: Place) -> tuple[float, float]:
    with place.engine(PARTITIONS) as engine, Installation(place.url, LOG_LEVEL="ERROR") as worker:
        seed(engine, MACHINES, 1)
        worker.run("shell", "-c", ADOPT)
        worker.start("worker")
        time.sleep(SETTLE)
        at = [node.connection_pool.connection_kwargs for node in nodes(engine)]
        urls = [f"redis://{each['host']}:{each['port']}" for each in at if "port" in each] or [place.url]
        sent, cpu = watch(urls, SECONDS, partial(read_cpu, worker.pid))
        return cpu * 100, sent
