"""What an idle worker costs at very many machines, duties included: its CPU, and the commands that it sends."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.queues.idle import Sent
from benchmarks.report import Aim, Row, Section
from benchmarks.room.process import Process
from benchmarks.site import ROOT
from benchmarks.stage import PREFIX

from .pages import seed
from .place import Place, nodes

MACHINES, PARTITIONS = 500, 12
SETTLE, SECONDS = 300.0, 120.0  # by then duties have read what the start brought
ADOPT = "from machines.catalog.publishing import adopt_published; adopt_published({})"


def measure(one: Place, many: Place) -> tuple[Section, list[Aim]]:
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
    return Section(title, rows, f"Over {SECONDS:.0f} s, {SETTLE:.0f} s after its start."), aims


def _measure(place: Place) -> tuple[float, float]:
    with place.engine(PARTITIONS) as engine, tempfile.TemporaryDirectory() as home:
        seed(engine, MACHINES, 1)
        environment = os.environ | {
            "REDIS_URL": place.url, "SIGNALBOX_PREFIX": PREFIX, "SIGNALBOX_HOME": home, "DATABASE_URL": "",
            "CACHE_URL": "", "LOG_LEVEL": "ERROR",
        }  # fmt: skip
        command = [sys.executable, "manage.py"]
        subprocess.run([*command, "migrate", "-v", "0"], cwd=ROOT, env=environment, check=True)
        subprocess.run([*command, "shell", "-v", "0", "-c", ADOPT], cwd=ROOT, env=environment, check=True)
        worker = subprocess.Popen([*command, "worker"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
        try:
            time.sleep(SETTLE)
            with contextlib.ExitStack() as stack:
                urls = [f"redis://{at['host']}:{at['port']}" for at in _addresses(engine)] or [place.url]
                sent = [stack.enter_context(Sent(url)) for url in urls]
                process, before, began = Process(worker.pid), Process(worker.pid).cpu(), time.monotonic()
                time.sleep(SECONDS)
                took = time.monotonic() - began
                return (process.cpu() - before) / took * 100, sum(each.count for each in sent) / took
        finally:
            worker.terminate()
            worker.wait(60)


def _addresses(engine: object) -> list[dict[str, object]]:
    """Host and port of each primary; none for a server on a Unix socket."""
    found = [node.connection_pool.connection_kwargs for node in nodes(engine)]  # type: ignore[arg-type]
    return [at for at in found if "port" in at]
