"""Checks of what is never reached and never taken."""

from __future__ import annotations

from typing import Any

from machines.engine import limits
from machines.engine.definitions import render
from machines.engine.definitions.model import Machine, State, Transition
from machines.engine.definitions.report import quote

from .findings import FOUND
from .report import Report
from .usage import list_transitions


def check_states(report: Report) -> None:
    forbidden = list_forbidden(report.machine)
    for state in report.machine.states.values():
        if state.name in report.passed or state.kind == "history" or state.root:
            continue
        if state.name in forbidden:  # the property tells
            report.covered.add("SB801")
            continue
        if report.walk.is_whole or state.name not in report.dead.reachable:
            around = state.parent
            if around is None or around in report.passed:  # else the state around it is reported
                report.add("SB801", state.path, f"{quote(state.name)} is never reached", FOUND, report.nodes[0])
        else:
            report.undecide("SB801", state.path, f"whether {quote(state.name)} is ever reached")


def check_transitions(report: Report) -> None:
    forbidden = list_forbidden(report.machine)
    for state, transition in list_transitions(report.machine):
        if transition.id in report.taken or state.name not in report.passed:
            continue
        code = "SB806" if transition.cause == "after" else "SB802"
        if is_of_engine(transition) or _is_job_end(report, transition):
            report.open[code] = "errors of the engine and of jobs were not all tried"
            continue
        if code == "SB802" and transition.allow == () and _is_locked(report, state, transition):
            continue
        targets = _list_targets(report, transition)
        if forbidden.intersection(transition.targets):
            report.covered.add(code)
            continue
        if any(one.code == "SB801" and one.verdict == FOUND and one.path in targets for one in report.found):
            report.covered.add(code)  # by that finding
            continue
        what = _describe(transition)
        if report.walk.is_whole or transition.id in report.dead.transitions:
            node = report.active.get(state.name, report.nodes[0])
            report.add(code, transition.path, f"{what} is never taken", FOUND, node, *_trigger(transition))
        else:
            report.undecide(code, transition.path, f"whether {what} is ever taken")


def list_forbidden(machine: Machine) -> frozenset[str]:
    """Return the states of which a property says that they are never entered: not to reach them is what is wanted."""
    found: set[str] = set()
    for one in machine.properties:
        waiting = list(one.trees) if one.kind == "never" else []
        while waiting:
            match waiting.pop():
                case ["in", str(name)]:
                    found.add(name)
                case ["because", _, inner]:
                    waiting.append(inner)
                case ["or", *parts]:
                    waiting.extend(parts)
    return frozenset(found)


def _list_targets(report: Report, transition: Transition) -> list[str]:
    return [render(state.path) for name in transition.targets for state in report.machine.lineage(name)]


def _is_locked(report: Report, state: State, transition: Transition) -> bool:
    """Report a transition for everybody that stands behind one for groups, so that others are refused."""
    before = state.transitions[: state.transitions.index(transition)] if transition in state.transitions else ()
    lock = next(
        (one for one in before if one.allow and one.guard is None and set(transition.events) <= set(one.events)),
        None,
    )
    if lock is None:
        return False
    node = report.active.get(state.name, report.nodes[0])
    message = f"only {', '.join(lock.allow)} may send {quote(lock.events[0])}: {_describe(transition)} is behind it"
    report.add("SB808", transition.path, message, FOUND, node, {"event": lock.events[0], "groups": []})
    return True


def _is_job_end(report: Report, transition: Transition) -> bool:
    """Tell whether a transition listens for the end of an invoke whose payload was not tried as it may be."""
    return any(one.startswith("error.invoke.") for one in transition.events) and transition.guard is not None


def is_of_engine(transition: Transition) -> bool:
    """Tell whether only the engine itself sends its event, for reasons that a walk does not have."""
    return bool(transition.events) and all(
        (event.startswith("error.") and not event.startswith("error.invoke."))
        or event in ("error", "error.*", "done.*")
        for event in transition.events
    )


def _describe(transition: Transition) -> str:
    where = f" to {', '.join(map(quote, transition.targets))}" if transition.targets else ""
    cause = {"always": "the eventless transition", "after": "the timer's transition"}.get(transition.cause)
    return f"{cause or 'the transition on ' + quote(', '.join(transition.events))}{where}"


def _trigger(transition: Transition) -> list[Any]:
    """List the input that would take a transition."""
    if transition.cause == "after":
        return [{"advance": "next"}]
    event = transition.events[0] if transition.events else ""
    return [event] if event and not limits.is_reserved_event(event) and not event.endswith("*") else []
