"""Presents schedules and their runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.jobs.presenters import Action
from dashboard.shared.addresses import find_page_address
from dashboard.shared.form_views import make_key
from machines.schedules import Row, Schedule, describe_run
from machines.schedules.occurrences import Cron
from machines.schedules.planning import Run

from .forms import ACTIONS, ActForm, BackfillForm, KeyedActForm, RemoveForm, write_when

WHY = {"due": "planned", "catch_up": "made up", "run": "by hand", "backfill": "backfill"}


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """A schedule in the list and at the head of its page. Times in ms. ``words``: a cron expression in English, else
    empty."""

    row: Row
    when: str
    words: str
    does: str
    about: str
    next: int | None
    last: dict[str, Any] | None


ACTS: dict[str, tuple[str, str, type[ActForm]]] = {
    "run": ("Run now", "Runs once, now, beside the plan; also while it is paused.", KeyedActForm),
    "pause": ("Pause", "Nothing is due until it is resumed; what is under way ends.", ActForm),
    "resume": ("Resume", "Runs are planned from now on: what was planned meanwhile is not made up.", ActForm),
    "take_over": ("Take over", "It runs in your name from now on, and goes on where it was paused.", ActForm),
    "backfill": ("Backfill", "Runs what the plan has in a range. The runs are listed first.", BackfillForm),
    "remove": ("Remove", "Removes it with its history. What its runs led to goes on.", RemoveForm),
}


def list_acts(row: Row, may: dict[str, bool], name: str, *, without: str = "") -> list[Action]:
    """List what the person may do now. ``name``: of the person; ``without``: an action that the page asks about."""
    is_idle = {
        "pause": row.state == "paused", "resume": row.state != "paused", "take_over": row.order.author == name,
    }  # fmt: skip
    return [
        Action(
            verb, label, about, find_page_address(f"signalbox:schedule-{verb.replace('_', '-')}", row.name),
            form(id=f"act-{verb}", zone=row.schedule.zone, initial={"key": make_key()}), f"act-{verb}",
            danger=verb == "remove",
        )
        for verb, (label, about, form) in ACTS.items()
        if may[verb] and verb != without and not is_idle.get(verb)
    ]  # fmt: skip


def present(row: Row) -> ScheduleLine:
    what = row.schedule.what
    about = {
        "enqueue": what.get("src"), "fire": f"{what.get('event')} at {what.get('instance')}",
        "fire_all": what.get("event"), "create": "",
    }  # fmt: skip
    return ScheduleLine(
        row,
        write_when(row.schedule.given["when"]),
        explain(row.schedule),
        ACTIONS[row.schedule.does][0],
        str(about[row.schedule.does] or ""),
        None if row.due is None else row.due * 1000,
        None if row.last is None else present_run(row.last),
    )


def explain(schedule: Schedule) -> str:
    return schedule.when.explain() if isinstance(schedule.when, Cron) else ""


def present_run(run: Run) -> dict[str, Any]:
    """Present a run of the history. ``led``: kind, machine and id of what it led to."""
    return describe_run(run) | {"why": WHY.get(run["w"], run["w"])}


def list_facts(row: Row) -> list[tuple[str, Any]]:
    """Return what is set beside when and what, for people."""
    schedule = row.schedule
    missed = f"all, {schedule.bound} at most" if schedule.catch_up == "all" else schedule.catch_up
    facts = [("If the previous run is still going", schedule.overlap), ("Missed runs", missed)]
    if schedule.jitter:
        facts.append(("Jitter", f"up to {schedule.jitter} s"))
    return facts
