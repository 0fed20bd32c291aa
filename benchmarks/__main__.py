"""``python -m benchmarks``: all parts in one run, on a server of its own or on ``--url``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from . import report, throughput
from .charts import Charts
from .clients import Client
from .footprint import Footprint
from .hot import Hot
from .report import Aim, Section
from .stage import Stage, name_of, server

PARTS: dict[str, Callable[[Stage, int, float], list[Section]]] = {
    "throughput": throughput.measure,
    "client": lambda stage, rounds, seconds: Client(stage, seconds).sections(rounds),
    "hot": lambda stage, rounds, seconds: [Hot(stage, seconds).section(rounds)],
    "charts": lambda stage, rounds, seconds: Charts(stage).sections(rounds),
    "footprint": lambda stage, rounds, seconds: Footprint(stage).sections(),
}


def main() -> None:
    parser = report.make_parser("benchmarks", __doc__, PARTS)
    parser.add_argument("--url", help="a server to use instead of one of its own; only keys below bench: are touched")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement")
    given = parser.parse_args()
    started, sections = time.monotonic(), []
    with server(given.url) as url:
        stage = Stage(url)
        stage.set_up()
        for part in given.parts:
            sections += map(report.show, PARTS[part](stage, given.rounds, given.seconds))
        measured_on = name_of(stage.engine.client)
        stage.clear()
    for section in sections:
        section.aims += _aims(section)
    keep = set(given.parts) == set(PARTS) and not given.dry
    report.finish("Engine", sections, measured_on, started, keep=keep, command="make bench")
    if keep:
        report.keep_ratios(report.list_aims(sections))


def _aims(section: Section) -> Iterator[Aim]:
    for row in section.rows:
        for peer, least in AIMS.get((section.title, row.title), {}).items():
            yield Aim(f"{row.title} against {peer}, {section.title}", least, row.ratios[peer])
        for peer, most in AT_MOST.get((section.title, row.title), {}).items():
            figure = row.ratios.get(peer, row.rate)
            yield Aim(f"{row.title} ({peer}), {section.title}", most, figure, at_most=True)


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
