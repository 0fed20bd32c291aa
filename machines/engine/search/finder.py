"""Pages of instances, cut by (time entered, id) or by (value, id), so that they stay put while instances move."""

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
MOST = 2000  # candidates that one call compares, and that one round compares in all partitions
MAX_ROUNDS = 20  # pages read for one where instances may stand in several states
ROUNDS = 3  # and where they are compared; the cursor goes on from there


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked for. ``before``: entered at or before this ms. ``states`` are leaves; ``named``: those were asked
    for, and are not just all there are."""

    machine: str
    states: Sequence[str]
    limit: int
    before: int | None
    where: tuple[Condition, ...]
    newest: bool
    named: bool = False

    @property
    def selects(self) -> bool:
        """Are candidates to be compared?"""
        return bool(self.where)

    @property
    def needs_index(self) -> bool:
        """Is there a condition that only an index or a state may serve?"""
        return not self.named and any(c.field not in COMPARED_FIELDS for c in self.where)


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page ended: the score as Redis wrote it, and the id; in the index of a field (``by``) the position."""

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
            if not (_in_index(score, *by) if by else isfinite(float(score))):
                raise ValueError(score)
            return cls(str(score), str(id), *by)
        except (ValueError, TypeError, RecursionError) as error:
            raise _foreign() from error


def _in_index(position: Any, by: Any) -> bool:
    return isinstance(by, str) and isinstance(position, str) and re.fullmatch("(?:[0-9a-f]{2})+", position) is not None


def _foreign() -> BadInput:
    return BadInput("that cursor was not made by find(); begin without one", code="SB405")


BEGINNING = Position()
FACTS: dict[str, Callable[[Instance], Any]] = {
    IDS: lambda instance: instance.id,
    ACTOR: lambda instance: instance.actor or None,
    VERSION: lambda instance: instance.definition,
}

#: where it stands in an index, the state whose index that is (of a field's index: none), and the instance
Row = tuple[Position, str, Instance]


