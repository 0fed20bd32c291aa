"""The part of the engine's front door that finds instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from . import arguments, conditions
from .calls import Caller
from .catalog import Catalog
from .finding import MAX_LIMIT, Finder, Query
from .records import Live, Page

BATCH = 500  # instances put into an index by one call


class Searching:
    """What ``Engine`` answers about which instances there are."""

    _caller: Caller
    _catalog: Catalog

    def live(self, machine: str, *, now: int | None = None) -> Live:
        raise NotImplementedError

    def find(
        self,
        machine: str,
        *,
        state: str | None = None,
        older_than: float | None = None,
        where: Mapping[str, Any] | None = None,
        tag: str | None = None,
        definition: int | None = None,
        id_prefix: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        newest: bool = False,
        now: int | None = None,
    ) -> Page:
        """Instances by the time they entered their state, longest-staying first; or, where an indexed data field leads
        to fewer, in the order of its values (``newest`` turns both round).

        ``state`` may be compound: then everything below it; ``tag`` stands for all states that carry it. ``older_than``
        is in seconds, ``definition`` a version. ``where``: data field -> value, ``{"prefix": text}``, or a range like
        ``{"ge": 1, "lt": 5}``. One index leads, all else is compared, 2000 instances at most for each call: a page may
        come back short with a cursor that goes on. Raises BadInput where neither a state nor an index serves, and for a
        state, tag or field that no published version has: a slip of the pen must not look like "none".
        """
        asked = (*conditions.read(where), *conditions.of_prefix(id_prefix))
        arguments.whole("definition", definition, least=1)
        named = state is not None or tag is not None
        query = Query(
            machine,
            self._states(machine, state, tag, bool(asked)),
            limit,
            self._before(machine, older_than, now),
            asked,
            newest,
            definition,
            named,
        )
        finder = Finder(self._caller, self._catalog)
        page = finder.page(query, cursor)
        if page.instances or page.cursor is not None:
            return page
        if state is not None and query.states == [state]:
            leaves = self._catalog.leaves(machine, state)
            if leaves != [state]:
                return finder.page(replace(query, states=leaves), cursor)
        self._known(machine, state, query)
        return page

    def reindex(self, machine: str) -> int:
        """Put instances that were made before a field was declared as indexed into its index; how many it looked at.

        Goes through all instances in small calls, while everything else goes on. Until it is through, ``find`` does not
        let the field lead; each instance that takes a step meanwhile is indexed by that.
        """
        partitions = self._catalog.partitions(machine)
        begun = [reply[1] for reply in self._answers(machine, [("sb_weigh", p.root, ("[]", "")) for p in partitions])]
        count = 0
        for state in self._catalog.states(machine) if any(":0" in listed for listed in begun) else ():
            cursor: str | None = None
            while True:
                page = self.find(machine, state=state, limit=min(BATCH, MAX_LIMIT), cursor=cursor)
                count += self._restore(machine, [instance.id for instance in page])
                cursor = page.cursor
                if cursor is None:
                    break
        self._answers(
            machine, [("sb_reindex", p.root, (listed,)) for p, listed in zip(partitions, begun, strict=True) if listed]
        )
        return count

    def _restore(self, machine: str, ids: Sequence[str]) -> int:
        roots: dict[str, list[str]] = {}
        for id in ids:
            roots.setdefault(self._catalog.partition(machine, id).root, []).append(id)
        self._answers(machine, [("sb_reindex", root, ("", *some)) for root, some in roots.items()])
        return len(ids)

    def _answers(self, machine: str, calls: Sequence[tuple[str, str, Sequence[Any]]]) -> list[list[Any]]:
        return list(Finder(self._caller, self._catalog).ask(machine, calls))

    def _before(self, machine: str, older_than: float | None, now: int | None) -> int | None:
        if older_than is None:
            return None
        at = now if now is not None else self.live(machine).now
        return at - round(arguments.seconds("older_than", older_than) * 1000)

    def _states(self, machine: str, state: str | None, tag: str | None, compares: bool) -> list[str]:
        """The leaves to look into; where nothing is compared, a state that may be compound."""
        if state is not None:
            arguments.state(state)
        if tag is not None:
            tagged = self._catalog.tagged(machine, tag)
            inside = tagged if state is None else self._catalog.leaves(machine, state)
            return [leaf for leaf in tagged if leaf in inside]
        if state is None:
            return [] if compares else sorted(self.live(machine).counts)
        return self._catalog.leaves(machine, state) if compares else [state]

    def _known(self, machine: str, state: str | None, query: Query) -> None:
        """Raise BadInput when a search that found nothing named what no version has."""
        if state is not None:
            self._catalog.check_state(machine, state)
        self._catalog.check_fields(machine, [c.field for c in query.where if c.field != conditions.IDS])
