"""Runs the checks that need the whole machine, once all of it was read."""

from __future__ import annotations

from machines.engine.definitions import access, program
from machines.engine.definitions.model import Machine
from machines.engine.definitions.report import Report

from . import chains, graph, names, references, timers, types

CHECKS = (
    references.review,
    types.review,
    graph.review,
    chains.review,
    timers.review,
    names.review,
    access.review_accepts,
    access.review_approval,
    program.review,
)


def review(machine: Machine, report: Report) -> None:
    for check in CHECKS:
        check(machine, report)
