"""Merges the answers of partitions into one order, and says which partitions have to be asked for more.

Each partition is asked for its share of a page. What it answered is settled as far as every other partition was read;
the rest waits. Only partitions that could still come before the end of the page are asked again, for more at a time.
"""

from __future__ import annotations

import base64
import heapq
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, isfinite, sqrt
from typing import Any

from machines.engine.errors import BadInput

GROWTH = 4  # times as many rows as the time before


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


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row as its partition answered it. ``state``: of the index it was read from, "" for the index of a field."""

    position: Position
    state: str
    root: str
    id: str
    fields: Sequence[Any]


@dataclass(slots=True, eq=False)
class Place:
    """One index of one partition. ``position``: how far it was read; ``more``: whether it holds more; ``share``: how
    many rows to ask for; ``read``: whether it has answered; ``rows``: its rows that are not settled."""

    root: str
    state: str
    position: Position
    share: int
    more: bool = True
    read: bool = False
    rows: deque[RawRow] = field(default_factory=deque)


class PageMerge:
    """The rows of one page of at most ``size`` rows, in order over all places."""

    def __init__(self, places: Iterable[tuple[str, str]], position: Position, size: int, *, newest: bool) -> None:
        indexes = list(places)
        share = compute_share(size, len(indexes))
        self.places = [Place(root, state, position, share) for root, state in indexes]
        self._size = size
        self._newest = newest
        self._begun = False

    def choose_places(self, need: int) -> list[Place]:
        """List the places to ask next: those that may hold one of the next ``need`` rows. Empty where none has more."""
        if not self._begun:
            self._begun = True
            return list(self.places)
        waiting = list(self._merge())
        last = waiting[need - 1].position.order if len(waiting) >= need else None
        chosen = [p for p in self.places if p.more and (last is None or self._is_before(p.position.order, last))]
        for place in chosen:
            place.share = min(self._size, place.share * GROWTH)
        return chosen

    def drop(self, root: str) -> None:
        """Ask a partition no more: it does not answer."""
        for place in self.places:
            if place.root == root:
                place.more = False

    def take_settled(self) -> list[RawRow]:
        """Return, and drop, the rows before which no other row can come."""
        bound = self.bound
        last = None if bound is None else bound.order
        settled = [row for row in self._merge() if self._is_within(row, last)]
        for place in self.places:
            while place.rows and self._is_within(place.rows[0], last):
                place.rows.popleft()
        return settled

    @property
    def bound(self) -> Position | None:
        """Return how far every place was read; None where none has more."""
        stops = [place.position for place in self.places if place.more]
        return (max if self._newest else min)(stops, key=lambda stop: stop.order) if stops else None

    @property
    def over(self) -> bool:
        """Tell whether no row is left."""
        return not any(place.more or place.rows for place in self.places)

    def _merge(self) -> Iterator[RawRow]:
        rows = [place.rows for place in self.places if place.rows]
        return heapq.merge(*rows, key=lambda row: row.position.order, reverse=self._newest)

    def _is_before(self, one: tuple[Any, bytes], other: tuple[Any, bytes]) -> bool:
        return one > other if self._newest else one < other

    def _is_within(self, row: RawRow, last: tuple[Any, bytes] | None) -> bool:
        return last is None or not self._is_before(last, row.position.order)


def compute_share(size: int, places: int) -> int:
    """Return how many rows to ask each place for: its part, and a margin that few places exceed by chance."""
    if places <= 1:
        return size
    mean = size / places
    return min(size, ceil(mean + 2 * sqrt(mean)) + 2)
