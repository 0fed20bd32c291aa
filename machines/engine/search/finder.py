"""Pages of instances, cut by (time entered, id) or by (value, id), so that pages stay stable while instances move."""

from __future__ import annotations

import base64
import heapq
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from machines.engine import arguments
from machines.engine.connection import replies
from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.replies import Status
from machines.engine.definitions.reading.indexes import ACTOR, IDS, VERSION
from machines.engine.errors import BadInput
from machines.engine.keys import Partition
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Instance

from .filters import COMPARED_FIELDS, ERROR, FACT_FIELDS, Condition, build_refusal
from .results import Page

MAX_LIMIT = 1000
MOST = 2000  # candidates that one call compares, and that one round compares over all partitions
MAX_ROUNDS = 20  # rounds for one page where instances may be in several states
ROUNDS = 3  # rounds for one page where instances are compared; the cursor continues from there


@dataclass(frozen=True, slots=True)
class Query:
    """A search. ``before``: entered at or before this ms. ``states`` are leaves; ``named``: the caller named a state
    or a tag, ``states`` are not just all there are."""

    machine: str
    states: Sequence[str]
    limit: int
    before: int | None
    where: tuple[Condition, ...]
    newest: bool
    named: bool = False

    @property
    def selects(self) -> bool:
        """Tell whether candidates must be compared."""
        return bool(self.where)

    @property
    def needs_index(self) -> bool:
        """Tell whether a condition needs an index or a state."""
        return not self.named and any(c.field not in COMPARED_FIELDS for c in self.where)


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
            raise _bad_cursor() from error


def _is_index_position(position: Any, by: Any) -> bool:
    return isinstance(by, str) and isinstance(position, str) and re.fullmatch("(?:[0-9a-f]{2})+", position) is not None


def _bad_cursor() -> BadInput:
    return BadInput("that cursor was not made by find(); begin without one", code="SB405")


BEGINNING = Position()
FACTS: dict[str, Callable[[Instance], Any]] = {
    IDS: lambda instance: instance.id,
    ACTOR: lambda instance: instance.actor or None,
    VERSION: lambda instance: instance.definition,
}

#: position in an index, the state of that index ("" for the index of a field), and the instance
Row = tuple[Position, str, Instance]


