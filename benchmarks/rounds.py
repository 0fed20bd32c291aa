"""Interleaved rounds: every contender runs in every round, so that a busy moment of the machine hits all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from .report import Row


@dataclass(frozen=True, slots=True)
class Measured:
    """Operations a second, or whatever a contender measures: what it answered in each round."""

    name: str
    rates: tuple[Any, ...]

    @property
    def rate(self) -> float:
        return median(self.rates)

    def against(self, peer: Measured) -> float:
        """The median of the rounds' own ratios."""
        return median(mine / theirs for mine, theirs in zip(self.rates, peer.rates, strict=True))


def interleave(rounds: int, contenders: Mapping[str, Callable[[], Any]]) -> dict[str, Measured]:
    """Runs each contender once a round, every other round in reverse order."""
    rates: dict[str, list[Any]] = {name: [] for name in contenders}
    for number in range(rounds):
        order = list(contenders)
        for name in reversed(order) if number % 2 else order:
            rates[name].append(contenders[name]())
    return {name: Measured(name, tuple(found)) for name, found in rates.items()}


def compare(found: Mapping[str, Measured], peers: Mapping[str, Sequence[str]], titles: Mapping[str, str]) -> list[Row]:
    """Return a row for each contender, with its ratio to each of its peers. ``titles``: of those with a short name."""
    rows = []
    for name, mine in found.items():
        ratios = {peer: mine.against(found[peer]) for peer in peers.get(name, ())}
        rows.append(Row(titles.get(name, name), mine.rate, ratios))
    return rows
