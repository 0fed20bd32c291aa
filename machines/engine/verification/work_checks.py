"""Checks of the ends of invokes, and of guards and steps that fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from machines.engine.definitions.model import MISSING, State
from machines.engine.definitions.report import Path, quote
from machines.engine.simulation.records import SimulatedStep

from .findings import CHECKS, FOUND, VerificationFinding
from .report import RESTLESS, Report, listens
from .rest_checks import shows_failed_step
from .terms import list_fields, walk
from .usage import list_transitions
from .walk import Edge, Node, simplify


def check_invokes(report: Report) -> None:
    for state in report.machine.states.values():
        for invoke in state.invokes:
            event = f"done.invoke.{invoke.id}"
            ends = [(node, edge) for node, edge in report.list_edges() if edge.event == event]
            if not ends or any(edge.transitions or edge.outcome in ("refused", "failed") for _, edge in ends):
                continue
            if (
                any(one.events and listens(one, event) for _, one in list_transitions(report.machine))
                and not report.walk.is_whole
            ):
                report.open["SB807"] = report.why
                continue
            if not report.can_end and _only_fails(report, state, invoke.id):
                report.covered.add("SB807")  # its work is the last of a machine without final states
                continue
            node, edge = ends[0]
            message = f"nobody listens for the end of {quote(invoke.id)}: its result is lost"
            report.add_found(
                "SB807", invoke.path, message, node, [simplify(edge.input)],
                partial(_has_no_listener, event),
            )  # fmt: skip


def _only_fails(report: Report, state: State, invoke: str) -> bool:
    """Tell whether nothing but the failure of an invoke leads out of its state."""
    around = [one for each in report.machine.lineage(state.name) for one in each.all_transitions]
    return bool(around) and all(one.events == (f"error.invoke.{invoke}",) for one in around)


def check_failures(report: Report) -> None:
    by_id = {transition.id: transition for _, transition in list_transitions(report.machine)}
    reported: set[str] = set()
    for node, edge in report.list_edges():
        for id, why in edge.failing.items():
            transition = by_id[id]
            if (
                id in reported
                or transition.guard is None
                or not _is_allowed(report, edge, transition.guard.expression.tree)
            ):
                continue
            reported.add(id)
            _report_failure(report, node, edge, transition.guard.path, transition.guard.expression.tree, why)
        if edge.outcome == "failed" and not any(part in edge.error for part in RESTLESS):
            _report_failed_step(report, node, edge, reported)


def _is_allowed(report: Report, edge: Edge, tree: Any) -> bool:
    """Tell whether the definition itself allows the payload: one that is declared, or that is not read."""
    declared = report.machine.events.get(edge.event)
    if declared is not None and declared.fields is not None:
        return True
    return not any(part[0] == "event" for part in walk(tree))


def _report_failure(report: Report, node: Node, edge: Edge, path: Path, tree: Any, why: str) -> None:
    unset = _list_unset(report, node, list_fields(tree))
    code = "SB809" if unset else "SB810"
    what = f"{', '.join(map(quote, unset))} is read before it is set" if unset else "the guard fails"
    report.add_found(
        code, path, f"{what} on {quote(edge.event)}: {why}", node, [simplify(edge.input)],
        _shows_failing_guard,
    )  # fmt: skip


def _list_unset(report: Report, node: Node, names: Iterable[str]) -> list[str]:
    raw = node.snapshot["raw"]
    return [
        name for name in sorted(names)
        if name not in raw and report.machine.fields[name].initial is MISSING and name in report.usage.written
    ]  # fmt: skip


def _report_failed_step(report: Report, node: Node, edge: Edge, reported: set[str]) -> None:
    if edge.event in reported:
        return
    trees = [tree for name in node.active for tree in _list_trees(report, name, edge.event)]
    unset = _list_unset(report, node, {name for tree in trees for name in list_fields(tree)})
    if not unset or not any(word in edge.error for word in ("null", "None", "nothing")):
        return
    reported.add(edge.event)
    path, what = report.find_circle(node, edge), f"{', '.join(map(quote, unset))} is read before it is set"
    report.add_found(
        "SB809", path, f"{what} on {quote(edge.event)}: {edge.error}", node,
        [simplify(edge.input)], shows_failed_step,
    )  # fmt: skip


def _list_trees(report: Report, name: str, event: str) -> list[Any]:
    state = report.machine.states[name]
    actions = [action for one in state.transitions if listens(one, event) for action in one.actions]
    for one in state.transitions:
        if listens(one, event):
            for target in one.targets:
                actions += report.machine.states[target].entry
    return [value.tree for action in actions for value in action.values]


def check_failed_creations(report: Report) -> None:
    failed = report.walk.failed[0]
    code = "SB804" if any(part in failed.error for part in RESTLESS) else "SB810"
    report.found.append(
        VerificationFinding(
            code,
            "initial",
            f"an instance cannot begin: {failed.error}",
            CHECKS[code].advice,
            "warning",
            FOUND,
            (),
            failed.data,
        )
    )
    report.walk.doubts.append("no instance can begin")


def _has_no_listener(event: str, records: Sequence[SimulatedStep]) -> bool:
    return records[-1].event == event and not records[-1].transitions


def _shows_failing_guard(records: Sequence[SimulatedStep]) -> bool:
    explanation = records[-1].explanation
    if explanation is None:
        return False
    return any(
        candidate.verdict == "error" or any(part.verdict == "error" for part in candidate.because)
        for candidate in explanation.candidates
    )
