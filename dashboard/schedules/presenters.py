"""Presents schedules and their runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from machines.schedules import Row
from machines.schedules.planning import Run

from .forms import ACTIONS, write_when

WHY = {"due": "planned", "catch_up": "made up", "run": "by hand", "backfill": "backfill"}


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """A schedule in the list and at the head of its page. Times in ms."""

    row: Row
    when: str
    does: str
    about: str
    next: int | None
    last: RunLine | None


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the history. ``planned``, ``at``: ms; ``led``: kind, machine and id of what it led to, or empty."""

    planned: int
    at: int
    why: str
    outcome: str
    count: int
    led: dict[str, str]
    by: str
    error: str


def present(row: Row) -> ScheduleLine:
    what = row.schedule.what
    about = {
        "enqueue": what.get("src"), "fire": f"{what.get('event')} at {what.get('instance')}",
        "fire_all": what.get("event"), "create": "",
    }  # fmt: skip
    return ScheduleLine(
        row,
        write_when(row.schedule.given["when"]),
        ACTIONS[row.schedule.does][0],
        str(about[row.schedule.does] or ""),
        None if row.due is None else row.due * 1000,
        None if row.last is None else present_run(row.last),
    )


def present_run(run: Run) -> RunLine:
    return RunLine(
        run["p"] * 1000, run["at"], WHY.get(run["w"], run["w"]), run["o"], run.get("n", 1), run.get("led") or {},
        run.get("by", ""), run.get("e", ""),
    )  # fmt: skip


def list_facts(row: Row) -> list[tuple[str, Any]]:
    """Return what is set beside when and what, for people."""
    schedule = row.schedule
    missed = f"all, {schedule.bound} at most" if schedule.catch_up == "all" else schedule.catch_up
    facts = [("If the run before goes on", schedule.overlap), ("Missed runs", missed)]
    if schedule.jitter:
        facts.append(("Jitter", f"up to {schedule.jitter} s"))
    return facts
