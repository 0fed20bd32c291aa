"""Which part of a drawing stands for what, and how the states are nested: plain JSON, for painters."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from machines.engine.definitions import Outline

from .layout.state_tree import Tree, fold
from .part_names import edge_id, queue_id, state_id
from .svg.drawing import marks_of


def index(outline: Outline, *, folds: Collection[str] = (), merged: bool = True) -> dict[str, Any]:
    """Index the parts of a diagram. ``states``, ``transitions`` and ``queues``: name -> id of its part. ``sums``: state
    -> the leaves whose counts add up to its own. ``parents``: state -> the state around it, or None. ``regions``:
    parallel state -> its regions. ``marks``: id of a mark -> the state it stands on, and those it tells of.

    Transitions that are drawn as one line have the same part: those between the same two states, unless the drawing is
    not ``merged``. Of a drawing with folds a state's part is that of the state it is folded into, and transitions
    inside of a folded state have none.
    """
    tree = Tree(outline)
    states = [state for state in outline.states if state.name in tree.summed]
    structure = {
        "sums": {name: list(leaves) for name, leaves in tree.summed.items()},
        "parents": {state.name: state.parent for state in states},
        "regions": {
            state.name: [child.name for child in tree.children(state) if tree.is_region(child)]
            for state in states
            if state.type == "parallel"
        },
    }
    return _list_parts(tree, folds, merged) | structure


def _list_parts(tree: Tree, folds: Collection[str], merged: bool) -> dict[str, dict[str, Any]]:
    small = fold(tree.outline, folds, merged=merged)
    ids = {state.name: state_id(state.index) for state in small.outline.states}
    drawn = [transition.id for state in small.outline.states for transition in state.transitions]
    return {
        "states": {name: ids[shown] for name, shown in small.shown.items() if name in tree.summed},
        "transitions": {member: edge_id(id) for id in drawn for member in small.members.get(id, (id,))},
        "queues": {queue: queue_id(queue) for queue in small.outline.queues},
    } | _marks(Tree(small.outline, tree.outline))


def _marks(tree: Tree) -> dict[str, dict[str, tuple[str, list[str]]]]:
    states = [state for state in tree.outline.states if state.type != "history"]
    return {"marks": {mark.id: (state.name, list(mark.states)) for state in states for mark in marks_of(tree, state)}}


def active(outline: Outline, configuration: Iterable[str]) -> list[str]:
    """Return every state that is active when these leaves are, from the outside in."""
    tree = Tree(outline)
    found = {name for leaf in configuration for name in tree.ancestors(leaf)}
    return [state.name for state in outline.states if state.name in found]


def list_changed_parts(index: Mapping[str, Any], parts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return id of a part -> "added", "removed", "renamed" or "changed".

    ``index``: that of the drawing, from ``index()``; ``parts``: ``old_parts`` or ``new_parts`` of a DefinitionDiff, for
    a drawing of that version. A part that stands for several things (of a drawing with folds) is "changed" unless
    all of them are the same.
    """
    found: dict[str, set[str]] = {}
    for kind in ("states", "transitions", "queues"):
        for name, id in index[kind].items():
            found.setdefault(id, set()).add(parts[kind].get(name, ""))
    marked = {id: verbs for id, verbs in found.items() if verbs != {""}}
    return {id: verbs.pop() if len(verbs) == 1 else "changed" for id, verbs in marked.items()}
