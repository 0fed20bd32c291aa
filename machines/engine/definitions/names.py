"""Names that have to differ, and events that somebody has to listen for."""

from __future__ import annotations

from .model import Machine, State
from .path import Path, quote
from .report import Report


def review(machine: Machine, report: Report) -> None:
    _check_invoke_ids(machine, report)
    _check_listeners(machine, report)


def _check_invoke_ids(machine: Machine, report: Report) -> None:
    """Unique in the whole machine (SCXML 6.4.1), and in one state no prefix of each other."""
    seen: dict[str, Path] = {}
    for state in machine.states.values():
        for invoke in state.invokes:
            if invoke.id in seen:
                hint = 'give it an "id" of its own'
                report.add("SB115", invoke.path, f"another invoke has the id {quote(invoke.id)}", hint)
            seen.setdefault(invoke.id, invoke.path)
        _check_prefixes(state, report)


def _check_prefixes(state: State, report: Report) -> None:
    """``done.invoke.a`` also matches ``done.invoke.a.b``: the work of one would be taken for the other's."""
    ids = {invoke.id for invoke in state.invokes}
    for invoke in state.invokes:
        words = invoke.id.split(".")
        for end in range(1, len(words)):
            prefix = ".".join(words[:end])
            if prefix in ids:
                message = f"the id {quote(invoke.id)} begins with another's: an event of one would match the other"
                report.add("SB115", invoke.path, message, "write a dash instead of the dot")


def _check_listeners(machine: Machine, report: Report) -> None:
    bases = {_base(event) for s in machine.states.values() for t in s.transitions for event in t.events}
    for event in machine.events.values():
        if not _listened(event.name, bases):
            report.add("SB207", event.path, f"no state listens for {quote(event.name)}")
    for state in machine.states.values():
        for action in state.actions:
            if action.verb == "raise" and not _listened(action.name, bases):
                report.add("SB208", action.path, f"no state listens for {quote(action.name)}")


def _base(descriptor: str) -> str:
    return "*" if descriptor == "*" else descriptor.removesuffix(".*")


def _listened(event: str, bases: set[str]) -> bool:
    words = event.split(".")
    return "*" in bases or any(".".join(words[:end]) in bases for end in range(1, len(words) + 1))
