"""Transitions that no data and no payload enables, and states that only they would lead to: what is known of a
machine without trying it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from machines.engine.definitions.model import MISSING, Machine, State, Transition

from .ranges import can_hold
from .terms import Term
from .usage import Usage


class DeadGuards:
    """``transitions``: ids of those that are never enabled where their state is active; ``reachable``: names of the
    states to which the others may lead."""

    def __init__(self, machine: Machine, usage: Usage) -> None:
        self._machine, self._usage = machine, usage
        self._constants: dict[Term, Any] = {
            ("data", field.name): field.initial
            for field in machine.fields.values()
            if field.initial is not MISSING and field.name not in {*usage.written, *usage.inputs}
        }
        self.transitions = {
            transition.id
            for state in machine.states.values()
            for group in (state.transitions, state.always)
            for at, transition in enumerate(group)
            if self._is_dead(group[:at], transition)
        }
        self.reachable = self._find_reachable()

    def _is_dead(self, before: Sequence[Transition], transition: Transition) -> bool:
        earlier = [one for one in before if set(transition.events) <= set(one.events)]
        if any(one.guard is None for one in earlier):
            return True
        conditions = [(one.guard.expression.tree, False) for one in earlier if one.guard]
        if transition.guard:
            conditions.append((transition.guard.expression.tree, True))
        event = transition.events[0] if len(transition.events) == 1 else ""
        return not can_hold(conditions, lambda term: self._list_types(term, event), self._constants)

    def _list_types(self, term: Term, event: str) -> Sequence[str]:
        if term[0] == "data":
            field = self._machine.fields.get(term[1]) if len(term) == 2 else None
            if field is None:
                return ("any",)
            is_set = field.initial is not MISSING or field.name in self._usage.inputs
            return field.types if is_set else (*field.types, "null")
        declared = self._machine.events.get(event)
        if declared is None or declared.fields is None or len(term) != 2 or term[1] not in declared.fields:
            return ("any",)
        field = declared.fields[term[1]]
        return field.types if field.required else (*field.types, "null")

    def _find_reachable(self) -> set[str]:
        found: set[str] = set()
        waiting = list(self._machine.start.targets) or [
            state.name for state in self._machine.states.values() if state.parent in (None, self._machine.root)
        ]
        if self._machine.root:
            waiting.append(self._machine.root)
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            waiting += self._list_entered(self._machine.states[name])
        return found

    def _list_entered(self, state: State) -> list[str]:
        """List the states that may be entered because of one."""
        entered = [state.parent] if state.parent else []
        if state.start:
            entered += state.start.targets
        if state.kind == "parallel" or state.kind == "history":
            entered += state.children or ()
        if state.kind == "history" and state.parent:
            entered += self._machine.states[state.parent].children
        if state.parent and self._machine.states[state.parent].kind == "parallel":
            entered += self._machine.states[state.parent].children
        for transition in state.all_transitions:
            if transition.id not in self.transitions:
                entered += transition.targets
        return entered
