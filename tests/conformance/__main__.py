"""``python -m tests.conformance SUITE``: play every case of a folder and write docs/conformance.md."""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import page
from .play import play
from .result import Result, Status, by_group, tally
from .stage import stage
from .suite import Case, find

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when no case failed, 1 when one did, 2 when there was nothing to play."""
    given = _arguments(arguments)
    started = time.monotonic()
    suite = find(given.suite)
    cases = [case for case in suite.cases if fnmatch.fnmatch(f"{case.group}/{case.name}", f"*{given.only}*")]
    if not cases:
        _say(f"{given.suite} holds no case: X.scxml with X.json beside it, or with states pass and fail")
        return 2
    results = list(_played(cases, given.url))
    for group, rows in by_group(results).items():
        _say(f"{group}: {tally(rows)}")
    if suite.parts:
        _say(f"not played, as parts of others or without a verdict: {', '.join(suite.parts)}")
    _say(f"{tally(results)}; {time.monotonic() - started:.1f} s")
    if given.only == "":
        given.page.write_text(page.render(suite.name, results), encoding="utf-8")
        _say(f"written to {given.page.name}")
    return int(any(result.status is Status.FAILED for result in results))


def _played(cases: Sequence[Case], url: str | None) -> Iterator[Result]:
    with stage(url) as place:
        for case in cases:
            with place.engine() as engine:
                result = play(case, engine)
            if result.status is not Status.PASSED:
                _say(f"{result.status} {case.group}/{case.name}: {result.reason}")
            yield result


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("suite", type=_folder, help="a folder of cases, at any depth")
    parser.add_argument("--url", help="a server to use instead of one of its own; all keys are removed afterwards")
    parser.add_argument("--only", default="", help="part of a group's or case's name; the page is then left as it is")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the page goes")
    return parser.parse_args(arguments)


def _folder(text: str) -> Path:
    folder = Path(text)
    if not text or not folder.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no folder; name one: make conformance SUITE=path")
    return folder


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
