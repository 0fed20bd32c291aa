"""Checks of what happens at rest: nothing more, steps without end, and ends out of reach."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from machines.engine.definitions.report import quote
from machines.engine.simulation.records import SimulatedStep

from .reachability import list_leading
from .report import RESTLESS, Report
from .walk import Node, simplify


def check_rest(report: Report) -> None:
    reported: set[frozenset[str]] = set()
    for node in report.nodes:
        if node.done or not node.expanded or node.active in reported:
            continue
        if any(edge.target is not None for edge in node.edges) or (node.edges and report.walk.doubts):
            continue
        if node.came is not None and _is_lost_end(report, node):
            report.covered.add("SB803")  # SB807 tells it
            continue
        if not report.can_end and not _listens_at_all(report, node):
            report.covered.add("SB803")  # a machine without final states ends where no way goes on
            continue
        names = report.list_leaves(node)
        path = report.machine.states[names[0]].path
        message = f"nothing can happen any more in {', '.join(map(quote, names))}, which is no end"
        if report.add_found("SB803", path, message, node, (), partial(rests_in, node.active)):
            reported.add(node.active)


def _listens_at_all(report: Report, node: Node) -> bool:
    return any(report.machine.states[name].all_transitions for name in node.active)


def _is_lost_end(report: Report, node: Node) -> bool:
    """Tell whether a node came about by the end of an invoke for which nobody listens."""
    before, given = node.came or (0, None)
    edges = [edge for edge in report.nodes[before].edges if edge.target == node.number and edge.input == given]
    return any(edge.event.startswith("done.invoke.") and not edge.transitions for edge in edges)


def check_restless(report: Report) -> None:
    reported: set[str] = set()
    for node, edge in report.list_edges():
        if edge.outcome == "failed" and any(part in edge.error for part in RESTLESS) and edge.event not in reported:
            reported.add(edge.event)
            path = report.find_circle(node, edge)
            message = f"{quote(edge.event)} makes a step without end: {edge.error}"
            report.add_found("SB804", path, message, node, [simplify(edge.input)], shows_failed_step)


def check_ends(report: Report) -> None:
    if not report.can_end:
        return
    ending = list_leading(report.nodes, {node.number for node in report.nodes if node.done})
    lost = [node for node in report.nodes if node.number not in ending]
    moving = [node for node in lost if any(edge.target is not None for edge in node.edges)]
    if not lost or not report.walk.is_whole:
        if lost:
            report.open["SB805"] = report.why
        return
    if not moving or all(_leads_to_rest(report, node) for node in moving):
        report.covered.add("SB805")  # SB803 tells it
        return
    node = next(node for node in moving if not _leads_to_rest(report, node))
    names = report.list_leaves(node)
    message = f"from {', '.join(map(quote, names))} no way leads to an end"
    report.add_found(
        "SB805", report.machine.states[names[0]].path, message, node, (),
        partial(rests_in, node.active),
    )  # fmt: skip


def _leads_to_rest(report: Report, node: Node) -> bool:
    """Tell whether each way on ends where nothing can happen any more."""
    seen, waiting = {node.number}, [node]
    while waiting:
        one = waiting.pop()
        followers = {edge.target for edge in one.edges if edge.target is not None}
        if one.number in followers:
            return False
        for number in followers:
            if number in seen and number != node.number:
                continue
            if number == node.number:
                return False
            seen.add(number)
            waiting.append(report.nodes[number])
    return True


def rests_in(active: frozenset[str], records: Sequence[SimulatedStep]) -> bool:
    return set(records[-1].configuration) <= active and records[-1].outcome in ("taken", "ignored")


def shows_failed_step(records: Sequence[SimulatedStep]) -> bool:
    return records[-1].outcome == "failed"
