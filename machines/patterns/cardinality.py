"""Counts distinct members, such as users or devices, by day, week or month. Needs Redis and no Django.

    visitors = Cardinality(engine.client, "visitors", prefix=engine.keys.prefix)
    visitors.add("ann", "bob")                     # 2: both are new today
    visitors.add("ann", part="app")                # a part is counted for itself
    visitors.count("month")                        # Count(number=2, exact=True, error=0.0, ...)
    visitors.count("month", parts=["", "app"])     # the union: ann counts once
    visitors.series("day", 14)                     # fourteen of them, today last

Each UTC day has a HyperLogLog (12 KB at most, for any number of members), and also a set of its members until there are
more than ``exact``. A count is exact while all its days have sets with at most 10,000 members in all (in a series,
40,000 for its latest periods). Otherwise it comes from the sketches, and ``error`` is their relative standard error,
1.04 / sqrt(16384) = 0.81 %: two of three estimates are within it, and all but three in a thousand are within three
times it.

A week (ISO: from Monday) and a month are unions of their days. That adds no error: a sketch keeps for each of its 16384
registers the greatest value that any member hashed to, and the maximum over the days is exactly what one sketch of all
their members would hold. The same is true for parts. Counts of members that cannot overlap may be added up; their
errors then average out.

Each operation is one call, and members belong to sets: a member that is added twice, or sent again after a lost answer,
counts once, and concurrent callers lose nothing. It cannot list the members of a sketch, remove a member, or count new
members exactly once a day is counted by its sketch: ``add`` then returns the growth of the estimate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine.connection.client import Client
from machines.engine.errors import BadInput
from machines.engine.keys import PREFIX

from . import base
from .base import Pattern

MAX_MEMBERS = 1000  # of one call
MAX_PARTS = 8  # of one union
MAX_SET = 10_000  # members; a set of so many has some 600 KB
MAX_KEEP = 400  # days
MAX_DAYS = 372  # that one call reads
PERIODS = {"day": 1, "week": 7, "month": 31}
"""period -> days it has at most."""
ERROR = 0.0081
"""Relative standard error of a sketch."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of distinct members. ``error``: relative standard error, 0 for an exact count; ``begin``: ms at which
    the period begins, UTC."""

    number: int
    exact: bool
    error: float
    begin: int


class Cardinality(Pattern):
    """Distinct members by day. ``exact``: members up to which a day keeps a set, 0 for never; ``keep``: days that a
    day is kept after its end. Safe to share between threads and processes."""

    def __init__(self, redis: Client, name: str, *, prefix: str = PREFIX, exact: int = 1000, keep: int = 40) -> None:
        super().__init__(redis, prefix)
        self._root = self._keys.distinct(base.check_name(name, "the name of a count")).root
        self._exact = base.check_whole(exact, "exact", 0, MAX_SET)
        self._keep = base.check_whole(keep, "keep", 1, MAX_KEEP)

    def add(self, *members: str, part: str = "", now: int | None = None) -> int:
        """Add 1 to 1000 members; return how many were new today: exact while the day is, else the growth of the
        estimate.

        ``part``: a separate count below the same name, which unions may include.
        """
        if not 1 <= len(members) <= MAX_MEMBERS:
            raise BadInput(f"there are 1 to {MAX_MEMBERS} members, not {len(members)}", code="SB402")
        for member in members:
            base.check_key(member, "a member")
        words: tuple[str | int, ...] = (_part(part), self._exact, self._keep, base.check_now(now), *members)
        return int(self._ask("sb_distinct", self._root, *words)[1])

    def count(self, period: str = "day", *, parts: Sequence[str] = ("",), at: int | None = None) -> Count:
        """Count the members of the UTC day, ISO week or month that contains ``at`` (ms; now)."""
        return self.series(period, 1, parts=parts, at=at)[0]

    def series(self, period: str, n: int, *, parts: Sequence[str] = ("",), at: int | None = None) -> list[Count]:
        """Count the last ``n`` periods, ending with that of ``at``. Raises BadInput for more days than are kept."""
        if not isinstance(period, str) or period not in PERIODS:
            raise BadInput(f"a period is one of {', '.join(PERIODS)}, not {period!r:.80}", code="SB402")
        most = min(self._keep + 1, MAX_DAYS) // PERIODS[period]
        if most == 0:
            raise BadInput(f"days are kept for {self._keep} more; a {period} needs {PERIODS[period]}", code="SB402")
        base.check_whole(n, f"n, with days that are kept for {self._keep} more,", 1, most)
        reply = self._ask("sb_distinct_count", self._root, period, n, base.check_now(at), *_parts(parts))
        rows = zip(reply[1::3], reply[2::3], reply[3::3], strict=True)
        return [
            Count(int(number), exact == 1, 0.0 if exact == 1 else ERROR, int(begin)) for begin, number, exact in rows
        ]


def _part(value: Any) -> str:
    return "" if value == "" else base.check_key(value, "a part")


def _parts(values: Any) -> list[str]:
    if isinstance(values, str) or not isinstance(values, Sequence) or not 1 <= len(values) <= MAX_PARTS:
        raise BadInput(f"parts is a list of 1 to {MAX_PARTS} texts, not {values!r:.80}", code="SB402")
    return [_part(value) for value in values]
