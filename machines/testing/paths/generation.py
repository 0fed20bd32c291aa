"""Runs of a machine as scenarios that pass, and what no run was found for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from machines.engine import SignalboxError
from machines.engine.definitions import CompiledDefinition, Outline, StateOutline, TransitionOutline
from machines.engine.definitions.outline import is_match
from machines.testing.job_runner import Impossible
from machines.testing.scenarios.document import Scenario, Step, Then, When, list_names
from machines.testing.scenarios.runner import describe_transition, find_involved, open_sandbox

from .explorer import BEGIN, MOST_SECONDS, MOST_STEPS, Edge, Explorer, Graph, Key

LONGEST_NAME = 80
Goal = str | tuple[str, str]
MOST_LENGTH = 60  # steps of one run: longer ones are hard to read
Select = Callable[[tuple[str, ...]], Iterator[Goal]]


@dataclass(frozen=True, slots=True)
class Missing:
    """A transition that no run takes, and why."""

    transition: str
    id: str
    reason: str

    def __str__(self) -> str:
        return f"{self.transition} ({self.id}): {self.reason}"


@dataclass(slots=True)
class Paths:
    """The runs that were found. ``total``: transitions of the machine; ``taken``: those that the scenarios take;
    ``pairs``: pairs of following transitions that they take; ``whole``: everything was tried, within the limits."""

    machine: str
    scenarios: list[Scenario] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    total: int = 0
    taken: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    steps: int = 0
    whole: bool = False


def find_paths(
    url: str,
    definitions: Mapping[str, CompiledDefinition],
    machine: str,
    *,
    pairs: bool = False,
    most_steps: int = MOST_STEPS,
    most_seconds: float = MOST_SECONDS,
) -> Paths:
    """Explore a machine on a server, and return few runs that take every transition; with ``pairs`` every pair that was
    met. Each run was repeated, and did the same. Raises SignalboxError."""
    outline = definitions[machine].outline
    with open_sandbox(url, definitions, machine) as sandbox:
        involved = find_involved(machine, definitions.get)
        explorer = Explorer(sandbox, machine, involved, most_steps=most_steps, most_seconds=most_seconds)
        graph = explorer.explore(thorough=pairs)
    found = Paths(machine, steps=graph.steps, whole=graph.whole)
    for run in select_runs(graph, pairs=pairs):
        _add(found, url, definitions, run)
    for id in sorted(graph.taken.keys() - found.taken):  # of runs that did something else the second time
        for run in find_shortest(graph, id):
            if id not in found.taken:
                _add(found, url, definitions, run)
    transitions = [one for state in outline.states for one in state.transitions]
    found.total = len(transitions)
    found.missing = [
        Missing(describe_transition(one), one.id, _explain(state, one, outline, graph))
        for state in outline.states
        for one in state.transitions
        if one.id not in found.taken
    ]
    return found


def _add(found: Paths, url: str, definitions: Mapping[str, CompiledDefinition], run: Run) -> None:
    """Repeat a run twice, and add what it did both times."""
    first, second = (_record(url, definitions, found.machine, run) for _ in range(2))
    number = len(found.scenarios) + 1
    scenario, taken = _merge(first, second, definitions[found.machine].outline, number)
    pairs = set(pairwise(taken))
    if scenario is not None and not (set(taken) <= found.taken and pairs <= found.pairs):
        found.scenarios.append(scenario)
        found.taken |= set(taken)
        found.pairs |= pairs


@dataclass(slots=True)
class _Record:
    """What each step of a run led to, up to one that could not be done."""

    run: Run
    begun: list[str] = field(default_factory=list)
    steps: list[tuple[tuple[str, ...], dict[str, Any], tuple[str, ...], bool]] = field(default_factory=list)


def _record(url: str, definitions: Mapping[str, CompiledDefinition], machine: str, run: Run) -> _Record:
    """Do a run once more, on keys of its own, at the time at which all scenarios begin."""
    record = _Record(run)
    with open_sandbox(url, definitions, machine) as sandbox:
        try:
            record.begun = sandbox.start(machine, run.given).transitions
            for when in run.whens:
                happened = sandbox.perform(when)
                if happened.error is not None:
                    break
                instance = sandbox.read()
                record.steps.append(
                    (tuple(instance.configuration), instance.data, tuple(happened.transitions), instance.done)
                )
        except (SignalboxError, Impossible, AssertionError):
            pass
    return record


def _merge(first: _Record, second: _Record, outline: Outline, number: int) -> tuple[Scenario | None, list[str]]:
    """Make a scenario of what two repetitions have in common; return the transitions that it takes, too."""
    known = {one.id: describe_transition(one) for state in outline.states for one in state.transitions}
    steps: list[Step] = []
    taken = list(first.begun)
    data = dict[str, Any]()
    for when, one, other in zip(first.run.whens, first.steps, second.steps, strict=False):
        if one[0] != other[0] or one[2] != other[2]:
            break
        same = {name: value for name, value in one[1].items() if name in other[1] and other[1][name] == value}
        changed = {name: value for name, value in same.items() if name not in data or data[name] != value}
        gone = {name: None for name in data if name not in one[1]}
        data = one[1]
        then: Then = {"state": one[0][0] if len(one[0]) == 1 else list(one[0])}
        then |= {"data": changed | gone} if changed or gone else {}
        then |= {"transitions": [known.get(id, id) for id in one[2]]} | ({"done": True} if one[3] else {})
        steps.append(Step(when, then))
        taken += one[2]
    while steps and steps[-1].then and not steps[-1].then["transitions"]:
        steps.pop()
    if not steps:
        return None, []
    end = ", ".join(list_names((steps[-1].then or {})["state"]))
    name = f"Run {number}, to {end}"[:LONGEST_NAME]
    return Scenario(name, outline.id, first.run.given, tuple(steps)), taken


def _explain(state: StateOutline, transition: TransitionOutline, outline: Outline, graph: Graph) -> str:
    """Say why no run takes a transition, as far as the exploration tells."""
    if transition.id in graph.taken:
        return "it was taken once, and not again in the same way: it depends on chance or on the real time"
    reached = {
        above.name for node in graph.nodes.values() for leaf in node.configuration for above in outline.lineage(leaf)
    }
    limit = "" if graph.whole else f"; not decided: the search ended after {graph.steps} steps"
    if state.name not in reached:
        return f"{state.name} was never entered{limit}"
    guard = f"; its guard is {transition.guard_text}" if transition.guard_text else ""
    if transition.cause == "on":
        tried = sum(graph.tried[state.name, event] for event in _list_events(transition, state, graph))
        return f"its event was sent {tried} times in {state.name}, and it was not selected{guard}{limit}"
    if transition.cause in ("done", "error") and any(one.machine for one in state.invokes):
        return f"the machine that {state.name} invokes never ended that way{guard}{limit}"
    return f"it was not selected while {state.name} was active{guard}{limit}"


def _list_events(transition: TransitionOutline, state: StateOutline, graph: Graph) -> Iterator[str]:
    for name, event in list(graph.tried):
        if name == state.name and any(is_match(descriptor, event) for descriptor in transition.events):
            yield event


@dataclass(slots=True)
class Run:
    """One instance, created with ``data``, and what is done to it."""

    data: dict[str, Any]
    edges: list[Edge]

    @property
    def given(self) -> dict[str, Any]:
        return ({"data": self.data} if self.data else {}) | {"time": BEGIN}

    @property
    def whens(self) -> list[When]:
        return [edge.when for edge in self.edges]


def select_runs(graph: Graph, *, pairs: bool = False) -> list[Run]:
    """Select runs greedily: always on to the nearest goal from which most others can still be reached, and a new run
    where none is left ahead."""
    select = _list_pairs if pairs else _list_single
    goals = {
        goal
        for before in graph.nodes.values()
        for edge in before.edges
        for goal in _list_goals(graph, edge, select, pairs)
    }
    reach = _Reach(graph)
    runs: list[Run] = []
    while goals:
        run = _make_run(graph, goals, select, reach)
        if run is None:
            break
        runs.append(run)
    return runs


def _list_single(transitions: tuple[str, ...]) -> Iterator[Goal]:
    yield from transitions


def _list_pairs(transitions: tuple[str, ...]) -> Iterator[Goal]:
    yield from pairwise(transitions)


def _list_goals(graph: Graph, edge: Edge, select: Select, pairs: bool) -> Iterator[Goal]:
    """List what an edge takes; of pairs also with the edges after it."""
    yield from select(edge.transitions)
    if pairs and edge.transitions:
        for following in graph.nodes[edge.target].edges:
            if following.transitions:
                yield (edge.transitions[-1], following.transitions[0])


def _make_run(graph: Graph, goals: set[Goal], select: Select, reach: _Reach) -> Run | None:
    """Make a run from the start that reaches most; remove what it takes from the goals."""
    starts = sorted(graph.starts, key=lambda key: -len(reach.list_goals(key, goals)))
    for start in starts:
        edges: list[Edge] = []
        last = ""
        here = start
        while len(edges) < MOST_LENGTH:
            way = _find_way(graph, here, last, goals, select, reach)
            if way is None:
                break
            for edge in way:
                taken = ((last, *edge.transitions) if last else edge.transitions) if edge.transitions else ()
                goals -= set(_list_single(edge.transitions)) | set(_list_pairs(taken))
                last = edge.transitions[-1] if edge.transitions else last
                edges.append(edge)
            here = edges[-1].target
        if edges:
            return Run(graph.starts[start], edges)
    return None


def _find_way(graph: Graph, here: Key, last: str, goals: set[Goal], select: Select, reach: _Reach) -> list[Edge] | None:
    """Find the way to the goal after which most others are ahead; of equal ones the shortest."""
    best: tuple[int, int] | None = None
    chosen: list[Edge] | None = None
    ways: dict[tuple[Key, str], list[Edge]] = {(here, last): []}
    waiting = deque(ways)
    while waiting:
        key, previous = waiting.popleft()
        way = ways[key, previous]
        for edge in graph.nodes[key].edges:
            after = edge.transitions[-1] if edge.transitions else previous
            taken = (previous, *edge.transitions) if previous and edge.transitions else edge.transitions
            if any(goal in goals for goal in (*select(taken), *select(edge.transitions))):
                score = (len(reach.list_goals(edge.target, goals)), -len(way))
                if best is None or score > best:
                    best, chosen = score, [*way, edge]
            place = (edge.target, after if select is _list_pairs else "")
            if place not in ways:
                ways[place] = [*way, edge]
                waiting.append(place)
    return chosen


def find_shortest(graph: Graph, transition: str, most: int = 3) -> Iterator[Run]:
    """List the shortest runs that take a transition."""
    for start, data in graph.starts.items():
        steps = ((way, edge) for node, way in graph.walk([start]) for edge in node.edges)
        yield from islice((Run(data, [*way, edge]) for way, edge in steps if transition in edge.transitions), most)


class _Reach:
    """Tells which goals are ahead of a node."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._ahead: dict[Key, set[str]] = {}

    def list_goals(self, key: Key, goals: set[Goal]) -> set[Goal]:
        """List the goals ahead; a pair counts by its second transition."""
        if key not in self._ahead:
            edges = (edge for node, _ in self._graph.walk([key]) for edge in node.edges)
            self._ahead[key] = {transition for edge in edges for transition in edge.transitions}
        return {goal for goal in goals if (goal if isinstance(goal, str) else goal[1]) in self._ahead[key]}
