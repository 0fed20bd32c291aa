"""Runs the checks that need the whole machine, once all of it was read."""

from __future__ import annotations

from machines.engine.definitions import access, program
from machines.engine.definitions.model import Machine, State, Transition
from machines.engine.definitions.report import Report, quote

from . import chains, graph, names, references, types


def review_timers(machine: Machine, report: Report) -> None:
    """Report timers that change nothing when they fire, and states whose only way out is a guarded timer."""
    for state in machine.states.values():
        for timed in _group_timers(state):
            if not any(_does_something(transition, state) for transition in timed):
                message = f"when this timer goes off, {quote(state.name)} is not left and nothing is done"
                report.add("SB215", timed[0].path, message)
        _check_last_way(state, machine, report)


def _group_timers(state: State) -> list[list[Transition]]:
    """Group the transitions of ``after`` by delay."""
    found: dict[tuple[str, ...], list[Transition]] = {}
    for transition in state.transitions:
        if transition.cause == "after":
            found.setdefault(transition.events, []).append(transition)
    return list(found.values())


def _does_something(transition: Transition, state: State) -> bool:
    leaves = any(target != state.name for target in transition.targets) or transition.reenter
    return not transition.never_holds and (leaves or bool(transition.actions))


def _check_last_way(state: State, machine: Machine, report: Report) -> None:
    """Report states whose every way out is a guarded timer: a timer fires once, so an instance may stay for good."""
    if state.kind != "atomic" or not any(t.cause == "after" for t in state.transitions):
        return
    ways = [t for around in machine.lineage(state.name) for t in around.all_transitions if _leads_away(t, state)]
    if ways and all(t.cause == "after" and not t.always_holds for t in ways):
        message = f"the only ways out of {quote(state.name)} are timers with guards, and each goes off only once"
        report.add("SB215", ways[-1].path, message, "add a transition without a guard")


def _leads_away(transition: Transition, state: State) -> bool:
    return not transition.never_holds and any(target != state.name for target in transition.targets)


CHECKS = (
    references.review,
    types.review,
    graph.review,
    chains.review,
    review_timers,
    names.review,
    access.review_accepts,
    access.review_approval,
    program.review,
)


def review(machine: Machine, report: Report) -> None:
    for check in CHECKS:
        check(machine, report)
