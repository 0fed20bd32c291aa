"""Counts the instances that a search finds, by state.

The count is exact where the indexes of states suffice; else the narrowest index is walked in small calls.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from machines.engine.connection.calls import Caller
from machines.engine.errors import EngineUnavailable
from machines.engine.publishing.catalog import Catalog

from .filters import Condition
from .finder import Finder, Query
from .page_merge import Tally

MOST_COUNTED = 20_000  # instances compared for one tally
LOOK = 1000  # instances compared by one call, which also stops after 4 ms


class SearchCounter:
    """Counts the results of searches."""

    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog
        self._finder = Finder(caller, catalog)

    def tally(self, query: Query, most: int = MOST_COUNTED) -> Tally:
        """Count the instances that a query finds. Raises BadInput as a page of the same search does."""
        states = query.states if query.named else self._catalog.states(query.machine)
        counts = dict.fromkeys(states, 0)
        if query.where:
            return self._walk_index(query, counts, most)
        found, standing, instances, missing = self._count_states(query, states)
        counts |= found
        if standing == instances or len(states) == 1:
            return Tally(counts, sum(counts.values()), not missing, missing)
        if query.before is None and not query.named:
            return Tally(counts, instances, not missing, missing)
        walked = self._walk_index(query, counts, most)
        total = walked.total if walked.complete else max(walked.total, *counts.values())
        missing = tuple(dict.fromkeys(missing + walked.missing))
        return Tally(counts, total, walked.complete and not missing, missing)

    def _count_states(self, query: Query, states: Sequence[str]) -> tuple[dict[str, int], int, int, tuple[str, ...]]:
        """Return state -> instances that entered it early enough; entries in all states; the number of instances; and
        the partitions that did not answer. The numbers are equal where each instance is in one state."""
        asked: list[tuple[str, tuple[Any, ...]]] = []
        every = self._catalog.states(query.machine)
        last = "+inf" if query.before is None else query.before
        places = self._finder.places(query)
        for place in places:
            asked += [(place.state(state), ("ZCOUNT", place.state(state), "-inf", last)) for state in states]
            asked += [(place.state(state), ("ZCARD", place.state(state))) for state in every]
            asked.append((place.meta, ("HGET", place.meta, "instances")))
        answers = iter(self._caller.commands_available(asked))
        counts: Counter[str] = Counter()
        standing = instances = 0
        missing = []
        for place in places:
            own = [next(answers) for _ in range(len(states) + len(every) + 1)]
            if any(isinstance(answer, EngineUnavailable) for answer in own):
                missing.append(place.root)
                continue
            counts.update(dict(zip(states, map(int, own), strict=False)))
            standing += sum(map(int, own[len(states) : -1]))
            instances += int(own[-1] or 0)
        return dict(counts), standing, instances, tuple(missing)

    def _walk_index(self, query: Query, counts: dict[str, int], most: int) -> Tally:
        index = self._finder.choose_index(query) if query.where else None
        search = _encode_search(query, index)
        found: Counter[str] = Counter()
        total = looked = 0
        going = {place.root: "" for place in self._finder.places(query)}
        missing: dict[str, None] = {}
        while going and looked < most:
            look = max(1, min(LOOK, (most - looked) // len(going)))
            calls = [("sb_tally", root, (search, stopped, look)) for root, stopped in going.items()]
            answered, away = self._finder.call_available(query.machine, calls)
            for root in away:
                del going[root]
                missing[root] = None
            for root, reply in answered:
                looked += int(reply[2])
                total += int(reply[3])
                found.update({leaf: int(count) for leaf, count in zip(reply[4::2], reply[5::2], strict=True)})
                going[root] = str(reply[1])
            going = {root: stopped for root, stopped in going.items() if stopped}
        return Tally(dict.fromkeys(counts, 0) | dict(found), total, not going and not missing, tuple(missing))


def _encode_search(query: Query, index: Condition | None) -> str:
    proved = index is not None and index.is_proved_by_index
    parts: dict[str, Any] = {
        "where": [condition.wire for condition in query.where if not (proved and condition == index)],
        "states": list(query.states),
        "named": query.named,
    }
    if index is not None:
        parts["lead"] = index.wire
    if query.before is not None:
        parts["before"] = query.before
    return json.dumps(parts)
