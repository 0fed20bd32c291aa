"""Checks names that must differ, and events that no transition takes."""

from __future__ import annotations

from machines.engine.definitions.model import Action, Invoke, Machine, State, flatten_actions
from machines.engine.definitions.report import Report, quote


def review(machine: Machine, report: Report) -> None:
    _check_state_names(machine, report)
    _check_invoke_ids(machine, report)
    _check_listeners(machine, report)
    _check_cancels(machine, report)


def _check_state_names(machine: Machine, report: Report) -> None:
    """Report states whose done events have one name; equal names are reported by the reader."""
    seen: set[str] = set()
    for state in machine.states.values():
        if state.done and state.done in seen:
            message = f"another state ends with {quote(state.done)} too"
            report.add("SB115", state.path, message, 'give it an "id" of its own')
        seen.add(state.done)


def _check_invoke_ids(machine: Machine, report: Report) -> None:
    """Report ids of invokes that are not unique in the machine (SCXML 6.4.1), or are a prefix of one that may run at
    the same time."""
    owners: dict[str, State] = {}
    for state in machine.states.values():
        for invoke in state.invokes:
            if invoke.id in owners:
                hint = 'give it an "id" of its own'
                report.add("SB115", invoke.path, f"another invoke has the id {quote(invoke.id)}", hint)
            owners.setdefault(invoke.id, state)
    for state in machine.states.values():
        for invoke in state.invokes:
            _check_prefixes(invoke, state, owners, machine, report)


def _check_prefixes(invoke: Invoke, state: State, owners: dict[str, State], machine: Machine, report: Report) -> None:
    """Report prefixes: ``done.invoke.a`` also matches ``done.invoke.a.b``, the end of another job."""
    words = invoke.id.split(".")
    for end in range(1, len(words)):
        owner = owners.get(".".join(words[:end]))
        if owner is not None and machine.together(owner.name, state.name):
            message = f"the id {quote(invoke.id)} begins with another's: an event of one would match the other"
            report.add("SB115", invoke.path, message, "write a dash instead of the dot")


def _check_listeners(machine: Machine, report: Report) -> None:
    bases = {_base(event) for s in machine.states.values() for t in s.transitions for event in t.events}
    for event in machine.events.values():
        if not _is_listened_to(event.name, bases):
            report.add("SB207", event.path, f"no state listens for {quote(event.name)}")
    for state in machine.states.values():
        for action in state.actions:
            if action.verb == "raise" and action.name and not _is_listened_to(action.name, bases):
                report.add("SB208", action.path, f"no state listens for {quote(action.name)}")


def _base(descriptor: str) -> str:
    return "*" if descriptor == "*" else descriptor.removesuffix(".*")


def _is_listened_to(event: str, bases: set[str]) -> bool:
    words = event.split(".")
    return "*" in bases or any(".".join(words[:end]) in bases for end in range(1, len(words) + 1))


def _check_cancels(machine: Machine, report: Report) -> None:
    """Report cancels of an id that no send has; an id that is computed could be any."""
    actions = list(_actions(machine))
    sent = {action.sending.id for action in actions if action.sending}
    if any(action.sending and (action.sending.computed or action.sending.idlocation) for action in actions):
        return
    for action in actions:
        if action.verb == "cancel" and action.name and action.name not in sent:
            hint = report.suggestions.hint(action.name, sent - {""})
            report.add("SB214", action.path, f"nothing is sent with the id {quote(action.name)}", hint)


def _actions(machine: Machine) -> list[Action]:
    begun = [] if machine.root else list(flatten_actions(machine.start.actions))
    return begun + [action for state in machine.states.values() for action in state.actions]
