"""Which states an instance can come into, and which it can leave again."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Machine, State, Transition


def reached(machine: Machine) -> set[str]:
    """Every state that can become active, and every history state a transition leads to."""
    return _Reach(machine).all()


class _Reach:
    """Enters whatever can be entered, as SCXML's algorithm does, until nothing new turns up."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._found: set[str] = set()  # active or, of a history, led to
        self._begun: set[str] = set()  # entered by default as well
        self._beside: set[tuple[str, str]] = set()  # parallel states, and the region that was entered by name
        # What is still to be entered, and the state this begins in: that one is active already.
        self._waiting: list[tuple[str, str]] = []

    def all(self) -> set[str]:
        machine = self._machine
        self._wait([machine.root] if machine.root else machine.start.targets)
        while self._waiting:
            name, within = self._waiting.pop()
            if name in machine.states:
                self._enter(machine.states[name], within)
        return self._found

    def _wait(self, names: Iterable[str], within: str = "") -> None:
        self._waiting += [(name, within) for name in names]

    def _enter(self, state: State, within: str) -> None:
        inner = ""
        for around in self._machine.lineage(state.name):
            if around.name == within:
                break
            self._pass(around, inner)
            inner = around.name
        if state.name in self._begun:
            return
        self._begun.add(state.name)
        if state.kind == "parallel":
            self._wait(_regions(state, self._machine), state.name)
        elif state.start:
            self._wait(state.start.targets, state.name if state.kind == "compound" else state.parent or "")

    def _pass(self, state: State, inner: str) -> None:
        """A state becomes active with its child ``inner``, if that is not empty; a parallel one takes all its regions
        along."""
        if state.kind == "parallel" and inner and (state.name, inner) not in self._beside:
            self._beside.add((state.name, inner))
            others = (name for name in _regions(state, self._machine) if name != inner)
            self._wait([name for name in others if name not in self._begun], state.name)
        if state.name in self._found:
            return
        self._found.add(state.name)
        for transition in state.all_transitions:
            if not transition.never_holds:
                self._wait(transition.targets, self._stays(state, transition))

    def _stays(self, source: State, transition: Transition) -> str:
        """The innermost compound state that a transition does not leave (SCXML's transition domain)."""
        lineage = self._machine.lineage(source.name)
        if transition.reenter or any(target == source.name for target in transition.targets):
            lineage = lineage[1:]
        around = (state.name for state in lineage if state.kind == "compound")
        return next((name for name in around if self._holds(name, transition.targets)), "")

    def _holds(self, name: str, targets: Iterable[str]) -> bool:
        return all(name != target and self._machine.contains(name, target) for target in targets)


def _regions(state: State, machine: Machine) -> list[str]:
    return [child for child in state.children if child in machine.states and machine.states[child].kind != "history"]


def traps(machine: Machine) -> list[State]:
    """The leaves an instance never leaves, once there: nothing leads out of them or of a state around them.

    Final ones count where they end a state that nothing leads on from, and not the machine.
    """
    left = _left_parallels(machine)
    leaves = [state for state in machine.states.values() if state.is_leaf and not state.root]
    return [leaf for leaf in leaves if not _ends_the_machine(leaf, machine) and not _is_left(leaf, left, machine)]


def _left_parallels(machine: Machine) -> set[str]:
    """The parallel states that a transition of one of their regions leads out of."""
    found: set[str] = set()
    for state in machine.states.values():
        targets = [name for t in state.all_transitions if not t.never_holds for name in t.targets]
        for around in machine.lineage(state.name)[1:] if targets else ():
            if around.kind == "parallel" and any(_is_outside(name, around, machine) for name in targets):
                found.add(around.name)
    return found


def _is_outside(name: str, parallel: State, machine: Machine) -> bool:
    return name == parallel.name or not machine.contains(parallel.name, name)


def _is_left(leaf: State, left: set[str], machine: Machine) -> bool:
    lineage = machine.lineage(leaf.name)
    if any(state.name in left for state in lineage):
        return True
    felt = [t for state in lineage for t in state.all_transitions if leaf.final or t.cause != "state done"]
    return any(target != leaf.name for t in felt if not t.never_holds for target in t.targets)


def _ends_the_machine(state: State, machine: Machine) -> bool:
    """A final state at the top ends the instance; so does one in each region of a machine that is all parallel."""
    if not state.final:
        return False
    parent = machine.states.get(state.parent or "")
    if parent is None or parent.root:
        return True
    around = machine.states.get(parent.parent or "")
    return around is not None and around.root and around.kind == "parallel"
