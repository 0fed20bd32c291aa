"""``python -m benchmarks.queues``: our workers and the field's, in one run on one server of its own."""

from __future__ import annotations

import argparse
import os
import shlex
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import report
from benchmarks.report import Aim, Section
from benchmarks.stage import name_of
from machines.server import Server

from . import contenders, idle, installed, latency, million, mixed, processes, throughput
from .contenders import Contender
from .stage import Stage
from .trial import trial

PARTS = ("throughput", "processes", "latency", "idle", "mixed", "million")


def main() -> None:
    given = _arguments()
    started, load = time.monotonic(), os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="signalbox-bench-") as folder,
        Server(Path(folder), persistent=False) as server,
    ):
        stage = Stage(server.url)
        field, missing = _field(server.url, given)
        field, unfit = trial(stage, field)
        missing += unfit
        print("\n".join(missing), flush=True)
        parts = _parts(stage, field, given)
        sections = [_shown(parts[name]()) for name in given.parts]
        name = name_of(stage.client)
    found, took = aims(sections), time.monotonic() - started
    print("\n" + "\n".join(map(str, found)))
    print(f"\n{name}, {took:.0f} seconds" + "".join(f"\n{word}" for word in missing))
    if set(given.parts) == set(PARTS) and not (given.dry or given.only or given.quick):
        loads = f"{load:.1f} before the run, {os.getloadavg()[0]:.1f} at its end"
        notes = [
            f"Measured: {', '.join(installed.versions())}.",
            *missing,
            f"Load of the machine: {loads}.",
        ]
        report.write("Queues", merge_sections(sections), found, name, took, command=_command(given), notes=notes)
        print(f"written to {report.RESULTS.name}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queues", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--quick", action="store_true", help="two or three minutes: one of each family, few jobs, one round"
    )
    parser.add_argument("--rounds", type=int, help="3 if not said otherwise")
    parser.add_argument("--share", type=float, help="of the jobs that throughput is measured with (1 for all)")
    parser.add_argument("--million", type=int, help="jobs of the long queue")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help="contenders whose title has a word of these"
    )
    parser.add_argument("--ours", type=shlex.split, default=[], metavar="OPTIONS", help="further ones for our worker")
    parser.add_argument("--dry", action="store_true", help="leave RESULTS.md as it is")
    given = parser.parse_args()
    for name, whole, quick in (("rounds", 3, 1), ("share", 1.0, 0.2), ("million", 1_000_000, 50_000)):
        if getattr(given, name) is None:
            setattr(given, name, quick if given.quick else whole)
    return given


def _command(given: argparse.Namespace) -> str:
    said = {"rounds": 3, "share": 1.0, "million": 1_000_000}
    words = [f"--{name} {getattr(given, name):g}" for name, usual in said.items() if getattr(given, name) != usual]
    return f'make bench-queues ARGS="{" ".join(words)}"' if words else "make bench-queues"


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
    wanted = [word.lower() for word in given.only]
    found = [each for each in found if not wanted or any(word in each.title.lower() for word in wanted)]
    return [each for each in found if not given.quick or each.title in contenders.QUICK], missing


def _parts(stage: Stage, field: Sequence[Contender], given: argparse.Namespace) -> dict:
    long = [each for each in field if each.ours or each.title.startswith("BullMQ")]
    long = [each for each in long if each.title.endswith(("50", "50 at a time"))]
    several = [
        each for each in field if not each.title.endswith("one at a time")
    ]  # there the slow job holds up all others
    jobs, seconds = (60, 4.0) if given.quick else (latency.JOBS, idle.SECONDS)
    return {
        "throughput": lambda: throughput.Throughput(stage, field, given.share).section(given.rounds),
        "processes": lambda: processes.Processes(stage, long, given.share).section(given.rounds),
        "latency": lambda: latency.Latency(stage, field, jobs).section(given.rounds),
        "idle": lambda: idle.Idle(stage, field, seconds).section(),
        "mixed": lambda: mixed.Mixed(stage, several).section(given.rounds),
        "million": lambda: million.Million(stage, long, given.million).section(),
    }


def _shown(section: Section) -> Section:
    print(report.text([section]), flush=True)
    return section


def merge_sections(sections: Sequence[Section]) -> list[Section]:
    """Put the parts that measure one worker process into one table, a line for each contender."""
    single = [section for section in sections if section.title in COLUMNS]
    rows = []
    for section in single:
        for row in section.rows:
            contender, _, part = row.title.partition(": ")
            rows.append(replace(row, title=f"{contender}: {COLUMNS[section.title]}{part}"))
    notes = " ".join(section.note for section in single)
    return [Section("One worker process", rows, notes), *[each for each in sections if each not in single]]


COLUMNS = {
    throughput.TITLE: "jobs that do nothing",
    latency.TITLE: "enqueue to start, ",
    idle.TITLE: "idle, ",
    mixed.TITLE: "pause beside a slow job",
}


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
        if row.unit == "ms":
            return [Aim(f"{row.title}, against {part}", 2.0, ratio, at_most=True) for part, ratio in row.ratios.items()]
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


if __name__ == "__main__":
    main()
