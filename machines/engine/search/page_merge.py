"""Merges the answers of partitions into one order, and says which partitions have to be asked for more.

Each partition is asked for its share of a page. What it answered is settled as far as every other partition was read;
the rest waits. Only partitions that could still come before the end of the page are asked again, for more at a time.
The records that searches return are here as well.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, isfinite, sqrt
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from machines.engine.errors import BadInput
from machines.engine.records import Instance, PlainRecord

if TYPE_CHECKING:
    from machines.engine.engine import Engine


GROWTH = 4  # times as many rows as the time before


@dataclass(frozen=True, slots=True)
class Page:
    """A page of instances. ``cursor`` continues after the last instance; None on the last page. ``start`` is a
    cursor at the first instance: in reverse order it continues with the page before; None where the page is empty.
    ``missing``: roots of partitions that did not answer, whose instances are not on the page. ``looked``: where
    instances had to be compared, how many this page looked at; else 0."""

    instances: list[Instance]
    cursor: str | None
    start: str | None = None
    missing: tuple[str, ...] = ()
    looked: int = 0

    def __iter__(self) -> Any:
        return iter(self.instances)

    def __len__(self) -> int:
        return len(self.instances)


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of instances that a search finds: ``counts`` by leaf state, an instance in several regions in each
    of its leaves; ``total`` counts it once. Without ``complete`` the figures are lower bounds; so they are where
    partitions are ``missing``: their roots, which did not answer."""

    counts: dict[str, int]
    total: int
    complete: bool = True
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem(PlainRecord):
    """A current problem of an instance. ``cause``: a dead job's id, or the key of a timer whose step failed; its
    ``kind`` is then "timer". ``text`` is cut to 200 bytes."""

    cause: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """Indexes of ``fields`` that do not yet hold all instances. ``done`` of ``total`` instances were looked at;
    ``total`` is 0 before any process has begun."""

    fields: list[str]
    done: int
    total: int

    @property
    def percent(self) -> int:
        """Return the progress in percent, 99 at most."""
        return min(99, 100 * self.done // self.total) if self.total else 0


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page ended: the score as Redis wrote it, and the id; in the index of a field (``by``) the position
    there."""

    score: str = ""
    id: str = ""
    by: str = ""

    def encode(self) -> str:
        text = json.dumps([self.score, self.id, *([self.by] if self.by else [])], ensure_ascii=False)
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @property
    def order(self) -> tuple[Any, bytes]:
        return (self.score, b"") if self.by else (float(self.score), self.id.encode())

    @classmethod
    def decode(cls, cursor: str | None) -> Position:
        if not cursor:
            return cls()
        try:
            score, id, *by = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
            if not (_is_index_position(score, *by) if by else isfinite(float(score))):
                raise ValueError(score)
            return cls(str(score), str(id), *by)
        except (ValueError, TypeError, RecursionError) as error:
            raise build_cursor_error() from error


def _is_index_position(position: Any, by: Any) -> bool:
    return isinstance(by, str) and isinstance(position, str) and re.fullmatch("(?:[0-9a-f]{2})+", position) is not None


def build_cursor_error() -> BadInput:
    return BadInput("that cursor was not made by find(); begin without one", code="SB405")


BEGINNING = Position()


class RawRow(NamedTuple):
    """A row as its partition answered it. ``rank``: the order of its position, and of its place among equal ones."""

    rank: tuple[tuple[Any, bytes], int]
    place: Place
    score: str
    id: str
    fields: Sequence[Any]


@dataclass(slots=True, eq=False)
class Place:
    """One index of one partition. ``state``: "" for the index of a field; ``position``: how far it was read; ``more``:
    whether it holds more; ``share``: how many rows to ask for; ``read``: whether it has answered."""

    number: int
    root: str
    state: str
    position: Position
    share: int
    more: bool = True
    read: bool = False


class PageMerge:
    """The rows of one page of at most ``size`` rows, in order over all places. ``by``: the field whose index is read,
    "" for the indexes of states."""

    def __init__(
        self, places: Iterable[tuple[str, str]], position: Position, size: int, *, newest: bool, by: str = ""
    ) -> None:
        indexes = list(places)
        share = compute_share(size, len(indexes))
        self.places = [Place(number, root, state, position, share) for number, (root, state) in enumerate(indexes)]
        self.by = by
        self._size = size
        self._newest = newest
        self._begun = False
        self._rows: list[RawRow] = []  # not settled, in order

    def choose_places(self, need: int) -> list[Place]:
        """List the places to ask next: those that may hold one of the next ``need`` rows."""
        if not self._begun:
            self._begun = True
            return list(self.places)
        last = self._rows[need - 1].rank[0] if len(self._rows) >= need else None
        chosen = [p for p in self.places if p.more and (last is None or self._is_before(p.position.order, last))]
        for place in chosen:
            place.share = min(self._size, place.share * GROWTH)
        return chosen

    def add(self, place: Place, reply: Sequence[Any]) -> None:
        """Add what ``sb_find`` or ``sb_lookup`` answered for a place; ``sort`` follows."""
        place.read = True
        place.more = reply[1] != ""
        if place.more:
            place.position = Position(str(reply[1]), str(reply[2]), self.by)
        among = -place.number if self._newest else place.number
        for id, score, fields in zip(reply[3::3], reply[4::3], reply[5::3], strict=True):
            order = (score, b"") if self.by else (float(score), id.encode())
            self._rows.append(RawRow((order, among), place, str(score), id, fields))

    def sort(self) -> None:
        """Put the rows in order, after all answers of a round were added."""
        self._rows.sort(key=itemgetter(0), reverse=self._newest)

    def drop(self, root: str) -> None:
        """Ask a partition no more: it does not answer."""
        for place in self.places:
            if place.root == root:
                place.more = False

    def take_settled(self, need: int) -> list[RawRow]:
        """Return, and drop, the first rows before which no other row can come, at most ``need``."""
        if not self._rows:
            return []
        bound = self.bound
        last = None if bound is None else bound.order
        count = 0
        for row in self._rows[:need]:
            if last is not None and self._is_before(last, row.rank[0]):
                break
            count += 1
        settled, self._rows = self._rows[:count], self._rows[count:]
        return settled

    @property
    def bound(self) -> Position | None:
        """Return how far every place was read; None where none has more."""
        stops = [place.position for place in self.places if place.more]
        return (max if self._newest else min)(stops, key=lambda stop: stop.order) if stops else None

    @property
    def over(self) -> bool:
        """Tell whether no row is left."""
        return not self._rows and not any(place.more for place in self.places)

    def _is_before(self, one: tuple[Any, bytes], other: tuple[Any, bytes]) -> bool:
        return one > other if self._newest else one < other


def compute_share(size: int, places: int) -> int:
    """Return how many rows to ask each place for: its part, and a margin that few places exceed by chance."""
    if places <= 1:
        return size
    mean = size / places
    return min(size, ceil(mean + 2 * sqrt(mean)))


def find_pages(engine: Engine, machine: str, **terms: Any) -> Iterator[Page]:
    """Find instances by the terms of ``Engine.find``; yield every page, at least one."""
    page = engine.find(machine, **terms)
    yield page
    while page.cursor is not None:
        page = engine.find(machine, cursor=page.cursor, **terms)
        yield page
