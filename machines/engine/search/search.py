"""The methods of the engine that find and count instances, and fill their indexes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack

from machines.engine import arguments
from machines.engine.base import EngineBase
from machines.engine.connection import replies
from machines.engine.errors import EngineUnavailable
from machines.engine.keys import Partition
from machines.engine.records import Instance, Live, PartialDict

from . import filters
from .filters import Condition, SearchTerms
from .finder import MAX_LIMIT, TEXT_BUDGET, TEXT_SECONDS, Finder, Query
from .page_merge import IndexProgress, Page, Problem, Tally

MOST_COUNTED = 20_000  # instances compared for one tally
LOOK = 1000  # instances compared by one call, which also stops after 4 ms


BATCH = 100  # instances of one page; the calls that add them to the index take some ms each
HELD_MS = 60_000  # a process that fills an index and reports nothing for so long has died


class SearchMethods(EngineBase):
    """Searches of instances: a part of ``Engine``."""

    def live(self, machine: str, *, now: int | None = None) -> Live:
        """Read counts, oldest entries, flow, queue depths and breaches; each partition in one atomic call.

        Partitions that do not answer are ``missing`` in the result. Raises EngineUnavailable where none answers.
        """
        at = (arguments.encode_whole("now", now),)
        calls = [("sb_live", p.root, at) for p in self._catalog.partitions(machine)]
        answers, missing = Finder(self._caller, self._catalog).call_available(machine, calls)
        live = replies.merge_live([replies.read_live(machine, reply[1]) for _, reply in answers])
        return replace(live, missing=missing) if missing else live

    def counts(self, machine: str) -> PartialDict[int]:
        """Count the instances in each leaf state; states without any have 0. The attribute ``missing`` of the result
        lists the roots of partitions that did not answer, whose instances are not counted."""
        live = self.live(machine)
        return PartialDict(live.counts, missing=live.missing)

    def queues(self, machine: str) -> PartialDict[dict[str, int]]:
        """Return queue -> number of jobs that are ready, leased, delayed, dead and handled. The attribute ``missing``
        of the result lists the roots of partitions that did not answer."""
        live = self.live(machine)
        return PartialDict(live.queues, missing=live.missing)

    def find(
        self,
        machine: str,
        *,
        limit: int = 50,
        cursor: str | None = None,
        newest: bool = False,
        now: int | None = None,
        partial: bool = True,
        most: int = TEXT_BUDGET,
        seconds: float = TEXT_SECONDS,
        **terms: Unpack[SearchTerms],
    ) -> Page:
        """Return a page of instances by the time they entered their state, longest-staying first; or, where the index
        of a data field is narrower, in the order of its values. ``newest`` reverses both. ``terms``: what they have in
        common, as in ``find("door", state="Open", older_than=3600)`` (``SearchTerms``).

        One index is walked, everything else is compared, 2000 instances at most for each call: a page may be short and
        have a cursor. A search for words compares ``most`` instances, and begins no call after so many ``seconds``.
        Partitions that do not answer are ``missing`` in the page; with ``partial=False``, for programs that must see
        every instance, they raise EngineUnavailable. Raises BadInput where neither a state nor an index serves, and for
        a state, tag or field that no published version has, so that a typing error does not look like "none".
        """
        query = replace(
            self._read_query(machine, terms, now), limit=limit, newest=newest, partial=partial, most=most,
            seconds=seconds,
        )  # fmt: skip
        finder = Finder(self._caller, self._catalog)
        page = finder.page(query, cursor)
        if page.instances or page.cursor is not None:
            return page
        state = terms.get("state")
        if state is not None and query.states == [state]:
            leaves = self._catalog.leaves(machine, state)
            if leaves != [state]:
                return finder.page(replace(query, states=leaves), cursor)
        self._check_known(machine, state, query)
        return page

    def tally(
        self, machine: str, *, now: int | None = None, most: int = MOST_COUNTED, **terms: Unpack[SearchTerms]
    ) -> Tally:
        """Count the instances that ``find`` would list for the same terms, by leaf state and in all.

        State and age alone are counted exactly. Else the narrowest index is walked, in calls of a few ms, and ``most``
        instances at most are compared: beyond that the tally is not complete and says "at least". Raises as ``find``.
        """
        query, state = self._read_query(machine, terms, now), terms.get("state")
        if state is not None and terms.get("tag") is None:
            query = replace(query, states=self._catalog.leaves(machine, state))
        found = self._count_query(query, most)
        if not found.total:
            self._check_known(machine, state, query)
        return found

    def _count_query(self, query: Query, most: int) -> Tally:
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
        places = self._catalog.partitions(query.machine)
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
        finder = Finder(self._caller, self._catalog)
        index = finder.choose_index(query) if query.where else None
        search = _encode_search(query, index)
        found: Counter[str] = Counter()
        total = looked = 0
        going = {place.root: "" for place in self._catalog.partitions(query.machine)}
        missing: dict[str, None] = {}
        while going and looked < most:
            look = max(1, min(LOOK, (most - looked) // len(going)))
            calls = [("sb_tally", root, (search, stopped, look)) for root, stopped in going.items()]
            answered, away = finder.call_available(query.machine, calls)
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

    def problems(self, machine: str, ids: Iterable[str]) -> dict[str, list[Problem]]:
        """Return id -> current problems, of those instances that have any; ``error=`` finds instances by them.
        Instances of partitions that do not answer are left out."""
        asked = [arguments.check_instance(id) for id in ids]
        places = {id: self._catalog.partition(machine, id).wrong for id in asked}
        answers = self._caller.commands_available([(key, ("HGET", key, id)) for id, key in places.items()])
        return {
            id: [Problem(cause, kind, text) for cause, (kind, text) in sorted(json.loads(held).items())]
            for id, held in zip(places, answers, strict=True)
            if held and not isinstance(held, EngineUnavailable)
        }

    def _read_query(self, machine: str, terms: SearchTerms, now: int | None) -> Query:
        state, tag = terms.get("state"), terms.get("tag")
        if self._encryption.find_marks(machine):
            terms = {**terms, "where": self._encryption.encrypt_terms(machine, terms.get("where"))}
        conditions = tuple(self._add_tagged(machine, one) for one in filters.read_terms(terms))
        before = self._read_before(machine, terms.get("older_than"), now)
        query = Query(machine, (), MAX_LIMIT, before, conditions, False, named=state is not None or tag is not None)
        return replace(query, states=self._choose_states(machine, state, tag, query))

    def _add_tagged(self, machine: str, condition: Condition) -> Condition:
        """Add to a condition on text the leaves whose tags hold each word."""
        if condition.field != filters.TEXT:
            return condition

        def list_tagged(word: list[str]) -> list[str]:
            return self._catalog.list_tagged(machine, lambda tag: any(one in tag.lower() for one in word))

        tagged = [list_tagged(word) for word in condition.rule["words"]]
        return replace(condition, rule={**condition.rule, "tagged": tagged})

    def find_machines(self, id: str, machines: Sequence[str], *, of: str = "instance") -> list[str]:
        """List the machines that have the instance, or the ``job``, of that id: one command each, in one round trip.
        Partitions that do not answer count as without it."""
        places = [
            (name, partition) for name in machines if (partition := self._find_partition(name, id, of)) is not None
        ]
        keys = [partition.job(id) if of == "job" else partition.instance(id) for _, partition in places]
        there = self._caller.commands_available([(key, ("EXISTS", key)) for key in keys])
        return [name for (name, _), one in zip(places, there, strict=True) if one == 1]

    def find_indexed(self, field: str, machines: Sequence[str]) -> list[str]:
        """List the machines that have a complete index of a field, by their first partition: one command each. Those
        whose first partition does not answer are left out."""
        metas = [self._catalog.partitions(name)[0].meta for name in machines]
        listed = self._caller.commands_available([(meta, ("HGET", meta, "by")) for meta in metas])
        found = zip(machines, listed, strict=True)
        return [name for name, by in found if isinstance(by, str) and f"{field}:1" in by.split()]

    def _find_partition(self, machine: str, id: str, of: str) -> Partition | None:
        """Return the partition that would hold it; None where the machine has no such partition."""
        if of != "job":
            return self._catalog.partition(machine, id)
        number, partitions = int(id.partition("-")[0]), self._catalog.partitions(machine)
        return partitions[number] if number < len(partitions) else None

    def _answers(self, machine: str, calls: Sequence[tuple[str, str, Sequence[Any]]]) -> list[list[Any]]:
        return list(Finder(self._caller, self._catalog).call(machine, calls))

    def _read_before(self, machine: str, older_than: float | None, now: int | None) -> int | None:
        if older_than is None:
            return None
        at = now if now is not None else self.live(machine).now
        return at - round(arguments.check_seconds("older_than", older_than) * 1000)

    def _choose_states(self, machine: str, state: str | None, tag: str | None, query: Query) -> list[str]:
        """List the leaves to search; where nothing is compared, a state that may be compound."""
        if state is not None:
            arguments.check_state(state)
        if tag is not None:
            tagged = self._catalog.find_tagged(machine, tag)
            inside = tagged if state is None else self._catalog.leaves(machine, state)
            return [leaf for leaf in tagged if leaf in inside]
        if state is None:
            return [] if query.needs_index else self._catalog.states(machine)
        return self._catalog.leaves(machine, state) if query.selects else [state]

    def _check_known(self, machine: str, state: str | None, query: Query) -> None:
        """Raise BadInput when a search that found nothing named a state or field that no version has."""
        if state is not None:
            self._catalog.check_state(machine, state)
        self._catalog.check_fields(machine, [c.field for c in query.where if c.field not in filters.FACT_FIELDS])

    # Indexes

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
        roots = self._catalog.split(machine, ids)
        while roots:
            answers = self._answers(machine, [("sb_reindex", root, ("slice", *some)) for root, some in roots.items()])
            left = {root: some[int(reply[1]) :] for (root, some), reply in zip(roots.items(), answers, strict=True)}
            roots = {root: some for root, some in left.items() if some}
        return len(ids)


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
