"""Rates of queues as text (``100/s``, ``30/m``, ``5/10s``), and quantiles of histograms of durations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from . import limits

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_RATE = re.compile(r"(\d{1,7}) ?/ ?(\d{0,7})(ms|s|m|h|d)")
RATE_HINT = 'write "100/s", "30/m", "5/10s" or "5/s burst 20"'
_QUEUE_RATE = re.compile(r"(.*?)(?: burst (\d{1,7}))?")


class QueueRate(NamedTuple):
    """The rate of a queue or of a group: so many ``jobs`` in ``per`` ms; ``burst``: jobs that may be taken at once
    after a quiet time, 0 for those of 50 ms."""

    jobs: int
    per: int
    burst: int = 0

    @classmethod
    def parse(cls, text: str) -> QueueRate | None:
        """Read a rate with or without a burst; None when the text is none."""
        match = _QUEUE_RATE.fullmatch(text.strip())
        found = parse_rate(match[1]) if match else None
        if match is None or found is None or (match[2] and not 1 <= int(match[2]) <= limits.MAX_RATE):
            return None
        return cls(*found, int(match[2] or 0))

    @classmethod
    def decode(cls, text: str | None, partitions: int = 1) -> QueueRate | None:
        """Read the rate of one of several partitions as the engine stores it; None for no limit."""
        count, _, rest = (text or "").partition("/")
        per, _, burst = rest.partition("/")
        return cls(int(count), int(per) // partitions, int(burst or 0)) if per else None

    def encode(self, partitions: int = 1) -> str:
        """Write the rate of one of several partitions as the engine stores it."""
        return f"{self.jobs}/{self.per * partitions}" + (f"/{self.burst}" if self.burst else "")

    def __str__(self) -> str:
        return format_rate(self.jobs, self.per) + (f" burst {self.burst}" if self.burst else "")


def parse_rate(text: str) -> tuple[int, int] | None:
    """Return the count and the period in ms; None when the text is no rate."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        return None
    count, unit = int(match[1]), int(match[2] or 1) * UNITS[match[3]]
    fits = 1 <= count <= limits.MAX_RATE and 1 <= unit <= limits.MAX_RATE_UNIT
    return (count, unit) if fits else None


def format_rate(count: int, ms: int) -> str:
    """Return a rate as text, in the largest unit that fits."""
    number, unit = split_unit(ms)
    return f"{count}/{'' if number == 1 else number}{unit}"


def split_unit(ms: int) -> tuple[int, str]:
    """Return a duration in the largest unit that needs no fraction: ``(15, "m")``."""
    return next((ms // size, unit) for unit, size in reversed(UNITS.items()) if ms % size == 0)


def estimate_quantile(histogram: Mapping[int, int], share: float) -> float | None:
    """Estimate the ms below which the given share (0.5: half) of the counted durations lies; None for an empty
    histogram.

    Durations are counted by magnitude (0: below 1 ms, n: from 2**(n-1) ms to 2**n), so the result is right to a factor
    of two.
    """
    total = sum(histogram.values())
    if total == 0:
        return None
    wanted, below = share * total, 0
    for magnitude in sorted(histogram):
        inside = histogram[magnitude]
        if below + inside >= wanted:
            least = 0 if magnitude == 0 else 2 ** (magnitude - 1)
            return float(least + (2**magnitude - least) * max(0.0, wanted - below) / inside)
        below += inside
    return float(2 ** max(histogram))
