"""``python -m benchmarks.queues``: our workers and the field's, in one run on one server of its own."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmarks import report
from benchmarks.report import Aim, Section
from benchmarks.stage import name_of, server

from . import contenders, idle, installed, latency, million, mixed, processes, throughput
from .contenders import Contender
from .stage import Stage
from .trial import trial

PARTS = ("throughput", "processes", "latency", "idle", "mixed", "million")
USUAL = {"rounds": 3, "share": 1.0, "million": 1_000_000}
QUICK = {"rounds": 1, "share": 0.2, "million": 50_000}


def main() -> None:
    given = _arguments()
    started, load = time.monotonic(), os.getloadavg()[0]
    with server(None) as url:
        stage = Stage(url)
        field, missing = _field(url, given)
        field, unfit = trial(stage, field)
        missing += unfit
        print("\n".join(missing), flush=True)
        parts = _parts(stage, field, given)
        sections = [report.show(parts[name]()) for name in given.parts]
        name = name_of(stage.client)
    for section in sections:
        section.aims += aims(section)
    notes = [
        f"Measured: {', '.join(installed.versions())}.",
        *missing,
        f"Load of the machine: {load:.1f} before the run, {os.getloadavg()[0]:.1f} at its end.",
    ]
    keep = set(given.parts) == set(PARTS) and not (given.dry or given.only or given.quick)
    report.finish("Queues", merge_sections(sections), name, started, keep=keep, command=_command(given), notes=notes)


def _arguments() -> argparse.Namespace:
    parser = report.make_parser("benchmarks.queues", __doc__, PARTS)
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
    parser.set_defaults(**(QUICK if "--quick" in sys.argv else USUAL))
    return parser.parse_args()


def _command(given: argparse.Namespace) -> str:
    words = [f"--{name} {getattr(given, name):g}" for name, usual in USUAL.items() if getattr(given, name) != usual]
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
    # one at a time, a slow job holds up all others
    several = [each for each in field if not each.title.endswith("one at a time")]
    jobs, seconds = (60, 4.0) if given.quick else (latency.JOBS, idle.SECONDS)
    return {
        "throughput": lambda: throughput.measure(stage, field, given.share, given.rounds),
        "processes": lambda: processes.measure(stage, long, given.share, given.rounds),
        "latency": lambda: latency.measure(stage, field, given.rounds, jobs),
        "idle": lambda: idle.measure(stage, field, seconds),
        "mixed": lambda: mixed.measure(stage, several, given.rounds),
        "million": lambda: million.measure(stage, long, given.million),
    }


def merge_sections(sections: Sequence[Section]) -> list[Section]:
    """Put the parts that measure one worker process into one table, a line for each contender."""
    single = [section for section in sections if section.title in COLUMNS]
    rows = []
    for section in single:
        for row in section.rows:
            contender, _, part = row.title.partition(": ")
            rows.append(replace(row, title=f"{contender}: {COLUMNS[section.title]}{part}"))
    notes = " ".join(section.note for section in single)
    reached = report.list_aims(single)
    return [Section("One worker process", rows, notes, reached), *[each for each in sections if each not in single]]


COLUMNS = {
    throughput.TITLE: "jobs that do nothing",
    latency.TITLE: "enqueue to start, ",
    idle.TITLE: "idle, ",
    mixed.TITLE: "pause beside a slow job",
}


def aims(section: Section) -> Iterator[Aim]:
    """What our worker should reach, by the figures of this run."""
    for row in section.rows:
        if not row.title.startswith("Signalbox"):
            continue
        for peer, ratio in row.ratios.items():
            if section.title == throughput.TITLE:
                yield Aim(f"{row.title} against {peer}", 1.0, ratio)
            elif section.title == million.TITLE:
                bound = 2.0 if row.unit == "ms" else 0.95
                yield Aim(f"{row.title} against {peer}", bound, ratio, at_most=row.unit == "ms")
        most = AT_MOST.get((section.title, row.title.rpartition(": ")[2] if ": " in row.title else ""))
        if most is not None:
            yield Aim(f"{row.title}, {section.title} ({row.unit})", most, row.rate, at_most=True)


AT_MOST = {
    (latency.TITLE, "p50"): 2.0,
    (latency.TITLE, "p99"): 10.0,
    (idle.TITLE, "CPU"): 1.0,
    (idle.TITLE, "commands sent"): 5.0,
    (mixed.TITLE, ""): 100.0,
}


if __name__ == "__main__":
    main()
