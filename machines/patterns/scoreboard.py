"""Ranks members by score, with ties: of all time, of a period, or with decay. Needs Redis and no Django.

    points = Scoreboard(engine.client, "points", prefix=engine.keys.prefix, period="day", keep=7)
    points.add("ann", 5)                   # Place(rank=1, member="ann", score=5.0, tied=False)
    points.add_many({"bob": 5, "cid": 1})
    points.top(3)                          # ann and bob share rank 1, cid has rank 3
    points.place("cid"), points.around("cid", 1)
    points.top(3, span=7)                  # the last seven days added up

Ranks are those of competitions: 1, 2, 2, 4. Members with the same score have a stable order, by their bytes, highest
first. Each operation is one call; points from concurrent callers are all counted. Scores stay between -2^53 and 2^53,
where whole numbers are exact; a score outside that range is refused with Overflow.

``period``: a board of its own for each UTC hour, day or week (from Monday), of which ``keep`` past ones are kept.
``half_life``: seconds after which points are worth half. The stored score is ``points * 2 ** (age of the board / half
life)``, so nothing has to be updated as time passes. Before a score exceeds a double, all scores are multiplied by one
power of two, which changes no digit. Two members therefore keep their order until one of them gets points, over any
time. What is left of points after a hundred half-lives may be dropped.

A board holds ``most`` members. When it is full, the lowest member is removed and its points are forgotten. As long as
no member gets negative points, no score is ever higher than the points that were given. But a new member of a full
board must beat the lowest with one call, so a member that earns its points in many small parts may never get on. So
make a board several times larger than the part that you show, and give it a period or a half-life, so that it fills
again. (Starting a new member with the lowest score, as counters of frequent items do, would find such members, but with
points that were never earned.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from machines.engine.connection.client import Client
from machines.engine.connection.replies import Status
from machines.engine.errors import BadInput
from machines.engine.keys import PREFIX
from machines.engine.pattern_keys import BoardKeys

from . import base
from .base import Overflow, Pattern

MAX_MOST = 10_000  # members of a board
MAX_AT_ONCE = 1000  # members of one call, places of one answer
MAX_SCORE = base.MAX_EXACT - 1  # the largest score: above it, whole numbers are not exact
MAX_AROUND = 500  # places on either side
MAX_KEEP = 400  # periods
MAX_UNION = 20_000  # members that are added up for several periods: some 20 ms
MAX_HALF_LIFE = 366 * 86_400  # s
PERIODS = ("hour", "day", "week")


@dataclass(frozen=True, slots=True)
class Place:
    """A place on a board. ``tied``: other members have the same score, and so the same rank."""

    rank: int
    member: str
    score: float
    tied: bool


class Scoreboard(Pattern):
    """One board, with ``half_life`` (seconds) or ``period`` or neither. Safe to share between threads and processes;
    all users of one board give the same options."""

    def __init__(
        self,
        redis: Client,
        name: str,
        *,
        prefix: str = PREFIX,
        most: int = 1000,
        half_life: float | None = None,
        period: str | None = None,
        keep: int = 0,
    ) -> None:
        super().__init__(redis, prefix)
        self._root = self._keys.board(base.check_name(name, "the name of a board")).root
        self._most = base.check_whole(most, "most", 1, MAX_MOST)
        self._keep = base.check_whole(keep, "keep", 0, MAX_KEEP)
        if period is not None and (half_life is not None or period not in PERIODS):
            raise BadInput(
                f"a period is one of {', '.join(PERIODS)}, and then nothing fades; not {period!r:.80}", code="SB402"
            )
        if keep and period is None:
            raise BadInput("keep is a number of past periods; this board has no periods", code="SB402")
        half = 0 if half_life is None else base.check_seconds(half_life, "half_life", least=1, most=MAX_HALF_LIFE)
        self._kind = (period or ("fade" if half else "all"), half, self._keep)

    def add(self, member: str, points: float, *, now: int | None = None) -> Place | None:
        """Add points, which may be negative; return the member's place, None where a full board has no room for it."""
        return self._change("add", {member: points}, now)[1]

    def add_many(self, points: Mapping[str, float], *, now: int | None = None) -> int:
        """Add points for 1 to 1000 members at once; return how many of them are on the board then."""
        return self._change("add", points, now)[0]

    def set(self, member: str, score: float, *, now: int | None = None) -> Place | None:
        """Set the score of a member; return its place as ``add`` does."""
        return self._change("set", {member: score}, now)[1]

    def set_many(self, scores: Mapping[str, float], *, now: int | None = None) -> int:
        return self._change("set", scores, now)[0]

    def remove(self, *members: str, now: int | None = None) -> int:
        """Remove members from the present period and all that are kept; return how many were on any board."""
        if not 1 <= len(members) <= MAX_AT_ONCE:
            raise BadInput(f"there are 1 to {MAX_AT_ONCE} members, not {len(members)}", code="SB402")
        given = [base.check_key(member, "a member") for member in members]
        return int(self._ask("sb_board", self._root, *self._kind, base.check_now(now), "remove", self._most, *given)[1])

    def reset(self, *, now: int | None = None) -> int:
        """Empty the present period and all that are kept; return how many places there were."""
        return int(self._ask("sb_board", self._root, *self._kind, base.check_now(now), "reset", self._most)[1])

    def top(self, n: int = 10, *, span: int = 1, at: int | None = None) -> list[Place]:
        """Return the first ``n`` places, 1 to 1000. ``span``: number of periods added up, ending with that of ``at``
        (ms; now)."""
        count = base.check_whole(n, "n", 1, MAX_AT_ONCE)
        if self._kind[0] != "all":
            return self._read("top", count, "", span, at)
        self._check_span(span)
        base.check_now(at)
        scores = BoardKeys(self._root).scores("all")
        return _rank(self._caller.raw("ZREVRANGE", scores, 0, count, "WITHSCORES"), count)

    def place(self, member: str, *, span: int = 1, at: int | None = None) -> Place | None:
        """Return the place of a member, None where it is not on the board."""
        found = self._read("around", 0, base.check_key(member, "a member"), span, at)
        return found[0] if found else None

    def around(self, member: str, n: int = 5, *, span: int = 1, at: int | None = None) -> list[Place]:
        """Return the member with ``n`` places before and behind it, 0 to 500; empty where it is not on the board."""
        count = base.check_whole(n, "n", 0, MAX_AROUND)
        return self._read("around", count, base.check_key(member, "a member"), span, at)

    def _change(self, what: str, scores: Mapping[str, float], now: int | None) -> tuple[int, Place | None]:
        pairs = _pairs(scores)
        words: tuple[str | int, ...] = (*self._kind, base.check_now(now), what, self._most, *pairs)
        reply = self._ask("sb_board", self._root, *words, also=(Status.BAD_ARGUMENT,))
        if reply[0] == Status.BAD_ARGUMENT:
            raise Overflow(str(reply[1])) if reply[2:] == ["overflow"] else BadInput(str(reply[1]))
        place = Place(int(reply[2]), pairs[0], float(reply[3]), reply[4] == 1) if len(reply) > 2 else None
        return int(reply[1]), place

    def _check_span(self, span: int) -> None:
        base.check_whole(span, f"span, of a board that keeps {self._keep} past periods,", 1, self._keep + 1)

    def _read(self, what: str, count: int, member: str, span: int, at: int | None) -> list[Place]:
        self._check_span(span)
        if span * self._most > MAX_UNION and span > 1:
            raise BadInput(
                f"{span} periods of {self._most} members are more than the {MAX_UNION} that are added up", code="SB402"
            )
        words = (*self._kind, base.check_now(at), what, count, span, member)
        reply = self._ask("sb_ranks", self._root, *words)
        rows = zip(reply[1::4], reply[2::4], reply[3::4], reply[4::4], strict=True)
        return [Place(int(rank), str(name), float(score), tied == 1) for rank, name, score, tied in rows]


def _rank(found: list[Any], count: int) -> list[Place]:
    """Return the first ``count`` of what a sorted set holds, highest first, of which one more is given where there is
    one."""
    flat = found if not found or isinstance(found[0], str) else [word for row in found for word in row]  # RESP 2, 3
    members, scores = flat[::2], [float(score) for score in flat[1::2]]
    places: list[Place] = []
    rank = 0
    for at, (member, score) in enumerate(zip(members[:count], scores[:count], strict=True)):
        new = at == 0 or score != scores[at - 1]
        rank = at + 1 if new else rank
        tied = not new or (at + 1 < len(scores) and scores[at + 1] == score)
        places.append(Place(rank, str(member), score, tied))
    return places


def _pairs(scores: Any) -> list[str]:
    if not isinstance(scores, Mapping) or not 1 <= len(scores) <= MAX_AT_ONCE:
        raise BadInput(f"there are 1 to {MAX_AT_ONCE} members, each with its points", code="SB402")
    found: list[str] = []
    for member, points in scores.items():
        score = base.check_number(points, "a score", -MAX_SCORE, MAX_SCORE)
        found += [base.check_key(member, "a member"), repr(score)]
    return found
