"""Computes which items a chunk has, and on which pages they are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Cut:
    """The items of one page that are wanted: those from ``start`` to before ``stop``."""

    page: str
    start: int
    stop: int


class Plan:
    """The pages of a run in order. ``ends`` says for each page how many items there are up to its end."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._pages = list(sizes)
        self._ends = list(accumulate(sizes.values()))

    @property
    def items(self) -> int:
        return self._ends[-1] if self._ends else 0

    def cuts(self, start: int, stop: int) -> Iterator[Cut]:
        """Yield what to read for the items from ``start`` to before ``stop``."""
        at = bisect_right(self._ends, start)
        while start < stop:
            begins = self._ends[at - 1] if at else 0
            ends = min(self._ends[at], stop)
            yield Cut(self._pages[at], start - begins, ends - begins)
            start = ends
            at += 1


def order_pages(index: Mapping[str, str], adders: Iterable[int]) -> dict[str, int]:
    """Order the pages of an index (``<adder>:<page>`` -> items) that are of these adders."""
    wanted = set(adders)
    found = []
    for name, count in index.items():
        adder, colon, page = name.partition(":")
        if colon and int(adder) in wanted:
            found.append((int(adder), int(page), int(count)))
    return {f"{adder}:{page}": count for adder, page, count in sorted(found)}


def complete(index: Mapping[str, str]) -> list[int]:
    """Return the adders that came to their end: they have a field of their own."""
    return sorted(int(name) for name in index if name.isdecimal())


def bounds(chunk: int, chunks: int, items: int) -> tuple[int, int]:
    """Return the items of one chunk: of ten items, three chunks have 3, 3 and 4."""
    return chunk * items // chunks, (chunk + 1) * items // chunks
