"""Counts the instances in each state of a machine, for the row of states, the tabs and the diagram."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from machines.engine import Live, Tally
from machines.engine.definitions import Outline, StateOutline

from ..diagrams.version_view import VersionView
from .queue_depths import Depth, read_depths

TABS = 24


@dataclass(frozen=True, slots=True)
class StateCount:
    """Holds one state. ``oldest``: ms at which the oldest instance entered it, None for a compound state.

    ``past``: only other versions have the state as a leaf. ``leaves``: those whose counts add up to a compound state's.
    ``depth``: of nesting. ``sla``: ms an instance should be in it at most, 0 for none.
    """

    state: str
    count: int
    oldest: int | None = None
    final: bool = False
    description: str = ""
    past: bool = False
    leaves: tuple[str, ...] = ()
    depth: int = 0
    sla: int = 0

    @property
    def steps_in(self) -> range:
        return range(self.depth)

    @property
    def leaves_json(self) -> str:
        """Return the leaves for the page's script."""
        return json.dumps(self.leaves, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class StateCounts:
    """Holds the states of a machine.

    ``blocks``: every state. ``shown``: those of the top level, up to a number the fullest; ``left_out`` counts the
    others. ``overdue``: overdue timers. ``partial``: the counts are lower bounds.
    """

    view: VersionView
    blocks: list[StateCount]
    shown: list[StateCount]
    depths: list[Depth]
    total: int
    left_out: int = 0
    overdue: int = 0
    partial: bool = False

    @property
    def name(self) -> str:
        return self.view.machine

    def tabs(self, chosen: str | None = None) -> list[StateCount]:
        """List the states to choose from: those of the top level, of very many those with instances; and the chosen
        one.
        """
        found = self.shown if len(self.shown) <= TABS else [block for block in self.shown if block.count][:TABS]
        block = self.block(chosen) if chosen else None
        return found if block is None or block in found else [*found, block]

    def block(self, state: str) -> StateCount | None:
        return next((block for block in self.blocks if block.state == state), None)


def narrow(live: Live, tally: Tally | None) -> Live:
    """Replace the counts by those of a filter. The oldest instance of each state is then unknown."""
    return live if tally is None else replace(live, counts=tally.counts, total=tally.total, oldest={})


def count_states(
    view: VersionView, live: Live, *, shown: int | None = None, partial: bool = False, named: str | None = None
) -> StateCounts:
    """Count the instances in each state. ``named``: a state that is listed even where only other versions have it and
    no instance is in it."""
    blocks = list(_count_blocks(view, live, named))
    names = {state.name for state in _list_top_states(view.outline)}
    top = [block for block in blocks if block.past or block.state in names]
    kept = _select_fullest(top, shown) if shown else top
    depths = read_depths(view.machine, live.queues)
    return StateCounts(view, blocks, kept, depths, live.total, len(top) - len(kept), live.overdue, partial)


def _list_top_states(outline: Outline) -> list[StateOutline]:
    """List the states of the top level, whose counts add up to the total; of a parallel machine, its leaves."""
    root = outline.state(outline.root) if outline.root else None
    if root is not None and root.type == "parallel":
        return [state for state in outline.states if state.is_leaf]
    return [state for state in outline.states if state.parent == outline.root and state is not root]


def _count_blocks(view: VersionView, live: Live, named: str | None) -> Iterator[StateCount]:
    """Yield the states in the order of the definition, then those of other versions that have instances."""
    outline, sums = view.outline, view.index["sums"]
    counts = outline.sum_counts(live.counts)
    lift = 1 if outline.root else 0
    for state in outline.states:
        if state.name in sums and state.name != outline.root:
            leaves = () if state.is_leaf else tuple(sums[state.name])
            yield StateCount(
                state.name, counts[state.name], live.oldest.get(state.name), state.type == "final", state.description,
                leaves=leaves, depth=state.depth - lift, sla=state.sla,
            )  # fmt: skip
    for name, count in live.counts.items():
        if name not in outline.leaves and (count or name == named):
            yield StateCount(name, count, live.oldest.get(name), past=True)


def _select_fullest(blocks: list[StateCount], shown: int) -> list[StateCount]:
    """Return the ``shown`` states with the most instances, in the order of the definition."""
    if len(blocks) <= shown:
        return blocks
    kept = {id(block) for block in sorted(blocks, key=lambda block: -block.count)[:shown]}
    return [block for block in blocks if id(block) in kept]