class Finder:
    """Finds instances page by page."""

    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog

    def page(self, query: Query, cursor: str | None) -> Page:
        """Return instances that match, at most ``query.limit``; the cursor is None on the last page."""
        arguments.check_count("limit", query.limit, MAX_LIMIT)
        position, found = Position.decode(cursor), []
        start: str | None = None
        index = self.choose_index(query, position)
        for _ in range(ROUNDS if query.selects else MAX_ROUNDS):
            rows, read = self._read_rows(query, index, position)
            matching = self._find_matching(query, rows)
            for number, (position, _, instance) in enumerate(rows, start=1):
                if number in matching:
                    found.append(instance)
                    start = start or position.encode()
                if len(found) == query.limit:
                    return Page(found, position.encode() if read is not None or number < len(rows) else None, start)
            if read is None:
                return Page(found, None, start)
            position = read
        return Page(found, position.encode(), start)

    # Choice of the index

    def choose_index(self, query: Query, position: Position = BEGINNING) -> Condition | None:
        """Return the condition whose index is walked; None for the indexes of states. A cursor keeps its own index."""
        if position.by:
            for condition in query.where:
                if condition.field == position.by and condition.ordered:
                    return condition
            raise _bad_cursor()
        if query.needs_index and position.score:
            raise _bad_cursor()
        return self._choose_narrowest(query) if query.where and not position.score else None

    def _choose_narrowest(self, query: Query) -> Condition | None:
        """Return the condition that leaves the fewest instances by an index; None where the states leave fewer."""
        listed, standing, weights = self._weigh(query)
        listed[ERROR] = True  # every machine has the index of errors
        served = [pair for pair in zip(weights, query.where, strict=True) if listed.get(pair[1].field)]
        for weight, condition in served:
            if weight < 0 and condition.rule.get("eq") is not None:
                raise build_refusal(condition.field, "the field holds no list and no object")
        served = [pair for pair in served if pair[0] >= 0]
        weight, narrowest = min(served, key=lambda pair: pair[0], default=(standing, None))
        if query.named and standing <= weight:
            return None
        if narrowest is None and query.needs_index:
            self._refuse(query, listed)
        return narrowest

    def _weigh(self, query: Query) -> tuple[dict[str, bool], int, list[int]]:
        """Return indexed field -> whether its index holds all instances; the number of instances in the states; and
        how many each condition leaves, or -1."""
        conditions = json.dumps([c.wire if c.ordered else {"field": c.field} for c in query.where])
        before = "" if query.before is None else query.before
        words = (conditions, before, *(query.states if query.named else ()))
        listed: dict[str, bool] = {}
        standing, weights = 0, [0] * len(query.where)
        for reply in self.call(query.machine, [("sb_weigh", p.root, words) for p in self.places(query)]):
            for name, complete in (item.split(":") for item in reply[1].split()):
                listed[name] = listed.get(name, True) and complete == "1"
            standing += int(reply[2])
            weights = [-1 if -1 in pair else sum(pair) for pair in zip(weights, map(int, reply[3:]), strict=True)]
        return listed, standing, weights

    def _refuse(self, query: Query, listed: dict[str, bool]) -> None:
        """Raise BadInput with the reason why no index serves the search."""
        self._catalog.check_fields(query.machine, [c.field for c in query.where if c.field not in FACT_FIELDS])
        for condition in query.where:
            if listed.get(condition.field) is False:
                raise BadInput(
                    f"the index of {condition.field!r} does not hold all instances yet; call "
                    f"reindex({query.machine!r}), or name a state",
                    code="SB417",
                )
        fields = ", ".join(json.dumps(c.field) for c in query.where if c.ordered)
        indexed = ", ".join(name for name in listed if name != ERROR)
        has = f"indexed: {indexed}" if indexed else "no field is indexed"
        advice = f'"index": [{fields}] in the definition would' if fields else "null and lists are in none"
        raise BadInput(
            f"no index of machine {query.machine!r} serves this search: {advice}; or name a state ({has})", code="SB416"
        )

    # Read

    def places(self, query: Query) -> list[Partition]:
        return self._catalog.partitions(query.machine)

    def call(self, machine: str, calls: Sequence[tuple[str, str, Sequence[Any]]]) -> Iterable[list[Any]]:
        """Send calls in one round trip and yield their OK replies; raise for any other."""
        for reply in self._caller.many(calls):
            if isinstance(reply, Exception):
                translate(reply)
            if reply[0] != Status.OK:
                self._catalog.forget(machine)
                raise replies.build_error(machine, "", reply)
            yield reply

    def _read_rows(
        self, query: Query, index: Condition | None, position: Position
    ) -> tuple[list[Row], Position | None]:
        """Read the next candidates of every walked index, merged; and how far all of them were read, None for the
        end."""
        partitions, size = self.places(query), query.limit + 1
        states = [""] if index is not None else query.states
        places = [(p.root, state) for p in partitions for state in states]
        look = max(size, MOST // len(places)) if query.selects and places else size
        ends = "1" if query.newest else "0", _encode_filter(query, index), look
        calls: list[tuple[str, str, Sequence[Any]]]
        if index is not None:
            rule = json.dumps(index.wire)
            newest, *rest = ends
            calls = [("sb_lookup", root, (rule, size, position.score, newest, *rest)) for root, _ in places]
        else:
            before = "" if query.before is None else query.before
            begin = size, position.score, position.id, before
            calls = [("sb_find", root, (state, *begin, *ends)) for root, state in places]
        by = index.field if index is not None else ""
        answers = list(self.call(query.machine, calls))
        pages = [self._read_page(query.machine, place, by, reply) for place, reply in zip(places, answers, strict=True)]
        merged = list(heapq.merge(*pages, key=lambda row: row[0].order, reverse=query.newest))
        stops = [Position(str(reply[1]), str(reply[2]), by) for reply in answers if reply[1] != ""]
        if not stops:
            return merged, None
        read = (max if query.newest else min)(stops, key=lambda stop: stop.order)
        return [
            row for row in merged if row[0].order == read.order or (row[0].order < read.order) != query.newest
        ], read

    def _read_page(self, machine: str, place: tuple[str, str], by: str, reply: list[Any]) -> list[Row]:
        root, state = place
        rows = []
        for id, score, flat in zip(reply[3::3], reply[4::3], reply[5::3], strict=True):
            raw = replies.read_pairs(flat)
            if "_def" in raw:
                instance = replies.read_instance(machine, id, raw, self._catalog.types(machine, root, raw["_def"]))
                rows.append((Position(str(score), id, by), state, instance))
        return rows

    # Compare

    def _find_matching(self, query: Query, rows: Sequence[Row]) -> set[int]:
        """Return the numbers, from 1, of the rows that match."""
        found = {
            n: row[2] for n, row in enumerate(rows, start=1) if _is_counted_row(query, row) and _matches(query, row[2])
        }
        if query.before is None or not rows or not rows[0][0].by:
            return set(found)
        return self._filter_by_age(query, query.before, found)

    def _filter_by_age(self, query: Query, before: int, found: dict[int, Instance]) -> set[int]:
        """Return the numbers of the rows whose instance entered its state early enough. An instance in several
        states entered each at a time of its own."""
        entered = {n: instance.entered for n, instance in found.items()}
        several = [n for n, instance in found.items() if len(instance.configuration) > 1 and entered[n] > before]
        asked = []
        for n in several:
            key = self._catalog.partition(query.machine, found[n].id).state(_choose_state(query, found[n]))
            asked.append((key, ("ZSCORE", key, found[n].id)))
        for n, score in zip(several, self._caller.commands(asked), strict=True):
            entered[n] = entered[n] if score is None else int(float(score))
        return {n for n, at in entered.items() if at <= before}


def _encode_filter(query: Query, index: Condition | None) -> str:
    """Encode what the server compares, so that it returns fewer candidates; the rows are compared again here."""
    if not query.selects:
        return ""
    parts: dict[str, Any] = {"where": [condition.wire for condition in query.where]}
    if index is not None and query.named:
        parts["states"] = list(query.states)
    return json.dumps(parts)


def _choose_state(query: Query, instance: Instance) -> str:
    """Return the first of an instance's states in the order of the query: the one whose entry counts."""
    active = instance.configuration
    return next((state for state in query.states if state in active), min(active))


def _is_counted_row(query: Query, row: Row) -> bool:
    """Tell whether a row is the one that shows its instance.

    An instance is in the index of each of its leaves; a page shows it once. Where it entered several at one moment, its
    rows have the same position; the first of them, in the order of ``states``, must be the one that counts, or a page
    that ends between them would lose it.
    """
    active = row[2].configuration
    if row[0].by:
        return not query.named or any(state in active for state in query.states)
    return row[1] == next((state for state in query.states if state in active), row[1])


def _matches(query: Query, instance: Instance) -> bool:
    return all(c.holds(_read_value(instance, c.field)) for c in query.where if c.field != ERROR)


def _read_value(instance: Instance, field: str) -> Any:
    """Return the value of an instance that a condition compares. Errors are not part of an instance: the server
    compares those."""
    if field in FACTS:
        return FACTS[field](instance)
    return instance.data.get(field)
