"""Add up what tests cost, by folder or file, from the reports that pytest writes with ``--junitxml``.

    make test-all ARGS="--junitxml=after.xml"
    .venv/bin/python -m tests.durations before.xml after.xml     # a table for benchmarks/TESTS.md
    .venv/bin/python -m tests.durations --by file --most 30 after.xml

Seconds are those of setup, call and teardown together, summed over all processes of a run.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree


@dataclass
class Cost:
    tests: int = 0
    seconds: float = 0.0


LEVELS: dict[str, Callable[[str, str], str]] = {
    "folder": lambda module, name: "/".join(module.split(".")[:2]),
    "file": lambda module, name: module.replace(".", "/") + ".py",
    "function": lambda module, name: f"{module.replace('.', '/')}.py::{name.partition('[')[0]}",
    "test": lambda module, name: f"{module.replace('.', '/')}.py::{name}",
}


def add_up(path: str, level: str) -> dict[str, Cost]:
    """Name of a folder, file or test -> its cost in the report at ``path``."""
    costs: dict[str, Cost] = defaultdict(Cost)
    for case in ElementTree.parse(path).iter("testcase"):
        cost = costs[LEVELS[level](case.get("classname", ""), case.get("name", ""))]
        cost.tests += 1
        cost.seconds += float(case.get("time", 0))
    return costs


def table(reports: list[dict[str, Cost]], most: int) -> list[str]:
    """Lines of a Markdown table, the dearest of the first report on top, with a sum below."""
    order = sorted({name for report in reports for name in report}, key=lambda name: -_dearest(reports, name))
    lines = ["| |" + " tests | seconds |" * len(reports), "|---|" + "--:|--:|" * len(reports)]
    for name in order[: most or None]:
        lines.append(f"| {name} |" + "".join(_cells(report.get(name, Cost())) for report in reports))
    sums = [Cost(sum(c.tests for c in report.values()), sum(c.seconds for c in report.values())) for report in reports]
    return [*lines, "| **all** |" + "".join(map(_cells, sums))]


def _dearest(reports: list[dict[str, Cost]], name: str) -> float:
    return max(report[name].seconds for report in reports if name in report)


def _cells(cost: Cost) -> str:
    return f" {cost.tests:,} | {cost.seconds:,.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", nargs="+", help="files that --junitxml wrote")
    parser.add_argument("--by", choices=LEVELS, default="folder")
    parser.add_argument("--most", type=int, default=0, help="how many lines; 0 for all")
    given = parser.parse_args()
    lines = table([add_up(path, given.by) for path in given.reports], given.most)
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
