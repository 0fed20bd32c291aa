"""The methods of the engine that fill an index with instances older than its declaration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from machines.engine.connection.calls import Caller
from machines.engine.errors import EngineUnavailable
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Instance

from .finder import Finder, Query
from .results import IndexProgress

BATCH = 100  # instances of one page; the calls that add them to the index take some ms each
HELD_MS = 60_000  # a process that fills an index and reports nothing for so long has died


class IndexMethods:
    """Indexes of data fields: a part of ``Engine``."""

    _caller: Caller
    _catalog: Catalog

    def _answers(self, machine: str, calls: Sequence[tuple[str, str, Sequence[Any]]]) -> list[list[Any]]:
        raise NotImplementedError

    def reindex(self, machine: str) -> int:
        """Add instances that are older than the declaration of an index to that index; return how many were looked at.

        Reads all instances in small calls while everything else goes on. Until it ends, ``find`` does not use the
        index; each instance that takes a step meanwhile is indexed by the step. Workers call this by themselves.
        """
        partitions = self._catalog.partitions(machine)
        fields = [reply[1] for reply in self._answers(machine, [("sb_weigh", p.root, ("[]", "")) for p in partitions])]
        count, note = 0, partitions[0].filling
        total = self._count_instances(machine) if any(":0" in listed for listed in fields) else 0
        for page in self._read_pages(machine) if total else ():
            count += self._index_instances(machine, [instance.id for instance in page])
            self._caller.command("SET", note, f"{count}/{total}", "PX", HELD_MS)
        self._answers(
            machine, [("sb_reindex", p.root, (listed,)) for p, listed in zip(partitions, fields, strict=True) if listed]
        )
        if total:
            self._caller.command("DEL", note)
        return count

    def fill_indexes(self, machine: str) -> int | None:
        """Call ``reindex`` where an index is incomplete and no other process fills it; return None where there is
        nothing to do."""
        if self.index_progress(machine) is None:
            return None
        note = self._catalog.partitions(machine)[0].filling
        if not self._caller.command("SET", note, "0/0", "NX", "PX", HELD_MS):
            return None
        return self.reindex(machine)

    def index_progress(self, machine: str) -> IndexProgress | None:
        """Return which indexes are incomplete and how far they are filled; None when all are complete, or when the
        first partition, which knows, does not answer."""
        first = self._catalog.partitions(machine)[0]
        try:
            listed, note = self._caller.commands(
                [(first.meta, ("HGET", first.meta, "by")), (first.filling, ("GET", first.filling))]
            )
        except EngineUnavailable:
            if not self._caller.spread:
                raise
            return None
        fields = [item[:-2] for item in (listed or "").split() if item.endswith(":0")]
        done, total = (int(part) for part in (note or "0/0").split("/"))
        return IndexProgress(fields, done, total) if fields else None

    def _count_instances(self, machine: str) -> int:
        metas = [partition.meta for partition in self._catalog.partitions(machine)]
        return sum(int(n or 0) for n in self._caller.commands([(meta, ("HGET", meta, "instances")) for meta in metas]))

    def _read_pages(self, machine: str) -> Iterator[list[Instance]]:
        finder = Finder(self._caller, self._catalog)
        for state in self._catalog.states(machine):
            query = Query(machine, [state], BATCH, None, (), newest=False, named=True, partial=False)
            cursor: str | None = None
            while True:
                page = finder.page(query, cursor)
                yield page.instances
                cursor = page.cursor
                if cursor is None:
                    break

    def _index_instances(self, machine: str, ids: Sequence[str]) -> int:
        roots: dict[str, list[str]] = {}
        for id in ids:
            roots.setdefault(self._catalog.partition(machine, id).root, []).append(id)
        while roots:
            answers = self._answers(machine, [("sb_reindex", root, ("slice", *some)) for root, some in roots.items()])
            left = {root: some[int(reply[1]) :] for (root, some), reply in zip(roots.items(), answers, strict=True)}
            roots = {root: some for root, some in left.items() if some}
        return len(ids)
