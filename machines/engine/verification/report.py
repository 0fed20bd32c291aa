"""The report of a verification: what the walk found of a machine, and the findings that the checks add, with one code
for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from machines.engine.definitions import Finding, render
from machines.engine.definitions.findings import Path
from machines.engine.definitions.model import Machine, Transition
from machines.engine.definitions.outline import is_match
from machines.engine.errors import SignalboxError
from machines.engine.simulation import START, Simulator

from .dead_guards import DeadGuards
from .usage import Usage, list_transitions
from .walk import ID, Edge, Node, Walk

FOUND: Literal["found"] = "found"
PROVEN: Literal["proven"] = "proven"
UNDECIDED: Literal["undecided"] = "undecided"


@dataclass(frozen=True, slots=True)
class Check:
    """A kind of finding: what is right where nothing is wrong, and what to do."""

    code: str
    holds: str
    advice: str


CHECKS = {
    check.code: check
    for check in (
        Check("SB801", "every state is reached", "add a way to it, or remove it"),
        Check("SB802", "every transition is taken", "correct its guard or those before it, or remove it"),
        Check("SB803", "something can happen until the end", 'add a way out, or `"type": "final"`'),
        Check("SB804", "every step comes to rest", "let a guard end the circle"),
        Check("SB805", "an end stays within reach", "add a way to a final state"),
        Check("SB806", "every timer can fire", "shorten it, or remove it"),
        Check("SB807", "every invoke is listened to", "add onDone"),
        Check("SB808", "`allow` lets somebody pass", "name the group on the first one"),
        Check("SB809", "fields are set before they are read", "give it a value"),
        Check("SB810", "guards do not fail", "test for that before"),
        Check("SB811", "the property holds", "follow the run"),
    )
}


@dataclass(frozen=True, slots=True)
class VerificationFinding(Finding):
    """One result of ``verify``.

    ``verdict``: "found" (the run shows it, and was repeated on the interpreter), "proven" (the opposite holds for all
    runs) or "undecided" (not decided within the budget, or because of values that cannot all be tried; the message says
    why). ``run``: inputs for ``simulate``, the fewest that show it; for what never happens, the way to the place where
    it would. ``data``: what the instance is given at its creation.
    """

    verdict: Literal["found", "proven", "undecided"] = "undecided"
    run: tuple[Any, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        run = [list(one) if isinstance(one, tuple) else one for one in self.run]
        return asdict(self) | {"run": run, "data": dict(self.data)}


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

    def add(
        self, code: str, path: Path, message: str, verdict: Any, node: Node | None = None, *more: Any, data: Any = None
    ) -> None:
        """Add a finding. ``data``: by default those of the ``node``."""
        if sum(one.code == code and one.verdict == verdict for one in self.found) >= MOST_OF_A_KIND:
            return
        run = (*(self.walk.list_run(node.number) if node else ()), *more)
        given = data or (node.data if node else {})
        advice = CHECKS[code].advice if verdict != PROVEN else ""
        self.found.append(VerificationFinding(code, render(path), message, advice, "warning", verdict, run, given))

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
