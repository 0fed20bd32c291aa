"""Checks the graph of states: unreachable states, traps, and cycles of ``always`` or of history states."""

from collections.abc import Callable, Iterable

from machines.engine.definitions.findings import Report, quote
from machines.engine.definitions.model import Machine, State, Transition


class _Reach:
    """Enters every state that can be entered, as SCXML's algorithm does, until no new state is found. ``is_dead`` tells
    whether a transition is never taken."""

    def __init__(self, machine: Machine, is_dead: Callable[[Transition], bool]) -> None:
        self._machine, self._is_dead = machine, is_dead
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
        """Activate a state with its child ``inner``, if any; a parallel state activates all its regions."""
        if state.kind == "parallel" and inner and (state.name, inner) not in self._beside:
            self._beside.add((state.name, inner))
            others = (name for name in _regions(state, self._machine) if name != inner)
            self._wait([name for name in others if name not in self._begun], state.name)
        if state.name in self._found:
            return
        self._found.add(state.name)
        for transition in state.all_transitions:
            if not self._is_dead(transition):
                self._wait(transition.targets, self._stays(state, transition))

    def _stays(self, source: State, transition: Transition) -> str:
        """Return the innermost compound state that a transition does not leave (SCXML's transition domain)."""
        lineage = self._machine.lineage(source.name)
        if transition.reenter or any(target == source.name for target in transition.targets):
            lineage = lineage[1:]
        around = (state.name for state in lineage if state.kind == "compound")
        return next((name for name in around if self._holds(name, transition.targets)), "")

    def _holds(self, name: str, targets: Iterable[str]) -> bool:
        return all(name != target and self._machine.contains(name, target) for target in targets)


def find_reachable(machine: Machine, is_dead: Callable[[Transition], bool]) -> set[str]:
    """Return the names of the states that can be entered by transitions that are not dead."""
    return _Reach(machine, is_dead).all()


def _regions(state: State, machine: Machine) -> list[str]:
    return [child for child in state.children if child in machine.states and machine.states[child].kind != "history"]


def find_traps(machine: Machine) -> list[State]:
    """List the leaves that an instance never leaves: no transition leads out of them or of an ancestor.

    Final leaves count where they end a state without a transition for its end, and not the machine.
    """
    left = _find_left_parallels(machine)
    leaves = [state for state in machine.states.values() if state.is_leaf and not state.root]
    return [leaf for leaf in leaves if not _ends_the_machine(leaf, machine) and not _is_left(leaf, left, machine)]


def _find_left_parallels(machine: Machine) -> set[str]:
    """Return the parallel states that a transition of one of their regions leaves."""
    found: set[str] = set()
    for state in machine.states.values():
        targets = [name for t in state.all_transitions if not t.never_holds for name in t.targets]
        for around in machine.lineage(state.name)[1:] if targets else ():
            if around.kind == "parallel" and any(
                name == around.name or not machine.contains(around.name, name) for name in targets
            ):
                found.add(around.name)
    return found


def _is_left(leaf: State, left: set[str], machine: Machine) -> bool:
    lineage = machine.lineage(leaf.name)
    if any(state.name in left for state in lineage):
        return True
    felt = [t for state in lineage for t in state.all_transitions if leaf.final or t.cause != "state done"]
    return any(target != leaf.name for t in felt if not t.never_holds for target in t.targets)


def _ends_the_machine(state: State, machine: Machine) -> bool:
    """Tell whether a final state ends the instance: at the top, or in a region of a machine that is parallel as a
    whole."""
    if not state.final:
        return False
    parent = machine.states.get(state.parent or "")
    if parent is None or parent.root:
        return True
    around = machine.states.get(parent.parent or "")
    return around is not None and around.root and around.kind == "parallel"


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
    found = find_reachable(machine, lambda transition: transition.never_holds)
    for state in machine.states.values():
        if state.name not in found and (state.parent is None or state.parent in found):
            report.add("SB201", state.path, f"no transition leads to the state {quote(state.name)}")
    for state in find_traps(machine):
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
    """Report history states that lead to each other in a cycle."""
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
    """Report certain cycles only: where the first ``always`` of each state has no guard."""
    settled: set[str] = set()
    for name in machine.states:
        trail: list[str] = []
        while name not in settled and name not in trail:
            trail.append(name)
            following = _follow_always(machine.states[name], machine)
            if following is None:
                break
            name = following
        else:
            if name in trail:
                _report_circle(machine, trail[trail.index(name) :], report)
        settled.update(trail)


def _follow_always(leaf: State, machine: Machine) -> str | None:
    """Return the leaf that an instance in this leaf certainly moves on to at once."""
    mover = _mover(leaf, machine)
    if mover is None:
        return None
    targets = mover.always[0].targets
    if not targets:
        return leaf.name
    return _find_leaf(targets, machine)


def _mover(leaf: State, machine: Machine) -> State | None:
    """Return the state whose ``always`` is certain to be taken in a leaf: the innermost that has one.

    Inside a parallel state another region may act first, so nothing is certain there.
    """
    lineage = machine.lineage(leaf.name)
    if not leaf.is_leaf or (leaf.final and leaf.parent is None) or any(s.kind == "parallel" for s in lineage):
        return None
    mover = next((state for state in lineage if state.always), None)
    return mover if mover and mover.always[0].always_holds else None


def _find_leaf(targets: tuple[str, ...], machine: Machine) -> str | None:
    """Return the leaf that entering a target leads to; None where that is not certain, or several."""
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
    report.add("SB118", mover.always[0].path, f"always transitions form an endless cycle: {way}")
