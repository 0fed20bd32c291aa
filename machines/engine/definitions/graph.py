"""The shape of the machine: states nothing leads to, states nothing leads out of, circles of ``always``."""

from __future__ import annotations

from .model import Machine, State
from .path import quote
from .reach import reached, traps
from .report import Report

# After these, a way that could not be read would look like a way that is missing.
_HIDE_WAYS = ("SB101", "SB104", "SB105", "SB106", "SB110", "SB111", "SB115", "SB117", "SB119", "SB122", "SB123")


def review(machine: Machine, report: Report) -> None:
    if not report.holds(*_HIDE_WAYS):
        _check_ways(machine, report)
    for state in machine.states.values():
        if state.final and not state.root:
            _check_final(state, machine, report)
    _check_circles(machine, report)
    for state in machine.states.values():
        if state.kind == "history":
            _check_history(state, machine, report)


def _check_ways(machine: Machine, report: Report) -> None:
    found = reached(machine)
    for state in machine.states.values():
        if state.name not in found and (state.parent is None or state.parent in found):
            report.add("SB201", state.path, f"no transition leads to the state {quote(state.name)}")
    for state in traps(machine):
        _report_trap(state, report)


def _report_trap(state: State, report: Report) -> None:
    if state.final:
        message = f"{quote(state.name)} ends {quote(state.parent or '')}, and nothing leads on from there"
        report.add("SB202", state.path, message, 'write "onDone" on the state around it')
    else:
        report.add("SB202", state.path, f"no transition leads out of {quote(state.name)}, and it is not final")


def _check_final(state: State, machine: Machine, report: Report) -> None:
    own = {cause: [t for t in state.transitions if t.cause == cause] for cause in ("on", "after")}
    parts = (
        (own["on"], "on"),
        (own["after"], "after"),
        (state.always, "always"),
        (state.invokes, "invoke"),
        (state.children, "states"),
    )
    for part, key in parts:
        if part:
            message = f'the final state {quote(state.name)} is never left and does no work, but has "{key}"'
            report.add("SB117", (*state.path, key), message)


def _check_history(state: State, machine: Machine, report: Report) -> None:
    """A history may lead to another, which may not lead back."""
    trail: list[str] = []
    following: State | None = state
    while following is not None and following.kind == "history" and following.start:
        if following.name in trail:
            way = " → ".join(quote(name) for name in [*trail, following.name][:10])
            report.add("SB123", state.path, f"history states that lead to each other and nowhere else: {way}")
            return
        trail.append(following.name)
        following = machine.states.get(following.start.targets[0]) if following.start.targets else None


def _check_circles(machine: Machine, report: Report) -> None:
    """Only circles that are certain: where the first ``always`` of each state has no guard."""
    settled: set[str] = set()
    for name in machine.states:
        trail: list[str] = []
        while name not in settled and name not in trail:
            trail.append(name)
            following = _next_always(machine.states[name], machine)
            if following is None:
                break
            name = following
        else:
            if name in trail:
                _report_circle(machine, trail[trail.index(name) :], report)
        settled.update(trail)


def _next_always(leaf: State, machine: Machine) -> str | None:
    """The leaf an instance is moved on to at once and for certain."""
    mover = _mover(leaf, machine)
    if mover is None:
        return None
    targets = mover.always[0].targets
    if not targets:
        return leaf.name
    return _settled(targets, machine)


def _mover(leaf: State, machine: Machine) -> State | None:
    """The state whose ``always`` is certain to be taken in a leaf: from the inside out, the first that has any.

    In a parallel state another region may come in between.
    """
    lineage = machine.lineage(leaf.name)
    if not leaf.is_leaf or (leaf.final and leaf.parent is None) or any(s.kind == "parallel" for s in lineage):
        return None
    mover = next((state for state in lineage if state.always), None)
    return mover if mover and mover.always[0].always_holds else None


def _settled(targets: tuple[str, ...], machine: Machine) -> str | None:
    """The leaf that entering a target comes to; None where that depends, or is several."""
    seen: set[str] = set()
    while len(targets) == 1 and targets[0] in machine.states and targets[0] not in seen:
        state = machine.states[targets[0]]
        if state.is_leaf:
            return state.name
        if state.kind != "compound" or state.start is None:
            return None
        seen.add(state.name)
        targets = state.start.targets
    return None


def _report_circle(machine: Machine, circle: list[str], report: Report) -> None:
    way = " → ".join(quote(name) for name in [*circle, circle[0]][:10])
    mover = _mover(machine.states[circle[0]], machine)
    assert mover is not None
    report.add("SB118", mover.always[0].path, f"always goes round for ever: {way}")
