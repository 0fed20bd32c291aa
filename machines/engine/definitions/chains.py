"""Transitions beside each other: which can never be reached, and which chains of guards leave a gap."""

from __future__ import annotations

from .model import Machine, State, Transition
from .path import quote
from .references import invokes_named
from .report import Report


def review(machine: Machine, report: Report) -> None:
    for state in machine.states.values():
        _check_guards(state, report)
        _check_shadows(state, report)
        _check_always(state, report)
        _check_gaps(state, report)
        _check_internal_events(state, report)


def _check_guards(state: State, report: Report) -> None:
    for transition in state.all_transitions:
        if transition.never_holds and transition.guard:
            report.add("SB210", transition.guard.path, "the guard is always false")


def _check_shadows(state: State, report: Report) -> None:
    """An earlier transition without a guard takes every event its descriptor covers."""
    taken: dict[str, Transition] = {}
    for transition in state.transitions:
        for event in transition.events:
            earlier = next((taken[prefix] for prefix in _covering(event) if prefix in taken), None)
            if earlier is not None:
                before = earlier.events[0]
                message = f"never reached: {earlier.id} before it takes {quote(before)} without a guard"
                report.add("SB203", transition.path, message)
            if transition.always_holds:
                taken.setdefault(_base(event), transition)


def _base(descriptor: str) -> str:
    """``door.*`` and ``door`` cover the same events (SCXML 3.12.1); ``*`` covers all of them."""
    return descriptor.removesuffix(".*") if descriptor != "*" else ""


def _covering(descriptor: str) -> list[str]:
    """The bases that cover a descriptor: itself, each of its prefixes, and everything."""
    words = _base(descriptor).split(".")
    return ["", *(".".join(words[: end + 1]) for end in range(len(words)))]


def _check_always(state: State, report: Report) -> None:
    unguarded = next((t for t in state.always if t.always_holds), None)
    if unguarded is None:
        return
    for transition in state.always[state.always.index(unguarded) + 1 :]:
        report.add("SB203", transition.path, f"never reached: {unguarded.id} before it has no guard")
    if state.transitions and not state.final:
        message = f"the state {quote(state.name)} is left at once by {unguarded.id}: no event is ever waited for"
        report.add("SB211", state.transitions[0].path, message)


def _check_gaps(state: State, report: Report) -> None:
    """One guard alone is an interlocking; several in a row are usually meant to cover every case."""
    chains: dict[tuple[str, ...], list[Transition]] = {}
    for transition in state.transitions:
        chains.setdefault(transition.events, []).append(transition)
    open_to_all = {_base(event) for t in state.transitions if t.always_holds for event in t.events}
    for events, chain in chains.items():
        covered = any(base in open_to_all for event in events for base in _covering(event))
        if len(chain) > 1 and not covered:
            message = f"{len(chain)} guarded transitions for {quote(events[0])} and none without a guard after them"
            report.add("SB204", chain[0].path[:-1], message, "without one, the event is refused when no guard holds")


def _check_internal_events(state: State, report: Report) -> None:
    """``done.invoke.x`` comes from the invoke ``x`` of the same state, and from nowhere else."""
    ids = invokes_named(state)
    for transition in state.transitions:
        event = transition.events[0] if transition.cause == "on" else ""
        kind, _, id = event.rpartition("invoke.") if "invoke." in event else ("", "", "")
        if kind in ("done.", "error.") and id not in ids and not id.endswith("*"):
            hint = report.suggestions.hint(id, ids)
            report.add("SB209", transition.path, f"the state has no invoke {quote(id)}, so this never happens", hint)
        elif event.startswith("done.state."):
            report.add("SB209", transition.path, "states inside states are not yet available, so this never happens")
