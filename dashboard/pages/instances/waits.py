"""What an instance waits for: its time, and the machines it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dashboard.pages.shared.addresses import page_of
from dashboard.shared.version_view import Plan
from machines.engine import Instance


@dataclass(frozen=True, slots=True)
class Deadline:
    """``due``: ms. ``what``: how it came about, in words; ``where``: the state that waits; ``to``: who is sent to."""

    due: int
    what: str
    where: str = ""
    to: str = ""


@dataclass(frozen=True, slots=True)
class Child:
    """``url`` is empty where the machine, whose name may be computed, can have no page."""

    invoke: str
    machine: str
    id: str
    url: str = ""


def children(instance: Instance) -> list[Child]:
    found = instance.children.items()
    return [Child(invoke, **child, url=page_of("instance", child["machine"], child["id"])) for invoke, child in found]


def deadlines(plan: Plan, instance: Instance) -> list[Deadline]:
    """The next one first."""
    return sorted(_deadlines(plan, instance), key=lambda deadline: deadline.due)


def _deadlines(plan: Plan, instance: Instance) -> Iterator[Deadline]:
    for timer in instance.timers:
        if timer.state:
            delay = plan.delay_of(timer.event)
            yield Deadline(timer.due, f"after {delay}" if delay else timer.event, where=timer.state)
        else:
            yield Deadline(timer.due, timer.event, to=timer.target)
