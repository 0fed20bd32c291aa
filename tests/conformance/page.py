"""docs/conformance.md: every case of a run, and why the waived ones are waived."""

from __future__ import annotations

from collections.abc import Sequence

from . import public_machines, waivers
from .result import Result, by_group, tally

_HEAD = """# Conformance

Written by `make conformance SUITE={suite}`. Each document is read with `machines.formats.load(text, format="scxml")`,
published, and played on a real server: `create`, then `fire` for each event of the case and `tick` for all that is due,
on a clock the run sets. A case passes when the active leaf states are those its sidecar names after every event, or
when the document ends in its own state `pass`.

**{tally}.**
"""


def render(suite: str, results: Sequence[Result]) -> str:
    """The same results give the same page."""
    groups = by_group(results)
    parts = [_HEAD.format(suite=suite, tally=tally(results)), _summary(groups), _waived()]
    parts += [_group(name, rows) for name, rows in groups.items()]
    parts.append(public_machines.section())
    return "\n".join(parts)


def _summary(groups: dict[str, list[Result]]) -> str:
    lines = ["| group | cases | passed | waived | failed |", "|---|---:|---:|---:|---:|"]
    for name, rows in groups.items():
        count = tally(rows)
        lines.append(f"| {_cell(name)} | {count.all} | {count.passed} | {count.waived} | {count.failed} |")
    return "\n".join(lines) + "\n"


def _waived() -> str:
    lines = ["## What is waived", "", "Such a document is refused with a finding and never run in part.", ""]
    lines += [f"- {_cell(waiver.reason)}: {_cell(waiver.why)}" for waiver in waivers.WAIVERS]
    return "\n".join(lines) + "\n"


def _group(name: str, rows: Sequence[Result]) -> str:
    lines = [f"## {name}", "", "| case | result | reason |", "|---|---|---|"]
    lines += [f"| {_cell(row.case.name)} | {row.status} | {_cell(row.reason)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text that stays in its cell and shows as it is."""
    for sign in ("\\", "|", "*", "_", "`", "<"):
        text = text.replace(sign, "\\" + sign)
    return text
