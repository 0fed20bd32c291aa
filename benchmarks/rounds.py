"""Interleaved rounds: every contender runs in every round, so that a busy moment of the machine hits all alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Measured:
    """Operations a second, one figure for each round."""

    name: str
    rates: tuple[float, ...]

    @property
    def rate(self) -> float:
        return median(self.rates)

    def against(self, peer: Measured) -> float:
        """The median of the rounds' own ratios."""
        return median(mine / theirs for mine, theirs in zip(self.rates, peer.rates, strict=True))


def interleave(rounds: int, contenders: Mapping[str, Callable[[], float]]) -> dict[str, Measured]:
    """Runs each contender once a round, every other round in reverse order."""
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        order = list(contenders)
        for name in reversed(order) if number % 2 else order:
            rates[name].append(contenders[name]())
    return {name: Measured(name, tuple(found)) for name, found in rates.items()}
