"""``python -m benchmarks.room``: everything in one run, on a server of its own or on ``--url``."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator

from benchmarks import report
from benchmarks.cluster import slices
from benchmarks.report import Aim, Row, Section
from benchmarks.site import Site
from benchmarks.stage import Stage, name_of, server

from . import answers, browser, seeding, sockets
from .seeding import Seeded

INSTANCES = 1_000_000
PARTS = ("answers", "sockets", "browser")


def main() -> None:
    given = _arguments()
    started = time.monotonic()
    with server(given.url) as url:
        stage = Stage(url)
        stage.set_up()
        seeded = seeding.seed(url, int(INSTANCES * given.share))
        sections = [report.show(_seeded(seeded))]
        slices.start_slowlog(stage.engine.client)
        sections += map(report.show, _measured(given, url, stage, seeded))
        sections.append(report.show(_longest(stage)))
        measured_on = name_of(stage.engine.client)
        stage.clear()
    loaded = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    notes = [f"Load of the machine at the end: {loaded}."]
    command = f"make bench-room (--share {given.share})"
    report.finish("Room", sections, measured_on, started, keep=not given.dry, command=command, notes=notes)


def _arguments() -> argparse.Namespace:
    parser = report.make_parser("benchmarks.room", __doc__, PARTS)
    parser.add_argument("--url", help="a server to use instead of one of its own; only keys below bench: are touched")
    parser.add_argument("--share", type=float, default=1.0, help="of a million instances")
    parser.add_argument("--clients", type=int, default=sockets.CLIENTS)
    return parser.parse_args()


def _measured(given: argparse.Namespace, url: str, stage: Stage, seeded: Seeded) -> Iterator[Section]:
    with Site(url, SIGNALBOX_SOCKETS=str(given.clients)) as site:
        if "answers" in given.parts:
            fill = f"from benchmarks.room.seeding import fill_audit; fill_audit({seeded.instances})"
            site.run("shell", "-c", fill)
            yield report.note_load(answers.section(site, stage.engine, seeded.members))
        if "browser" in given.parts:
            yield report.note_load(browser.section(site, url, seeded.members))
        if "sockets" in given.parts:
            yield report.note_load(sockets.section(site, url, seeded.members, given.clients))


def _seeded(found: Seeded) -> Section:
    rate = found.calls / found.took
    rows = [
        Row("engine calls", rate, note=f"{found.calls:,} calls in {found.took:.0f} s by {seeding.PROCESSES} processes"),
        Row("memory", found.bytes / 1e6, note=f"{found.bytes / found.instances:,.0f} bytes an instance", unit="MB"),
    ]
    largest = max(member.size for member in found.members)
    title = f"{found.instances:,} instances in {len(found.members)} machines, {largest:,} in the largest"
    return Section(title, rows)


def _longest(stage: Stage) -> Section:
    longest: dict[str, float] = {}
    for ms, name in slices.read_slowlog(stage.engine.client):
        longest[name] = max(ms, longest.get(name, 0.0))
    rows = [Row(name, ms, unit="ms") for name, ms in sorted(longest.items(), key=lambda pair: -pair[1])]
    aim = Aim("longest function of all parts, ms", slices.BOUND, max(longest.values(), default=0.0), at_most=True)
    return Section("The longest run of each function, in all parts (slowlog)", rows, aims=[aim])


if __name__ == "__main__":
    main()
