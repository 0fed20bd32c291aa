"""``python -m benchmarks.many_machines``: pages and first snapshots of an installation with very many machines.

One server of its own, machines of four kinds in several partitions each, one person on one connection. The pages are
asked for one after the other; the first snapshot of a live topic is measured in bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.report import Aim, Row, Section
from benchmarks.room import answers
from benchmarks.room.fleet import DEFINITIONS, KINDS
from benchmarks.site import Site
from benchmarks.stage import PREFIX, Stage, name_of, server
from machines.engine import Engine

RESULTS = Path(__file__).parent / "MANY.md"
MACHINES, PARTITIONS, EACH = 500, 12, 20
LIMIT = 200.0  # ms at p95


def main() -> None:
    given = _arguments()
    started = time.monotonic()
    with server(None) as url:
        stage = Stage(url)
        stage.set_up()
        names = seed(url, given.machines, given.partitions, given.each)
        with Site(url, SIGNALBOX_SOCKETS="50") as site:
            sections, aims = measure(site, stage, names)
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


def seed(url: str, machines: int, partitions: int, each: int) -> list[str]:
    """Publish the machines and create their instances; return the machines' names."""
    engine = Engine.from_url(url, prefix=PREFIX, partitions=partitions)
    names = []
    for number in range(machines):
        kind = KINDS[number % len(KINDS)]
        names.append(engine.publish({"id": f"{kind}-{number}", **DEFINITIONS[kind]}).name)
    for name in names:
        pipeline = engine.client.pipeline(transaction=False)
        for number in range(each):
            root = engine.keys.partition(name, number % partitions).root
            data: dict[str, Any] = {"customer": f"c-{number}", "total": number}
            pipeline.fcall("sb_create", 1, root, f"{name}-{number:04}", json.dumps(data), "", "", "bench", "")
        pipeline.execute()
    return names


def measure(site: Site, stage: Stage, names: list[str]) -> tuple[list[Section], list[Aim]]:
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
        "API: overview": "/api/v1/overview",
    }
    rows, aims = [], []
    for title, address in pages.items():
        try:
            found = answers.measured(site, stage, lambda n, address=address: address, times=20)
        except RuntimeError as error:
            rows.append(Row(title, 0, note=str(error)[:80], unit="ms"))
            continue
        note = f"p95 {found.p95:.0f} ms, cpu {found.cpu:.0f} + {found.server:.1f} ms, {found.size / 1000:.0f} kB"
        rows.append(Row(title, found.median, note=note, unit="ms"))
        aims.append(Aim(f"{title}, ms at p95", LIMIT, found.p95, at_most=True))
    return [Section("Answers with many machines", rows)], aims


if __name__ == "__main__":
    main()
