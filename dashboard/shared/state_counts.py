"""A machine's states with how many instances stand in each: the row of blocks, the tabs, the painted diagram."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from machines.engine import Live, Tally
from machines.engine.definitions import Outline, StateOutline

from .queue_depths import Depth, depths_of
from .version_view import VersionView

TABS = 24


@dataclass(frozen=True, slots=True)
class StateCount:
    """One state. ``oldest``: ms at which the one longest in it came; of a state with states in it nobody knows.

    ``past``: only older versions have the state. ``leaves``: those whose counts add up to its own, where it is none
    itself. ``depth``: how many states it stands in. ``sla``: ms an instance should be in it at most, 0 where nothing is
    said.
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
        """As the page's script takes them."""
        return json.dumps(self.leaves, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class StateCounts:
    """``blocks``: every state. ``shown``: those of the top level, as many as were asked for, the fullest when there are
    more; ``left_out`` counts the others. ``overdue``: timers that should have fired. ``partial``: there are at least as
    many instances as the counts say."""

    plan: VersionView
    blocks: list[StateCount]
    shown: list[StateCount]
    depths: list[Depth]
    total: int
    left_out: int = 0
    overdue: int = 0
    partial: bool = False

    @property
    def name(self) -> str:
        return self.plan.machine

    def tabs(self, chosen: str | None = None) -> list[StateCount]:
        """What one can choose from at a glance: every state of the top level, or of very many those that hold
        instances; and the chosen one, wherever it stands."""
        found = self.shown if len(self.shown) <= TABS else [block for block in self.shown if block.count][:TABS]
        block = self.block(chosen) if chosen else None
        return found if block is None or block in found else [*found, block]

    def block(self, state: str) -> StateCount | None:
        return next((block for block in self.blocks if block.state == state), None)


def narrow(live: Live, tally: Tally | None) -> Live:
    """The same with the figures of a search in place of all; when each state's oldest came is then not known."""
    return live if tally is None else replace(live, counts=tally.counts, total=tally.total, oldest={})


def count_states(plan: VersionView, live: Live, *, shown: int | None = None, partial: bool = False) -> StateCounts:
    blocks = list(_blocks(plan, live))
    names = {state.name for state in _level(plan.outline)}
    top = [block for block in blocks if block.past or block.state in names]
    kept = _fullest(top, shown) if shown else top
    depths = depths_of(plan.machine, live.queues)
    return StateCounts(plan, blocks, kept, depths, live.total, len(top) - len(kept), live.overdue, partial)


def _level(outline: Outline) -> list[StateOutline]:
    """The states at the top, whose counts add up to the total; of a machine that is parallel itself, its leaves."""
    root = outline.state(outline.root) if outline.root else None
    if root is not None and root.type == "parallel":
        return [state for state in outline.states if state.is_leaf]
    return [state for state in outline.states if state.parent == outline.root and state is not root]


def _blocks(plan: VersionView, live: Live) -> Iterator[StateCount]:
    """The states in the order of the definition, then those that only instances of older versions still stand in."""
    outline, sums = plan.outline, plan.index["sums"]
    counts = outline.counted(live.counts)
    lift = 1 if outline.root else 0
    for state in outline.states:
        if state.name in sums and state.name != outline.root:
            leaves = () if state.is_leaf else tuple(sums[state.name])
            yield StateCount(
                state.name, counts[state.name], live.oldest.get(state.name), state.type == "final", state.description,
                leaves=leaves, depth=state.depth - lift, sla=state.sla,
            )  # fmt: skip
    for name, count in live.counts.items():
        if name not in counts or name not in outline.leaves:
            yield StateCount(name, count, live.oldest.get(name), past=True)


def _fullest(blocks: list[StateCount], shown: int) -> list[StateCount]:
    """The ``shown`` blocks with the most instances, still in the order of the definition."""
    if len(blocks) <= shown:
        return blocks
    kept = {id(block) for block in sorted(blocks, key=lambda block: -block.count)[:shown]}
    return [block for block in blocks if id(block) in kept]
