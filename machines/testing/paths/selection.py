"""Selects few runs through an explored graph that together take every transition, or every pair of following ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from machines.testing.scenarios.document import When

from .explorer import Edge, Graph, Key

Goal = str | tuple[str, str]
MOST_LENGTH = 60  # steps of one run: longer ones are hard to read


@dataclass(slots=True)
class Run:
    """One instance, created with ``data``, and what is done to it."""

    data: dict[str, Any]
    edges: list[Edge]

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


Select = Callable[[tuple[str, ...]], Iterator[Goal]]


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
    before: dict[tuple[Key, str], tuple[tuple[Key, str], Edge] | None] = {(here, last): None}
    waiting = deque([((here, last), 0)])
    while waiting:
        (key, previous), length = waiting.popleft()
        for edge in graph.nodes[key].edges:
            after = edge.transitions[-1] if edge.transitions else previous
            taken = (previous, *edge.transitions) if previous and edge.transitions else edge.transitions
            if any(goal in goals for goal in (*select(taken), *select(edge.transitions))):
                score = (len(reach.list_goals(edge.target, goals)), -length)
                if best is None or score > best:
                    best, chosen = score, [*_walk_back(before, (key, previous)), edge]
            place = (edge.target, after if select is _list_pairs else "")
            if place not in before:
                before[place] = ((key, previous), edge)
                waiting.append((place, length + 1))
    return chosen


def _walk_back(before: Any, place: tuple[Key, str]) -> list[Edge]:
    found: list[Edge] = []
    while (step := before[place]) is not None:
        place, edge = step
        found.append(edge)
    return list(reversed(found))


def find_shortest(graph: Graph, transition: str, most: int = 3) -> Iterator[Run]:
    """List the shortest runs that take a transition."""
    for start, data in graph.starts.items():
        before: dict[tuple[Key, str], Any] = {(start, ""): None}
        waiting = deque([start])
        found = 0
        while waiting and found < most:
            key = waiting.popleft()
            for edge in graph.nodes[key].edges:
                if transition in edge.transitions and found < most:
                    found += 1
                    yield Run(data, [*_walk_back(before, (key, "")), edge])
                if (edge.target, "") not in before:
                    before[edge.target, ""] = ((key, ""), edge)
                    waiting.append(edge.target)


class _Reach:
    """Tells which nodes can be reached from a node, and so which goals are ahead."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: dict[Key, set[Key]] = {}

    def list_goals(self, key: Key, goals: set[Goal]) -> set[Goal]:
        """List the goals ahead; a pair counts by its second transition."""
        if key not in self._nodes:
            self._nodes[key] = self._walk(key)
        ahead = {
            transition
            for node in self._nodes[key]
            for edge in self._graph.nodes[node].edges
            for transition in edge.transitions
        }
        return {goal for goal in goals if (goal if isinstance(goal, str) else goal[1]) in ahead}

    def _walk(self, key: Key) -> set[Key]:
        seen, waiting = {key}, [key]
        while waiting:
            for edge in self._graph.nodes[waiting.pop()].edges:
                if edge.target not in seen:
                    seen.add(edge.target)
                    waiting.append(edge.target)
        return seen
