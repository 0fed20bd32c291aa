"""Stores items, parts and result of a run: hashes in the partition of its instance.

Every write here may be said twice and then stands once: a page has the number of the call that added it and its own, a
part the number of its chunk. All keys expire by themselves should nobody remove the run.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any

from machines.engine import Engine
from machines.engine.errors import BadPayload
from machines.engine.storage import Storage

RUN, CHUNK = "map_reduce", "map_reduce_chunk"
"""The machines that it consists of."""
KEPT = 32 * 24 * 3600  # seconds after the last write: a little more than a run may wait in any state
KEPT_AFTER = 25 * 3600  # seconds after the end: a little more than the run itself is kept
ADDERS = "adders"  # fields of the index beside pages and adders
FROZEN = "frozen"
BATCH = 500  # pages removed in one command
PAGE_ITEMS = 1_000
PAGE_BYTES = 256 * 1024
MAX_ITEM = 1024 * 1024  # bytes of JSON
MAX_PART = 16 * 1024 * 1024  # bytes of JSON: what a map or a reduce gives is sent in one command
GROUP = 20  # items encoded at once: as many are held beside the page

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode  # ASCII: any text comes back as it was


class ItemsLost(Exception):
    """A page or a part is not there: it has expired, or was removed."""


class Store:
    def __init__(self, engine: Engine, run: str) -> None:
        self._storage = Storage(engine.client)
        self._run = run
        partition = self._storage.partition(engine.keys, RUN, run)
        self._pages, self._index = partition.pages(run), partition.index(run)
        self._parts, self._result = partition.parts(run), partition.result(run)

    # Items

    def adder(self) -> int:
        """Take a number for one call that adds items: its items come after those of lower numbers."""
        number, _ = self._write(("HINCRBY", self._index, ADDERS, 1), ("EXPIRE", self._index, KEPT))
        return int(number)

    def put(self, adder: int, number: int, page: Page) -> None:
        """Keep one page. It counts when its adder is complete."""
        name = f"{adder}:{number}"
        self._write(
            ("HSET", self._pages, name, page.text),
            ("HSET", self._index, name, page.count),
            ("EXPIRE", self._pages, KEPT),
            ("EXPIRE", self._index, KEPT),
        )

    def complete(self, adder: int, items: int) -> None:
        """Count all pages of this adder from now on."""
        self._write(("HSET", self._index, str(adder), items))

    def discard(self, adder: int, pages: int) -> None:
        """Discard the first ``pages`` pages of an adder that did not come to its end."""
        names = [f"{adder}:{number}" for number in range(pages)]
        for start in range(0, len(names), BATCH):
            some = names[start : start + BATCH]
            self._write(("HDEL", self._pages, *some), ("HDEL", self._index, *some))

    def freeze(self) -> Plan:
        """Freeze the input of the run at the first call: the pages of the adders that are complete."""
        index = self._read_index()
        if FROZEN not in index:
            adders = json.dumps(sorted(int(name) for name in index if name.isdecimal()))  # these came to their end
            self._write(("HSETNX", self._index, FROZEN, adders), ("EXPIRE", self._index, KEPT))
        return self.plan()

    def plan(self) -> Plan:
        """Return what was frozen. Raises ItemsLost."""
        index = self._read_index()
        if FROZEN not in index:
            raise ItemsLost(f"the items of run {self._run} are gone")
        return Plan(order_pages(index, json.loads(index[FROZEN])))

    def items(self, start: int, stop: int) -> Iterator[list[Any]]:
        """Yield the items from ``start`` to before ``stop``, page by page. Raises ItemsLost."""
        for cut in self.plan().cuts(start, stop):
            yield self._page(cut.page)[cut.start : cut.stop]

    def _page(self, name: str) -> list[Any]:
        text = self._storage.command("HGET", self._pages, name)
        if text is None:
            raise ItemsLost(f"page {name} of run {self._run} is gone")
        found: list[Any] = json.loads(text)
        return found

    # Parts and the result

    def put_part(self, chunk: int, part: str) -> None:
        self._write(("HSET", self._parts, chunk, part), ("EXPIRE", self._parts, KEPT))

    def parts(self, chunks: int) -> list[Any]:
        """Return what each chunk gave, in order. Raises ItemsLost."""
        return [self._part(chunk) for chunk in range(chunks)]

    def _part(self, chunk: int) -> Any:
        text = self._storage.command("HGET", self._parts, chunk)
        if text is None:
            raise ItemsLost(f"what chunk {chunk} of run {self._run} gave is gone")
        return json.loads(text)

    def put_result(self, result: str) -> None:
        """Keep the result; what led to it is not needed for long."""
        ends = [("EXPIRE", key, KEPT_AFTER) for key in (self._pages, self._index, self._parts)]
        self._write(("SET", self._result, result, "EX", KEPT_AFTER), *ends)

    def result(self) -> Any:
        """Return the result of a run. Raises ItemsLost."""
        text = self._storage.command("GET", self._result)
        if text is None:
            raise ItemsLost(f"the result of run {self._run} is gone")
        return json.loads(text)

    def remove(self) -> None:
        self._write(*[("UNLINK", key) for key in (self._pages, self._index, self._parts, self._result)])

    # Within

    def _read_index(self) -> dict[str, str]:
        return dict(self._storage.command("HGETALL", self._index))

    def _write(self, *commands: tuple[Any, ...]) -> list[Any]:
        """Run commands in one round trip and in their order; return what each answered."""
        return self._storage.commands([(command[1], command) for command in commands])


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
    pages = [(*map(int, name.split(":")), int(count)) for name, count in index.items() if ":" in name]
    return {f"{adder}:{page}": count for adder, page, count in sorted(pages) if adder in wanted}


def bounds(chunk: int, chunks: int, items: int) -> tuple[int, int]:
    """Return the items of one chunk: of ten items, three chunks have 3, 3 and 4."""
    return chunk * items // chunks, (chunk + 1) * items // chunks


@dataclass(frozen=True, slots=True)
class Page:
    """``text`` is a JSON list of ``count`` items."""

    text: str
    count: int


def split_pages(items: Iterable[Any]) -> Iterator[Page]:
    """Yield all items, in order. Holds no more than one page and the few items after it. Raises BadPayload."""
    held: list[str] = []
    count = size = 0
    for text, few in _pieces(items):
        if held and (count + few > PAGE_ITEMS or size + len(text) > PAGE_BYTES):
            yield Page(f"[{','.join(held)}]", count)
            held, count, size = [], 0, 0
        held.append(text)
        count += few
        size += len(text) + 1
    if held:
        yield Page(f"[{','.join(held)}]", count)


def encode(what: str, value: object, most: int = MAX_PART) -> str:
    """Encode ``value`` as JSON of at most so many bytes. Raises BadPayload."""
    try:
        text = _encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadPayload(f"{what} is not JSON: {error}") from error
    if len(text) > most:
        raise BadPayload(f"{what} has {len(text)} bytes of JSON; {most} are allowed", code="SB411")
    return text


def _pieces(items: Iterable[Any]) -> Iterator[tuple[str, int]]:
    """Yield a few items at a time, without brackets around them, and how many; large ones one by one."""
    source = iter(items)
    seen = 0
    while group := list(islice(source, GROUP)):
        text = _group(group)
        if text is not None and len(text) <= PAGE_BYTES:
            yield text, len(group)
        else:
            for number, item in enumerate(group, seen):
                yield encode(f"item {number}", item, MAX_ITEM), 1
        seen += len(group)


def _group(group: list[Any]) -> str | None:
    """Encode a group; None where there is an item that cannot be encoded."""
    try:
        return _encode(group)[1:-1]
    except (TypeError, ValueError, RecursionError):
        return None
