"""``python -m tests.security.fuzz --kind expressions --count 50000 --seed 7``: random input until something gives way.

Prints what came of it, the slowest calls and how to make each find again; ends with 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from . import finds, payloads, site, summary
from .kinds import NAMES, kind
from .runner import Report, Runner
from .stage import stage

LIMIT = 50.0  # ms that no call may hold the server for
EVERY = 30.0  # seconds between two words of how far it is
SITED = ("payloads", "frames")  # kinds that also come in over HTTP or a websocket


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing was wrong, 1 when something was."""
    given = _arguments(arguments)
    wrong = 0
    for name in given.kind or NAMES:
        report = _run(name, given)
        for line in summary.lines(report, name, given.seed):
            _say(line)
        wrong += len(report.wrong)
    return int(wrong > 0)


def _run(name: str, given: argparse.Namespace) -> Report:
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(stage(given.server))
        if name in SITED:
            stack.enter_context(site.configured(place.server.url))
            place.site = site.furnished(payloads.MACHINE)
        played = kind(name)
        stack.callback(played.close)
        runner = Runner(place, played, limit=given.limit, slowest=given.slowest)
        indexes = given.only or range(given.start, given.start + given.count)
        with contextlib.suppress(KeyboardInterrupt):  # what came of it so far
            runner.run(given.seed, indexes, _progress(name))
        report = runner.report
        if given.save:
            finds.save(given.save, name, given.seed, report)
        if given.only:
            _say(json.dumps([slow.case for slow in report.slow] or [each.case for each in report.wrong], indent=1))
        return report


def _progress(name: str) -> Callable[[Report], None]:
    told, wrong = time.monotonic(), 0

    def tell(report: Report) -> None:
        nonlocal told, wrong
        if len(report.wrong) > wrong:
            wrong = len(report.wrong)
            _say(f"... {name}: input {report.wrong[-1].index}: {report.wrong[-1].why[0].splitlines()[-1]}")
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            worst = max((slow.ms for slow in report.slow), default=0)
            _say(f"... {name}: {report.inputs} inputs, {len(report.wrong)} wrong, slowest {worst:.0f} ms")

    return tell


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.security.fuzz", description=__doc__)
    parser.add_argument(
        "--kind", action="append", choices=NAMES, help="may be given several times; all of them without"
    )
    parser.add_argument("--count", type=int, default=2000, help="inputs of each kind")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--start", type=int, default=0, help="number of the first input")
    parser.add_argument("--only", type=int, action="append", help="the number of one input; it is printed whole")
    parser.add_argument("--limit", type=float, default=LIMIT, help="ms that no call may hold the server for")
    parser.add_argument("--slowest", type=int, default=10, help="how many of the slowest calls are told")
    parser.add_argument("--save", type=Path, help="a folder; what was wrong is written there, as tests play it")
    parser.add_argument("--server", help="the server's program, in place of the wheel's Valkey")
    return parser.parse_args(arguments)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
