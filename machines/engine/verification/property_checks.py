"""Checks of the properties that a definition states."""

from __future__ import annotations

from functools import partial
from typing import Any

from machines.engine.definitions.report import quote

from .findings import PROVEN, UNDECIDED
from .reachability import find_lost
from .report import Report
from .rest_checks import rests_in


def check_properties(report: Report) -> None:
    at = 0
    for one in report.machine.properties:
        columns = list(range(at, at + len(one.trees)))
        at += len(one.trees)
        if one.kind == "leads":
            _check_leads(report, one, *columns)
        else:
            _check_always(report, one, columns[0])


def _check_always(report: Report, one: Any, column: int) -> None:
    for node in report.nodes:
        if node.holds[column] is not (one.kind == "always"):
            value = node.holds[column]
            what = f"fails: {value}" if isinstance(value, str) else "is violated"
            message = f"{one.kind} {one.texts[0]}: {what} in {', '.join(map(quote, report.list_leaves(node)))}"
            if report.add_found(
                "SB811", one.path, message, node, (),
                partial(rests_in, node.active),
            ):  # fmt: skip
                return
    _settle(report, one, f"{one.kind} {one.texts[0]}")


def _settle(report: Report, one: Any, text: str) -> None:
    if report.walk.is_whole:
        report.add("SB811", one.path, f"{text}: holds in all {len(report.nodes)} snapshots", PROVEN)
    else:
        report.add("SB811", one.path, f"{text}: not decided, because {report.why}", UNDECIDED)


def _check_leads(report: Report, one: Any, first: int, then: int) -> None:
    text = f"{one.texts[0]} leads to {one.texts[1]}"
    if report.walk.is_whole:
        arriving = {node.number for node in report.nodes if node.holds[then] is True}
        lost = find_lost(report.nodes, first, arriving)
        if lost is not None:
            names = ", ".join(map(quote, report.list_leaves(lost)))
            if report.add_found(
                "SB811", one.path, f"{text}: from {names} it is out of reach", lost, (),
                partial(rests_in, lost.active),
            ):  # fmt: skip
                return
    _settle(report, one, text)
