"""The part of the engine's front door that fills an index with instances from before its field was declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from machines.engine.connection.calls import Caller
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Instance

from .finder import Finder, Query
from .results import IndexProgress

BATCH = 500  # instances put into an index by one call
HELD_MS = 60_000  # somebody who fills it and says nothing for so long has died


class IndexMethods:
    _caller: Caller
    _catalog: Catalog

    def _answers(self, machine: str, calls: Sequence[tuple[str, str, Sequence[Any]]]) -> list[list[Any]]:
        raise NotImplementedError

    def reindex(self, machine: str) -> int:
        """Put instances that were made before a field was declared as indexed into its index; how many it looked at.

        Goes through all instances in small calls, while everything else goes on. Until it is through, ``find`` does not
        let the field lead; each instance that takes a step meanwhile is indexed by that. Workers do it by themselves.
        """
        partitions = self._catalog.partitions(machine)
        begun = [reply[1] for reply in self._answers(machine, [("sb_weigh", p.root, ("[]", "")) for p in partitions])]
        count, note = 0, partitions[0].filling
        total = self._total(machine) if any(":0" in listed for listed in begun) else 0
        for page in self._pages(machine) if total else ():
            count += self._restore(machine, [instance.id for instance in page])
            self._caller.command("SET", note, f"{count}/{total}", "PX", HELD_MS)
        self._answers(
            machine, [("sb_reindex", p.root, (listed,)) for p, listed in zip(partitions, begun, strict=True) if listed]
        )
        if total:
            self._caller.command("DEL", note)
        return count

    def fill(self, machine: str) -> int | None:
        """``reindex`` where an index is not complete and nobody else is at it; None where there is nothing to do."""
        if self.filling(machine) is None:
            return None
        note = self._catalog.partitions(machine)[0].filling
        if not self._caller.command("SET", note, "0/0", "NX", "PX", HELD_MS):
            return None
        return self.reindex(machine)

    def filling(self, machine: str) -> IndexProgress | None:
        """Which indexes do not yet hold all instances, and how far whoever fills them has come; None for none."""
        first = self._catalog.partitions(machine)[0]
        listed, note = self._caller.commands(
            [(first.meta, ("HGET", first.meta, "by")), (first.filling, ("GET", first.filling))]
        )
        fields = [item[:-2] for item in (listed or "").split() if item.endswith(":0")]
        done, total = (int(part) for part in (note or "0/0").split("/"))
        return IndexProgress(fields, done, total) if fields else None

    def _total(self, machine: str) -> int:
        metas = [partition.meta for partition in self._catalog.partitions(machine)]
        return sum(int(n or 0) for n in self._caller.commands([(meta, ("HGET", meta, "instances")) for meta in metas]))

    def _pages(self, machine: str) -> Iterator[list[Instance]]:
        finder = Finder(self._caller, self._catalog)
        for state in self._catalog.states(machine):
            query = Query(machine, [state], BATCH, None, (), newest=False, named=True)
            cursor: str | None = None
            while True:
                page = finder.page(query, cursor)
                yield page.instances
                cursor = page.cursor
                if cursor is None:
                    break

    def _restore(self, machine: str, ids: Sequence[str]) -> int:
        roots: dict[str, list[str]] = {}
        for id in ids:
            roots.setdefault(self._catalog.partition(machine, id).root, []).append(id)
        self._answers(machine, [("sb_reindex", root, ("", *some)) for root, some in roots.items()])
        return len(ids)
