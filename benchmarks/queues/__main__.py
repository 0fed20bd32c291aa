"""``python -m benchmarks.queues``: our workers and the field's, in one run on one server of its own."""

from __future__ import annotations

import argparse
import os
import shlex
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.queues import contenders, idle, installed, latency, million, mixed, throughput
from benchmarks.queues.contenders import Contender
from benchmarks.queues.stage import Stage
from benchmarks.report import Aim, Section
from machines.server import Server

RESULTS = Path(__file__).parent.parent / "QUEUES.md"
PARTS = ("throughput", "latency", "idle", "mixed", "million")


def main() -> None:
    given = _arguments()
    started, load = time.monotonic(), os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="signalbox-bench-") as folder,
        Server(Path(folder), persistent=False) as server,
    ):
        stage = Stage(server.url)
        field, missing = _field(server.url, given)
        parts = _parts(stage, field, given)
        sections = [_shown(parts[name]()) for name in given.parts]
        name = _server_name(stage)
    found, took = aims(sections), time.monotonic() - started
    print("\n" + "\n".join(map(str, found)))
    print(f"\n{name}, {took:.0f} seconds" + "".join(f"\n{word}" for word in missing))
    if set(given.parts) == set(PARTS) and not (given.dry or given.only):
        notes = [f"Measured: {', '.join(installed.versions())}.", *missing]
        notes.append(f"The machine's load was {load:.1f} before the run, and is part of what was measured.")
        report.write(sections, found, name, took, path=RESULTS, command="make bench-queues", notes=notes)
        print(f"written to {RESULTS.name}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queues", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help="contenders whose title has a word of these"
    )
    parser.add_argument("--million", type=int, default=1_000_000, help="jobs of the long queue")
    parser.add_argument("--ours", type=shlex.split, default=[], metavar="OPTIONS", help="further ones for our worker")
    parser.add_argument("--dry", action="store_true", help="leave QUEUES.md as it is")
    return parser.parse_args()


def _field(url: str, given: argparse.Namespace) -> tuple[list[Contender], list[str]]:
    """Who can be measured here; and a line for each that cannot, with the reason."""
    found, missing = [], []
    for name, family in (
        ("RQ, Celery, Dramatiq and Huey", lambda: contenders.in_python(url)),
        ("BullMQ", contenders.in_node),
        ("Signalbox", lambda: contenders.ours(tuple(given.ours))),
    ):
        try:
            found += family()
        except installed.Missing as why:
            missing.append(f"{name} left out: {why}.")
    if why_none := contenders.why_no_bare_jobs():
        missing.append(f"Signalbox, bare jobs left out: {why_none}.")
    wanted = [word.lower() for word in given.only]
    return [each for each in found if not wanted or any(word in each.title.lower() for word in wanted)], missing


def _parts(stage: Stage, field: Sequence[Contender], given: argparse.Namespace) -> dict:
    long = [each for each in field if (each.ours and "50" not in each.title) or each.title == "BullMQ, concurrency 50"]
    return {
        "throughput": lambda: throughput.Throughput(stage, field).section(given.rounds),
        "latency": lambda: latency.Latency(stage, field).section(given.rounds),
        "idle": lambda: idle.Idle(stage, field).section(),
        "mixed": lambda: mixed.Mixed(stage, field).section(given.rounds),
        "million": lambda: million.Million(stage, long, given.million).section(),
    }


def _shown(section: Section) -> Section:
    print(report.text([section]), flush=True)
    return section


def aims(sections: Sequence[Section]) -> list[Aim]:
    """What our worker should reach, by the figures of this run."""
    found = []
    for section in sections:
        for row in section.rows:
            if row.title.startswith("Signalbox"):
                found += _aims_of(section.title, row)
    return found


def _aims_of(title: str, row: report.Row) -> list[Aim]:
    what = f"{row.title}, {title}"
    if title == throughput.TITLE:
        return [Aim(f"{row.title} against {peer}", 1.0, ratio) for peer, ratio in row.ratios.items()]
    if title == million.TITLE:
        return [Aim(f"{row.title} against {part}", 0.95, ratio) for part, ratio in row.ratios.items()]
    most = AT_MOST.get((title, row.title.rpartition(": ")[2] if ": " in row.title else ""))
    return [] if most is None else [Aim(f"{what} ({row.unit})", most, row.rate, at_most=True)]


AT_MOST = {
    (latency.TITLE, "p50"): 2.0,
    (latency.TITLE, "p99"): 10.0,
    (idle.TITLE, "CPU"): 1.0,
    (idle.TITLE, "commands sent"): 5.0,
    (mixed.TITLE, ""): 100.0,
}


def _server_name(stage: Stage) -> str:
    info = stage.client.info("server")
    valkey = info.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {info['redis_version']}"


if __name__ == "__main__":
    main()
