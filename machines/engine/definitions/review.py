"""The checks that need the whole machine, once all of it was read."""

from __future__ import annotations

from . import accepts, approval, assignments, chains, graph, names, references, timers, weight
from .model import Machine
from .report import Report


def review(machine: Machine, report: Report) -> None:
    for part in (references, assignments, graph, chains, timers, names, approval, accepts, weight):
        part.review(machine, report)
