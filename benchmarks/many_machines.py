"""``python -m benchmarks.many_machines``: pages and first snapshots of an installation with very many machines.

One server of its own, machines of four kinds in several partitions each, one person on one connection. The pages are
asked for one after the other; the first snapshot of a live topic is measured in bytes.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from benchmarks import report
from benchmarks.report import Aim, Row, Section
from benchmarks.room import answers
from benchmarks.room.fleet import DEFINITIONS, KINDS
from benchmarks.site import Site
from benchmarks.stage import PREFIX, Stage, name_of, server
from machines.engine import Engine
from machines.engine.connection import routing

RESULTS = Path(__file__).parent / "MANY.md"
MACHINES, PARTITIONS, EACH = 500, 12, 20
LIMIT = 200.0  # ms at p95


class Servers:
    """The CPU that the servers of an engine used, in seconds."""

    def __init__(self, engine: Engine) -> None:
        self._nodes = routing.list_nodes(engine.client)

    def cpu(self) -> float:
        found = [node.info("cpu") for node in self._nodes]
        return sum(each["used_cpu_user"] + each["used_cpu_sys"] for each in found)


def main() -> None:
    given = _arguments()
    started = time.monotonic()
    with server(None) as url:
        stage = Stage(url)
        stage.set_up()
        engine = Engine.from_url(url, prefix=PREFIX, partitions=given.partitions)
        names = seed(engine, given.machines, given.each)
        with Site(url, SIGNALBOX_SOCKETS="50") as site:
            sections, aims = measure(site, engine, names)
        measured_on = name_of(stage.engine.client)
    print(report.text(sections))
    print("\n".join(map(str, aims)))
    if not given.dry:
        size = f"{given.machines} machines x {given.partitions} partitions, {given.machines * given.each:,} instances."
        notes = [size, f"Load average at the end: {', '.join(f'{load:.1f}' for load in os.getloadavg())}."]
        took = time.monotonic() - started
        command = "python -m benchmarks.many_machines"
        report.write(sections, aims, measured_on, took, path=RESULTS, command=command, notes=notes)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_machines", description=__doc__)
    parser.add_argument("--machines", type=int, default=MACHINES)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--each", type=int, default=EACH, help="instances of each machine")
    parser.add_argument("--dry", action="store_true", help=f"leave {RESULTS.name} as it is")
    return parser.parse_args()


def publish_many(engine: Engine, machines: int) -> list[str]:
    """Publish machines of four kinds; return their names."""
    kinds = [KINDS[number % len(KINDS)] for number in range(machines)]
    return [engine.publish({"id": f"{kind}-{n}", **DEFINITIONS[kind]}).name for n, kind in enumerate(kinds)]


def seed(engine: Engine, machines: int, each: int) -> list[str]:
    """Publish the machines and create their instances; return the machines' names."""
    names = publish_many(engine, machines)
    for name in names:
        for number in range(each):
            engine.create(name, f"{name}-{number:04}", {"customer": f"c-{number}", "total": number}, actor="bench")
    return names


def measure(site: Site, engine: Engine, names: list[str]) -> tuple[list[Section], list[Aim]]:
    pages = {
        "overview": "/",
        "live overview over HTTP": "/api/v1/live/?topic=overview",
        "machine": f"/machines/{names[0]}/",
        "instance": f"/machines/{names[0]}/instances/{names[0]}-0000/",
        "queues": "/queues/",
        "workers": "/workers/",
        "search by id": f"/search/?q={names[-1]}-0003",
        "search by name": "/search/?q=desk-1",
        "audit": "/audit/",
        "metrics": "/metrics",
        "healthz": "/healthz",
        "API: machines": "/api/v1/machines",
    }
    rows, aims = [], []
    for title, address in pages.items():
        try:
            found = answers.measured(site, Servers(engine), lambda n, address=address: address, times=20)
        except RuntimeError as error:
            rows.append(Row(title, 0, note=str(error)[:80], unit="ms"))
            continue
        note = f"p95 {found.p95:.0f} ms, cpu {found.cpu:.0f} + {found.server:.1f} ms, {found.size / 1000:.0f} kB"
        rows.append(Row(title, found.median, note=note, unit="ms"))
        aims.append(Aim(f"{title}, ms at p95", LIMIT, found.p95, at_most=True))
    return [Section("Answers with many machines", rows)], aims


if __name__ == "__main__":
    main()
