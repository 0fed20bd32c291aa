"""Every line of a diagram: what it runs between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .names import edge_id, feeds_id, queue_id, start_id, state_id
from .tree import Tree

if TYPE_CHECKING:
    from machines.engine.definitions import StateOutline, TransitionOutline

Level = str | None
"""What is laid out by itself: the inside of the state with this name, or of None the whole."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One line from node to node. ``kind``: start, default (of history), feeds or transition.

    Of a transition with several targets only the first line is labelled.
    """

    id: str
    kind: str
    source: StateOutline | None
    tail: str
    head: str
    transition: TransitionOutline | None = None
    queue: str = ""
    labelled: bool = False


def wires(tree: Tree) -> list[Wire]:
    """In the order they are drawn."""
    return [*_starts(tree), *_feeds(tree), *_transitions(tree)]


def homes(tree: Tree) -> dict[str, Level]:
    """Node -> the level it stands in. A queue stands where the first state does that feeds it."""
    found: dict[str, Level] = {start_id(): None} if has_start(tree) else {}
    for state in tree.outline.states:
        found[state_id(state.index)] = state.parent
        if tree.is_cluster(state) and state.type != "parallel":
            found[start_id(state.index)] = state.name
    for state, queue in feeds(tree):
        found.setdefault(queue_id(queue), state.parent)
    return found


def has_start(tree: Tree) -> bool:
    """Whether a mark shows where the machine starts; where it is a state itself, that is the one inside."""
    return tree.first is not None and tree.outline.root is None


def feeds(tree: Tree) -> list[tuple[StateOutline, str]]:
    """Which states put work on which queues, in document order, each pair once."""
    known = set(tree.outline.queues)
    pairs = [(state, queue) for state in tree.outline.states for queue in _queues_of(state) if queue in known]
    return list({(state.index, queue): (state, queue) for state, queue in pairs}.values())


def _queues_of(state: StateOutline) -> list[str]:
    return [*(invoke.queue for invoke in state.invokes), *state.enqueues]


def _starts(tree: Tree) -> Iterator[Wire]:
    if tree.first is not None and has_start(tree):
        yield Wire(edge_id(start_id()), "start", None, start_id(), state_id(tree.first.index))
    for state in tree.outline.states:
        history = state.type == "history"
        if not history and (state.type == "parallel" or not tree.is_cluster(state)):
            continue
        tail = state_id(state.index) if history else start_id(state.index)
        for place, target in enumerate(tree.found(state.initial)):
            id = edge_id(start_id(state.index), place)
            yield Wire(id, "default" if history else "start", state, tail, state_id(target.index))


def _feeds(tree: Tree) -> Iterator[Wire]:
    for state, queue in feeds(tree):
        id = feeds_id(state.index, queue)
        yield Wire(id, "feeds", state, state_id(state.index), queue_id(queue), queue=queue)


def _transitions(tree: Tree) -> Iterator[Wire]:
    for state in tree.outline.states:
        for transition in state.transitions:
            for place, target in enumerate(tree.found(transition.targets) or [state]):
                ends = state_id(state.index), state_id(target.index)
                yield Wire(edge_id(transition.id, place), "transition", state, *ends, transition, labelled=not place)