class Finder:
    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog

    def page(self, query: Query, cursor: str | None) -> Page:
        """Instances that match, at most ``query.limit``; the cursor is None once there are no more."""
        arguments.check_count("limit", query.limit, MAX_LIMIT)
        position, found = Position.decode(cursor), []
        start: str | None = None
        leading = self.leading(query, position)
        for _ in range(ROUNDS if query.selects else MAX_ROUNDS):
            rows, read = self._rows(query, leading, position)
            matching = self._matching(query, rows)
            for index, (position, _, instance) in enumerate(rows, start=1):
                if index in matching:
                    found.append(instance)
                    start = start or position.encode()
                if len(found) == query.limit:
                    return Page(found, position.encode() if read is not None or index < len(rows) else None, start)
            if read is None:
                return Page(found, None, start)
            position = read
        return Page(found, position.encode(), start)

    # Which index leads

    def leading(self, query: Query, position: Position = BEGINNING) -> Condition | None:
        """The condition whose index is walked; None for those of the states. A cursor stays with its own."""
        if position.by:
            for condition in query.where:
                if condition.field == position.by and condition.ordered:
                    return condition
            raise _foreign()
        if query.needs_index and position.score:
            raise _foreign()
        return self._lightest(query) if query.where and not position.score else None

    def _lightest(self, query: Query) -> Condition | None:
        """Of the conditions that an index serves that which leaves fewest; None where the states leave fewer."""
        listed, standing, weights = self._weigh(query)
        listed[ERROR] = True  # kept for every machine
        served = [pair for pair in zip(weights, query.where, strict=True) if listed.get(pair[1].field)]
        for weight, condition in served:
            if weight < 0 and condition.rule.get("eq") is not None:
                raise build_refusal(condition.field, "the field holds no list and no object")
        served = [pair for pair in served if pair[0] >= 0]
        weight, lightest = min(served, key=lambda pair: pair[0], default=(standing, None))
        if query.named and standing <= weight:
            return None
        if lightest is None and query.needs_index:
            self._refuse(query, listed)
        return lightest

    def _weigh(self, query: Query) -> tuple[dict[str, bool], int, list[int]]:
        """Indexed field -> are all instances in it; instances in the states; and those each condition leaves, or -1."""
        conditions = json.dumps([c.wire if c.ordered else {"field": c.field} for c in query.where])
        before = "" if query.before is None else query.before
        words = (conditions, before, *(query.states if query.named else ()))
        listed: dict[str, bool] = {}
        standing, weights = 0, [0] * len(query.where)
        for reply in self.ask(query.machine, [("sb_weigh", p.root, words) for p in self.places(query)]):
            for name, complete in (item.split(":") for item in reply[1].split()):
                listed[name] = listed.get(name, True) and complete == "1"
            standing += int(reply[2])
            weights = [-1 if -1 in pair else sum(pair) for pair in zip(weights, map(int, reply[3:]), strict=True)]
        return listed, standing, weights

    def _refuse(self, query: Query, listed: dict[str, bool]) -> None:
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

    # Reading

    def places(self, query: Query) -> list[Partition]:
        return self._catalog.partitions(query.machine)

    def ask(self, machine: str, calls: Sequence[tuple[str, str, Sequence[Any]]]) -> Iterable[list[Any]]:
        for reply in self._caller.many(calls):
            if isinstance(reply, Exception):
                translate(reply)
            if reply[0] != Status.OK:
                self._catalog.forget(machine)
                raise replies.build_error(machine, "", reply)
            yield reply

    def _rows(self, query: Query, leading: Condition | None, position: Position) -> tuple[list[Row], Position | None]:
        """The next candidates of every index that is walked, merged; and how far all of them were read, None for to the
        end."""
        partitions, size = self.places(query), query.limit + 1
        states = [""] if leading is not None else query.states
        places = [(p.root, state) for p in partitions for state in states]
        look = max(size, MOST // len(places)) if query.selects and places else size
        ends = "1" if query.newest else "0", _filter(query, leading), look
        calls: list[tuple[str, str, Sequence[Any]]]
        if leading is not None:
            rule = json.dumps(leading.wire)
            newest, *rest = ends
            calls = [("sb_lookup", root, (rule, size, position.score, newest, *rest)) for root, _ in places]
        else:
            before = "" if query.before is None else query.before
            begin = size, position.score, position.id, before
            calls = [("sb_find", root, (state, *begin, *ends)) for root, state in places]
        by = leading.field if leading is not None else ""
        answers = list(self.ask(query.machine, calls))
        pages = [self._read(query.machine, place, by, reply) for place, reply in zip(places, answers, strict=True)]
        merged = list(heapq.merge(*pages, key=lambda row: row[0].order, reverse=query.newest))
        stops = [Position(str(reply[1]), str(reply[2]), by) for reply in answers if reply[1] != ""]
        if not stops:
            return merged, None
        read = (max if query.newest else min)(stops, key=lambda stop: stop.order)
        return [
            row for row in merged if row[0].order == read.order or (row[0].order < read.order) != query.newest
        ], read

    def _read(self, machine: str, place: tuple[str, str], by: str, reply: list[Any]) -> list[Row]:
        root, state = place
        rows = []
        for id, score, flat in zip(reply[3::3], reply[4::3], reply[5::3], strict=True):
            raw = replies.read_pairs(flat)
            if "_def" in raw:
                instance = replies.read_instance(machine, id, raw, self._catalog.types(machine, root, raw["_def"]))
                rows.append((Position(str(score), id, by), state, instance))
        return rows

    # Comparing

    def _matching(self, query: Query, rows: Sequence[Row]) -> set[int]:
        """Which of the rows match, counted from 1."""
        found = {n: row[2] for n, row in enumerate(rows, start=1) if _stands(query, row) and _matches(query, row[2])}
        if query.before is None or not rows or not rows[0][0].by:
            return set(found)
        return self._aged(query, query.before, found)

    def _aged(self, query: Query, before: int, found: dict[int, Instance]) -> set[int]:
        """Those that entered their state early enough. One that stands in several entered each at a time of its own."""
        entered = {n: instance.entered for n, instance in found.items()}
        several = [n for n, instance in found.items() if len(instance.configuration) > 1 and entered[n] > before]
        asked = []
        for n in several:
            key = self._catalog.partition(query.machine, found[n].id).state(_counted(query, found[n]))
            asked.append((key, ("ZSCORE", key, found[n].id)))
        for n, score in zip(several, self._caller.commands(asked), strict=True):
            entered[n] = entered[n] if score is None else int(float(score))
        return {n for n, at in entered.items() if at <= before}


def _filter(query: Query, leading: Condition | None) -> str:
    """What the server compares, so that it need not answer with all it looks at; the rows are compared again here."""
    if not query.selects:
        return ""
    parts: dict[str, Any] = {"where": [condition.wire for condition in query.where]}
    if leading is not None and query.named:
        parts["states"] = list(query.states)
    return json.dumps(parts)


def _counted(query: Query, instance: Instance) -> str:
    """The first of an instance's states, in the order they are asked for: the one that counts."""
    active = instance.configuration
    return next((state for state in query.states if state in active), min(active))


def _stands(query: Query, row: Row) -> bool:
    """An instance stands in the index of each of its leaves; a page shows it once.

    Where it entered several at one moment, its rows have the same place; the first of them that a page meets, in the
    order of ``states``, has to be the one that counts, or a page that ends between them would lose it.
    """
    active = row[2].configuration
    if row[0].by:
        return not query.named or any(state in active for state in query.states)
    return row[1] == next((state for state in query.states if state in active), row[1])


def _matches(query: Query, instance: Instance) -> bool:
    return all(c.holds(_held(instance, c.field)) for c in query.where if c.field != ERROR)


def _held(instance: Instance, field: str) -> Any:
    """What is wrong with an instance is not in it: of that the server's word counts."""
    if field in FACTS:
        return FACTS[field](instance)
    return instance.data.get(field)
