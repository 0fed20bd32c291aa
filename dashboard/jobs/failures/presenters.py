"""Presents groups of failures: trend drawings, actions, links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.jobs.presenters import Action, FailedAction
from dashboard.shared.addresses import find_page_address
from machines.alarms.alarm import pluralize
from machines.engine import errors
from machines.jobs.failures.queries import GroupView
from machines.models import FailureAction

from .forms import ACTIONS

WIDTH, HEIGHT, GAP = 96, 20, 1  # of a trend drawing, in its own units


@dataclass(frozen=True, slots=True)
class Bar:
    """One hour, or several, of a trend drawing."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Trend:
    """A drawing of counts by time, and the same in words."""

    bars: tuple[Bar, ...]
    words: str
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True, slots=True)
class Row:
    """A group in the list."""

    view: GroupView
    url: str
    trend: Trend


def make_row(view: GroupView) -> Row:
    return Row(view, find_page_address("signalbox:error-group", view.group.pk), draw_trend(view.trend, "last 24 hours"))


def draw_trend(counts: Sequence[int], span: str, *, bars: int = 24, width: int = WIDTH, height: int = HEIGHT) -> Trend:
    """Draw counts by hour as bars; ``span``: the time in words. One failure shows, however many there are beside it."""
    step = max(1, len(counts) // bars)
    sums = [sum(counts[first : first + step]) for first in range(0, len(counts), step)]
    top, each = max(sums, default=0), width / max(1, len(sums))
    drawn = []
    for place, count in enumerate(sums):
        if count:
            tall = max(2.0, round(height * count / top, 1))
            drawn.append(Bar(round(place * each, 1), round(height - tall, 1), round(each - GAP, 1), tall))
    most = f", at most {top:,} in {'an hour' if step == 1 else f'{step} hours'}" if top else ""
    return Trend(tuple(drawn), f"{sum(sums):,} in the {span}{most}", width, height)


def list_actions(
    view: GroupView, count: int, running: FailureAction | None, *, may_change: bool, may_act: bool
) -> list[Action]:
    """List the actions that fit the state of a group, the most likely one first. ``count``: open jobs that the person
    may act on, counted now."""
    found: list[str] = []
    if may_act:
        found += ["stop"] if running else ["redrive", "skip"] if count else []
    if may_change:
        found += ["resolve", "mute"] if view.group.state == "open" else ["reopen"]
        found += ["assign"]
    return [make_action(view, name, count) for name in found]


def make_action(view: GroupView, name: str, count: int, sent: Mapping[str, Any] | None = None) -> Action:
    initial = {"expect": count, "assignee": view.group.assignee}
    form, label, about = ACTIONS[name]
    jobs = pluralize(count, "open job")
    url = find_page_address(f"signalbox:error-{name}", view.group.pk)
    return Action(
        name, label.format(jobs=jobs), about.format(jobs=jobs), url, form(sent, id=name, initial=initial), name,
        danger=name == "skip",
    )  # fmt: skip


def make_failure(error: errors.SignalboxError) -> FailedAction:
    """Present an action that was refused."""
    return FailedAction(409 if isinstance(error, errors.Miscounted) else 400, "Not done", error.message, error.code)
