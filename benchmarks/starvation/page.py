"""The page of figures: what somebody else notices of each attack, before and after."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from .measured import HEALTH_GOAL, PAGE_GOAL

PAGE = Path(__file__).parent.parent / "STARVATION.md"
HEAD = """\
# Starvation

<!-- Written by `python -m benchmarks.starvation --page`. Do not edit. -->

One person, who may view and no more, does as much as they can, from an address of their own, while somebody else works:
`/healthz` every 50 ms, a page every 250 ms, each over a connection of its own. Figures are ms; where an answer is late,
the questions that should have been asked meanwhile count with what was left of the wait. Aimed at: `/healthz`
{health:.0f} ms and pages {page:.0f} ms at p99.

Attack, site, server and whoever measures share the cores of one machine ({machine}), which attackers elsewhere
would not; at the load average of the last column others worked on it, too. "Nobody attacks" is the same machine at the
same time: compare with it. "Before" is the release of which each request had a thread and each socket was welcome.
"""
ROW = "| {title} | {health50} | {health99} | {page50} | {page95} | {page99} | {bad} | {load} |"


def write(kept: list[Path]) -> None:
    """Of files that ``--keep`` left."""
    parts = [HEAD.format(health=HEALTH_GOAL, page=PAGE_GOAL, machine=f"{os.cpu_count()} cores, {platform.machine()}")]
    for path in kept:
        parts += _section(json.loads(path.read_text(encoding="utf-8")))
    PAGE.write_text("\n".join(parts) + "\n", encoding="utf-8")


def _section(run: dict[str, Any]) -> list[str]:
    lines = [f"## {run['label'].capitalize()}", "", f"{run['at']}, Python {run['python']}.", ""]
    lines.append("| | `/healthz` p50 | p99 | pages p50 | p95 | p99 | not 200 | load |")
    lines.append("|---|--:|--:|--:|--:|--:|---|--:|")
    lines += [_row(row) for row in run["rows"]]
    lines += ["", "What came of the attacks:", ""]
    lines += [f"- {row['title']}: {row['came']}" for row in run["rows"] if row["came"]]
    return [*lines, ""]


def _row(row: dict[str, Any]) -> str:
    wrong = [f"{count} x {status}" for lane in row["bad"].values() for status, count in lane.items()]
    health, page = row["healthz"], row["pages"]
    return ROW.format(
        title=row["title"], health50=health[0], health99=health[1], page50=page[0], page95=page[1], page99=page[2],
        bad=", ".join(wrong) or "none", load=row["load"],
    )  # fmt: skip
