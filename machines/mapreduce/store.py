"""Stores items, parts and result of a run: hashes in the partition of its instance.

Every write here may be said twice and then stands once: a page has the number of the call that added it and its own, a
part the number of its chunk. All keys expire by themselves should nobody remove the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from machines.engine import Engine
from machines.engine.storage import Storage

from . import plan
from .pages import Page

RUN, CHUNK = "map_reduce", "map_reduce_chunk"
"""The machines that it consists of."""
KEPT = 32 * 24 * 3600  # seconds after the last write: a little more than a run may wait in any state
KEPT_AFTER = 25 * 3600  # seconds after the end: a little more than the run itself is kept
ADDERS = "adders"  # fields of the index beside pages and adders
FROZEN = "frozen"
BATCH = 500  # pages removed in one command


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

    def freeze(self) -> plan.Plan:
        """Freeze the input of the run at the first call: the pages of the adders that are complete."""
        index = self._read_index()
        if FROZEN not in index:
            adders = json.dumps(plan.complete(index))
            self._write(("HSETNX", self._index, FROZEN, adders), ("EXPIRE", self._index, KEPT))
        return self.plan()

    def plan(self) -> plan.Plan:
        """Return what was frozen. Raises ItemsLost."""
        index = self._read_index()
        if FROZEN not in index:
            raise ItemsLost(f"the items of run {self._run} are gone")
        return plan.Plan(plan.order_pages(index, json.loads(index[FROZEN])))

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
