"""``python -m benchmarks``: all parts in one run, on a server of its own or on ``--url``."""

from __future__ import annotations

import argparse
import contextlib
import functools
import time

from . import report
from .charts import Charts
from .clients import Client
from .driver import Driver
from .footprint import Footprint
from .hot import Hot
from .report import Aim, Section
from .stage import Stage, name_of, server
from .throughput import Throughput

PARTS = ("throughput", "client", "hot", "charts", "footprint")


def main() -> None:
    given = _arguments()
    started = time.monotonic()
    with server(given.url) as url, contextlib.ExitStack() as stack:
        stage = Stage(url)
        stage.set_up()
        run = Run(stage, stack, given.rounds, given.seconds)
        sections = [section for part in given.parts for section in _shown(getattr(run, part)())]
        aims, measured_on = _aims(sections), name_of(stage.engine.client)
        stack.close()
        stage.clear()
    took = time.monotonic() - started
    print("\n" + "\n".join(map(str, aims)))
    print(f"\n{measured_on}, {took:.0f} seconds")
    if set(given.parts) == set(PARTS) and not given.dry:
        report.write("Engine", sections, aims, measured_on, took)
        report.keep_ratios(aims)
        print(f"written to {report.RESULTS.name}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--url", help="a server to use instead of one of its own; only keys below bench: are touched")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement")
    parser.add_argument("--dry", action="store_true", help="leave RESULTS.md as it is")
    return parser.parse_args()


def _shown(sections: list[Section]) -> list[Section]:
    print(report.text(sections), flush=True)
    return sections


class Run:
    """The parts share one load driver; it is started when the first of them needs it."""

    def __init__(self, stage: Stage, stack: contextlib.ExitStack, rounds: int, seconds: float) -> None:
        self._stage = stage
        self._stack = stack
        self._rounds = rounds
        self._seconds = seconds

    @functools.cached_property
    def _driver(self) -> Driver:
        return self._stack.enter_context(self._stage.driver())

    def throughput(self) -> list[Section]:
        return Throughput(self._stage, self._driver).sections(self._rounds, self._seconds)

    def client(self) -> list[Section]:
        return Client(self._stage, self._seconds).sections(self._rounds)

    def hot(self) -> list[Section]:
        return [Hot(self._stage, self._seconds).section(self._rounds)]

    def charts(self) -> list[Section]:
        measured = Charts(self._stage)
        return [measured.section(self._rounds), measured.answers(self._rounds)]

    def footprint(self) -> list[Section]:
        return Footprint(self._stage).sections()


def _aims(sections: list[Section]) -> list[Aim]:
    aims = [aim for section in sections for aim in section.aims]
    for section in sections:
        for row in section.rows:
            for peer, least in AIMS.get((section.title, row.title), {}).items():
                aims.append(Aim(f"{row.title} against {peer}, {section.title}", least, row.ratios[peer]))
            for peer, most in AT_MOST.get((section.title, row.title), {}).items():
                figure = row.ratios.get(peer, row.rate)
                aims.append(Aim(f"{row.title} ({peer}), {section.title}", most, figure, at_most=True))
    return aims


CHARTS = "What a step of a chart costs the server"

AIMS = {
    ("50 connections, one call at a time", "fire"): {"hand-written": 1.0},
    ("50 connections, pipelines of 16", "fire"): {"hand-written": 1.2},
    ("One client, one call at a time (redis-py)", "fire"): {"FCALL sb_fire": 0.95},
    ("One client, pipelines of 100", "fire_many"): {"FCALL sb_fire": 0.9},
    ("One client, pipelines of 100", "fire_many, revisions alone"): {"FCALL sb_fire": 0.9, "hand-written": 0.9},
    ("8 processes on one instance", "fire"): {"WATCH": 10.0},
    (CHARTS, "compound, two levels left and two entered"): {"hand-written": 0.75},
    (CHARTS, "parallel, one of three regions moves"): {"hand-written": 0.75},
    (CHARTS, "parallel, all three regions move"): {"hand-written": 0.75},
    (CHARTS, "parallel, left and entered again by its history"): {"hand-written": 0.75},
}

AT_MOST = {
    (CHARTS, "compound, two levels left and two entered"): {"flat": 1.5},
    (CHARTS, "parallel, all three regions move"): {"flat": 2.0},
    (CHARTS, "parallel, left and entered again by its history"): {"flat": 2.0},
    ("Memory of an instance", "without history"): {"bytes": 450},
    ("Memory of an instance", "with three steps of history"): {"bytes": 750},
}


if __name__ == "__main__":
    main()
