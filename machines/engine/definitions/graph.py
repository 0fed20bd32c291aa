"""The shape of the machine: states nothing leads to, states nothing leads out of, circles of ``always``."""

from __future__ import annotations

from .model import Machine, State
from .path import quote
from .report import Report

# After these, a way that could not be read would look like a way that is missing.
_HIDE_WAYS = ("SB101", "SB104", "SB105", "SB106", "SB108", "SB110")


def review(machine: Machine, report: Report) -> None:
    if not report.holds(*_HIDE_WAYS):
        _check_ways(machine, report)
    for state in machine.states.values():
        if state.final:
            _check_final(state, report)
    _check_circles(machine, report)


def _check_ways(machine: Machine, report: Report) -> None:
    reached = _reachable(machine)
    for state in machine.states.values():
        if state.name not in reached:
            report.add("SB201", state.path, f"no transition leads to the state {quote(state.name)}")
        if not state.final and not _ways_out(state):
            report.add("SB202", state.path, f"no transition leads out of {quote(state.name)}, and it is not final")


def _ways_out(state: State) -> set[str]:
    targets = {t.target for t in state.all_transitions if t.target is not None and not t.never_holds}
    return targets - {state.name}


def _reachable(machine: Machine) -> set[str]:
    found: set[str] = set()
    waiting = [machine.initial]
    while waiting:
        name = waiting.pop()
        if name in machine.states and name not in found:
            found.add(name)
            waiting += _ways_out(machine.states[name])
    return found


def _check_final(state: State, report: Report) -> None:
    on = [transition for transition in state.transitions if transition.cause == "on"]
    for part, key in ((on, "on"), (state.always, "always"), (state.invokes, "invoke")):
        if part:
            message = f'the final state {quote(state.name)} is never left and does no work, but has "{key}"'
            report.add("SB117", (*state.path, key), message)
    if state.exit:
        report.add("SB211", (*state.path, "exit"), "a final state is never left: these actions never run")


def _check_circles(machine: Machine, report: Report) -> None:
    """Only circles that are certain: where the first ``always`` of each state has no guard."""
    settled: set[str] = set()
    for name in machine.states:
        trail: list[str] = []
        while name not in settled and name not in trail:
            trail.append(name)
            following = _next_always(machine.states[name])
            if following is None:
                break
            name = following
        else:
            if name in trail:
                _report_circle(machine, trail[trail.index(name) :], report)
        settled.update(trail)


def _next_always(state: State) -> str | None:
    """The state an instance is moved on to at once and for certain."""
    if state.final or not state.always or not state.always[0].always_holds:
        return None
    return state.always[0].target or state.name


def _report_circle(machine: Machine, circle: list[str], report: Report) -> None:
    way = " → ".join(quote(name) for name in [*circle, circle[0]][:10])
    report.add("SB118", machine.states[circle[0]].always[0].path, f"always goes round for ever: {way}")
