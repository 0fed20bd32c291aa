"""The report of a verification: what the walk found of a machine, and the findings that the checks add."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from machines.engine.definitions import render
from machines.engine.definitions.findings import Path
from machines.engine.definitions.model import Machine, Transition
from machines.engine.definitions.outline import is_match
from machines.engine.errors import SignalboxError
from machines.engine.simulation import START, Simulator

from .dead_guards import DeadGuards
from .findings import CHECKS, FOUND, PROVEN, UNDECIDED, VerificationFinding
from .usage import Usage, list_transitions
from .walk import ID, Edge, Node, Walk

MOST_OF_A_KIND = 20
RESTLESS = ("microsteps", "events in one step", "raised events wait", "sent events wait", "units of work")
"""Parts of the errors of a step without end."""
WITNESSED = frozenset({"SB801", "SB802", "SB806", "SB807", "SB808"})
"""Of these a run of each part is a proof, also where not all runs are known."""


class Report:
    """What is known of a machine after a walk, and the findings so far."""

    def __init__(self, machine: Machine, simulator: Simulator, walk: Walk, usage: Usage, dead: DeadGuards) -> None:
        self.machine, self.simulator, self.walk, self.usage, self.dead = machine, simulator, walk, usage, dead
        self.nodes = walk.nodes
        self.found: list[VerificationFinding] = []
        self.open: dict[str, str] = {}  # code -> why it is not decided as a whole
        self.covered: set[str] = set()  # codes of which findings of other codes tell
        self._learn()

    def _learn(self) -> None:
        """Collect which states and transitions occurred."""
        self.taken = {id for ids in self.walk.first for id in ids}
        self.taken |= {id for node in self.nodes for edge in node.edges for id in edge.transitions}
        self.active: dict[str, Node] = {}
        for node in self.nodes:
            for name in node.active:
                self.active.setdefault(name, node)
        self.passed = set(self.active)
        for state, transition in list_transitions(self.machine):
            if transition.id in self.taken:
                self.passed.update([state.name, *transition.targets])
        for name in list(self.passed):
            self._pass_around(name)

    def _pass_around(self, name: str) -> None:
        """Note the states that are active with one: those around it, and those entered by default."""
        waiting = [name]
        while waiting:
            state = self.machine.states.get(waiting.pop())
            if state is None:
                continue
            entered = [state.parent] if state.parent else []
            if state.kind == "compound" and state.start and not any(child in self.passed for child in state.children):
                entered += state.start.targets
            if state.kind == "parallel":
                entered += state.children
            for one in entered:
                if one not in self.passed:
                    self.passed.add(one)
                    waiting.append(one)

    @property
    def why(self) -> str:
        return "; ".join(self.walk.doubts[:3]) or "not all snapshots were tried"

    def add(self, code: str, path: Path, message: str, verdict: Any, node: Node | None = None, *more: Any) -> None:
        if sum(one.code == code and one.verdict == verdict for one in self.found) >= MOST_OF_A_KIND:
            return
        run = self.walk.list_run(node.number) if node else []
        self.found.append(
            VerificationFinding(
                code,
                render(path),
                message,
                CHECKS[code].advice if verdict != PROVEN else "",
                "warning",
                verdict,
                (*run, *more),
                node.data if node else {},
            )
        )

    def add_found(
        self, code: str, path: Path, message: str, node: Node, more: Sequence[Any], shows: Callable[[Any], bool]
    ) -> bool:
        """Add a finding whose run, repeated, shows it; else leave the check undecided."""
        run = [*self.walk.list_run(node.number), *more]
        try:
            records = self.simulator.run(run, node.data, ID, START, None)
        except SignalboxError:
            records = []
        if records and shows(records):
            self.add(code, path, message, FOUND, node, *more)
            return True
        self.open.setdefault(code, "a run that may show it could not be repeated")
        return False

    def conclude(self) -> None:
        """Add for each kind of which nothing was found whether it was proven."""
        known = {one.code for one in self.found}
        whole = self.walk.is_whole and bool(self.nodes)
        for code, check in CHECKS.items():
            if code in known | self.covered or code == "SB811" or not self._applies(code):
                continue
            why = self.open.get(code) or ("" if whole or (code in WITNESSED and self.nodes) else self.why)
            if why:
                self.add(code, (), f"{check.holds}: not decided, because {why}", UNDECIDED)
            else:
                self.add(code, (), check.holds, PROVEN)

    def _applies(self, code: str) -> bool:
        transitions = [transition for _, transition in list_transitions(self.machine)]
        return {
            "SB805": self.can_end,
            "SB806": any(one.cause == "after" for one in transitions),
            "SB807": any(state.invokes for state in self.machine.states.values()),
            "SB808": any(one.allow for one in transitions),
        }.get(code, True)

    @property
    def can_end(self) -> bool:
        tops = (None, self.machine.root)
        return any(state.final and state.parent in tops for state in self.machine.states.values())

    def undecide(self, code: str, path: Path, what: str) -> None:
        self.add(code, path, f"{what} was not decided, because {self.why}", UNDECIDED)

    def list_leaves(self, node: Node) -> list[str]:
        return [state.name for state in self.machine.states.values() if state.name in node.active and state.is_leaf]

    def list_edges(self) -> Iterator[tuple[Node, Edge]]:
        return ((node, edge) for node in self.nodes for edge in node.edges)

    def find_circle(self, node: Node, edge: Edge) -> Path:
        for name in self.list_leaves(node):
            for transition in self.machine.states[name].transitions:
                if edge.event in transition.events:
                    return transition.path
        return ()


def listens(transition: Transition, event: str) -> bool:
    return any(is_match(one, event) for one in transition.events)
