"""Runs the checks that need the whole machine, once all of it was read; here those of transitions, timers and
senders."""

from __future__ import annotations

import re

from machines.engine import limits
from machines.engine.definitions import program
from machines.engine.definitions.findings import Report, quote
from machines.engine.definitions.model import Machine, State, Transition
from machines.engine.definitions.outline import FIRE, is_match
from machines.engine.definitions.program import list_descriptors, list_known_events

from . import encrypted, graph, references, types

_TIMER = re.compile(r"after\.t\d+")
_MADE = ("done.invoke", "done.state", "error.invoke", "error.execution", "error.communication", "error.platform")
"""What the engine's own events begin with, timers aside."""


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
    ways = [
        transition
        for around in machine.lineage(state.name)
        for transition in around.all_transitions
        if not transition.never_holds and any(target != state.name for target in transition.targets)
    ]
    if ways and all(t.cause == "after" and not t.always_holds for t in ways):
        message = f"the only ways out of {quote(state.name)} are timers with guards, and each goes off only once"
        report.add("SB215", ways[-1].path, message, "add a transition without a guard")


def review_transitions(machine: Machine, report: Report) -> None:
    for state in machine.states.values():
        _check_guards(state, report)
        _check_shadows(state, report)
        _check_always(state, report)
        _check_gaps(state, machine, report)
        _check_internal_events(state, machine, report)


def _check_guards(state: State, report: Report) -> None:
    for transition in state.all_transitions:
        if transition.never_holds and transition.guard:
            report.add("SB210", transition.guard.path, "the guard is always false")


def _check_shadows(state: State, report: Report) -> None:
    """Report transitions behind an earlier one without a guard that takes every event they match."""
    taken: dict[str, Transition] = {}
    for transition in state.transitions:
        for event in transition.events:
            earlier = next((taken[prefix] for prefix in _covering(event) if prefix in taken), None)
            if earlier is not None:
                before = "its timer" if transition.cause == "after" else quote(earlier.events[0])
                message = f"never reached: {earlier.id} before it takes {before} without a guard"
                report.add("SB203", transition.path, message)
            if transition.always_holds:
                taken.setdefault(_base(event), transition)


def _base(descriptor: str) -> str:
    """Return the base of a descriptor: ``door.*`` and ``door`` match the same events (SCXML 3.12.1), ``*`` matches
    all."""
    return descriptor.removesuffix(".*") if descriptor != "*" else ""


def _covering(descriptor: str) -> list[str]:
    """List the bases that cover a descriptor: itself, each of its prefixes, and ``*``. No pattern matches a timer."""
    if _TIMER.fullmatch(descriptor):
        return [descriptor]
    words = _base(descriptor).split(".")
    return ["", *(".".join(words[: end + 1]) for end in range(len(words)))]


def _check_always(state: State, report: Report) -> None:
    unguarded = next((t for t in state.always if t.always_holds), None)
    if unguarded is None:
        return
    for transition in state.always[state.always.index(unguarded) + 1 :]:
        report.add("SB203", transition.path, f"never reached: {unguarded.id} before it has no guard")
    if state.transitions and state.kind == "atomic":
        message = f"the state {quote(state.name)} is left at once by {unguarded.id}: no event is ever waited for"
        report.add("SB211", state.transitions[0].path, message)


def _check_gaps(state: State, machine: Machine, report: Report) -> None:
    """Report chains of guards without an else: one guard alone is a condition, several usually mean to cover every
    case."""
    chains: dict[tuple[str, ...], list[Transition]] = {}
    for transition in state.transitions:
        if transition.cause != "after":
            chains.setdefault(transition.events, []).append(transition)
    listening = (t for around in machine.lineage(state.name) for t in around.transitions)
    open_to_all = {_base(event) for t in listening if t.always_holds for event in t.events}
    for events, chain in chains.items():
        covered = any(base in open_to_all for event in events for base in _covering(event))
        if len(chain) > 1 and not covered:
            message = f"{len(chain)} guarded transitions for {quote(events[0])} and none without a guard after them"
            report.add("SB204", chain[0].path[:-1], message, "without one, the event is refused when no guard holds")


def _check_internal_events(state: State, machine: Machine, report: Report) -> None:
    """Report events such as ``done.invoke.x`` that no active invoke ``x`` can send."""
    for transition in state.transitions:
        event = transition.events[0] if transition.cause == "on" else ""
        if event.startswith(("done.invoke.", "error.invoke.")):
            _check_invoked(event.partition("invoke.")[2], transition, state, machine, report)
        elif event.startswith("done.state."):
            _check_ended(event, transition, machine, report)
        elif limits.is_reserved_event(event) and not _TIMER.fullmatch(event) and not _is_made(event):
            message = f"the engine never makes {quote(event)}, and no other sender may: this transition is never taken"
            hint = "write a name that does not begin with done., error. or after."
            report.add("SB209", transition.path, message, hint)


def _is_made(descriptor: str) -> bool:
    """Tell whether a descriptor covers an event of the engine, or is covered by the first words of one."""
    base = f"{_base(descriptor)}."
    return any(base.startswith(f"{own}.") or f"{own}.".startswith(base) for own in _MADE)


def _check_invoked(id: str, transition: Transition, state: State, machine: Machine, report: Report) -> None:
    active = [other for other in machine.states.values() if other.invokes and machine.together(state.name, other.name)]
    ids = {invoke.id for other in active for invoke in other.invokes}
    if not _names(id, ids):
        hint = report.suggestions.hint(id, ids)
        report.add("SB209", transition.path, f"the state has no invoke {quote(id)}, so this never happens", hint)


def _check_ended(event: str, transition: Transition, machine: Machine, report: Report) -> None:
    word = event.removeprefix("done.state.")
    words = {state.word for state in machine.states.values() if state.done}
    if not _names(word, words):
        hint = report.suggestions.hint(word, words)
        message = f"no state with states inside is called {quote(word)}, so this never happens"
        report.add("SB209", transition.path, message, hint)


def _names(id: str, known: set[str]) -> bool:
    """Tell whether a descriptor names an event: it also matches what begins with it and a dot."""
    return id.endswith("*") or id in known or any(name.startswith(f"{id}.") for name in known)


def review_accepts(machine: Machine, report: Report) -> None:
    path = (machine.accepts or {}).get("*")
    if path is not None:
        message = "every machine, of any publisher, may send to this one and invoke it"
        report.add("SB216", path, message, "name the machines that do")


def review_approval(machine: Machine, report: Report) -> None:
    known = list_known_events(machine)
    listened = [event for transition, event in list_descriptors(machine) if transition.cause == "on"]
    for name, path in machine.approval.items():
        event = name.removeprefix(FIRE)
        if event == name or any(is_match(descriptor, event) for descriptor in listened):
            continue
        if not any(is_match(event, one) for one in known):
            report.add_unknown("SB125", path, "event", event, known)


CHECKS = (
    references.review,
    types.review,
    encrypted.review,
    graph.review,
    review_transitions,
    review_timers,
    references.review_names,
    review_accepts,
    review_approval,
    program.review,
)


def review(machine: Machine, report: Report) -> None:
    for check in CHECKS:
        check(machine, report)
