"""A machine's states with how many instances stand in each: the row of blocks, the tabs, the painted diagram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dashboard.pages.depths import Depth, depths_of
from dashboard.pages.plans import Plan
from machines.engine import Live

TABS = 24


@dataclass(frozen=True, slots=True)
class Block:
    """One state. ``oldest``: ms at which the one longest in it came. ``past``: only older versions have the state."""

    state: str
    count: int
    oldest: int | None = None
    final: bool = False
    description: str = ""
    past: bool = False


@dataclass(frozen=True, slots=True)
class Track:
    """``blocks``: as many as were asked for, the fullest when there are more; ``left_out`` counts the others."""

    plan: Plan
    blocks: list[Block]
    depths: list[Depth]
    total: int
    left_out: int = 0

    @property
    def name(self) -> str:
        return self.plan.machine

    @property
    def tabs(self) -> list[Block]:
        """What one can choose from at a glance: every state, or of very many those that hold instances."""
        return self.blocks if len(self.blocks) <= TABS else [block for block in self.blocks if block.count][:TABS]

    def block(self, state: str) -> Block | None:
        return next((block for block in self.blocks if block.state == state), None)


def track_of(plan: Plan, live: Live, *, shown: int | None = None) -> Track:
    blocks = list(_blocks(plan, live))
    total = sum(block.count for block in blocks)
    kept = _fullest(blocks, shown) if shown else blocks
    return Track(plan, kept, depths_of(plan.machine, live.queues), total, len(blocks) - len(kept))


def _blocks(plan: Plan, live: Live) -> Iterator[Block]:
    """The states in the order of the definition, then those that only instances of older versions still stand in."""
    known = set()
    for state in plan.outline.states:
        known.add(state.name)
        count, oldest = live.counts.get(state.name, 0), live.oldest.get(state.name)
        yield Block(state.name, count, oldest, state.type == "final", state.description)
    for name, count in live.counts.items():
        if name not in known:
            yield Block(name, count, live.oldest.get(name), past=True)


def _fullest(blocks: list[Block], shown: int) -> list[Block]:
    """The ``shown`` blocks with the most instances, still in the order of the definition."""
    if len(blocks) <= shown:
        return blocks
    kept = {id(block) for block in sorted(blocks, key=lambda block: -block.count)[:shown]}
    return [block for block in blocks if id(block) in kept]
