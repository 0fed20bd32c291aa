"""Pages of instances, cut by (time entered, id) or by (value, id), so that pages stay stable while instances move."""

import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine import arguments
from machines.engine.connection import replies
from machines.engine.connection.calls import Caller, keep_available, translate
from machines.engine.connection.replies import Status
from machines.engine.definitions.reading.machine_settings import TRANSITION
from machines.engine.errors import BadInput, EngineUnavailable
from machines.engine.publishing.catalog import Catalog
from machines.engine.records import Instance

from .filters import COMPARED_FIELDS, ERROR, FACT_FIELDS, TEXT, Condition, build_refusal
from .page_merge import BEGINNING, Page, PageMerge, Position, RawRow, build_cursor_error

MAX_LIMIT = 1000
MOST = 2000  # candidates that one call compares, and that one round compares over all partitions
MAX_ROUNDS = 100  # rounds for one page; a call that was slow has compared a few
ROUNDS = 3  # times as many are compared for one page; the cursor continues from there
TEXT_BUDGET = 40_000  # instances that a page of a search for words compares
TEXT_SECONDS = 1.0  # after which such a page asks no more
TEXT_LOOK = 250  # of one call: it compares about as many in its slice, and what it lists beyond these is for nothing


@dataclass(frozen=True, slots=True)
class Query:
    """A search. ``before``: entered at or before this ms. ``states`` are leaves; ``named``: the caller named a state
    or a tag, ``states`` are not just all there are; ``partial``: partitions that do not answer are left out. ``most``,
    ``seconds``: the budget of a search for words."""

    machine: str
    states: Sequence[str]
    limit: int
    before: int | None
    where: tuple[Condition, ...]
    newest: bool
    named: bool = False
    partial: bool = True
    most: int = TEXT_BUDGET
    seconds: float = TEXT_SECONDS

    @property
    def selects(self) -> bool:
        """Tell whether candidates must be compared."""
        return bool(self.where)

    @property
    def reads_all(self) -> bool:
        """Tell whether everything that a candidate holds is read."""
        return any(condition.field == TEXT for condition in self.where)

    @property
    def needs_index(self) -> bool:
        """Tell whether a condition needs an index or a state."""
        return not self.named and any(c.field not in COMPARED_FIELDS for c in self.where)


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
        position = Position.decode(cursor)
        index = self.choose_index(query, position)
        states = [""] if index is not None else query.states
        places = [(partition.root, state) for partition in self._catalog.partitions(query.machine) for state in states]
        by = index.field if index is not None else ""
        merge = PageMerge(places, position, query.limit + 1, newest=query.newest, by=by)
        most = ROUNDS * max((query.limit + 1) * len(places), MOST)  # candidates
        if query.reads_all:
            most = query.most
        found: list[tuple[Position, Instance]] = []
        missing: dict[str, None] = {}
        compared = rounds = 0
        end = time.monotonic() + query.seconds if query.reads_all else math.inf
        while len(found) <= query.limit and not merge.over:
            need = query.limit + 1 - len(found)
            settled = merge.take_settled(need)
            if not settled:
                late = rounds and time.monotonic() > end
                if late or rounds == MAX_ROUNDS or (query.selects and compared >= most):
                    return _make_page(found, merge.bound, query.limit, missing, compared)
                compared += self._read_places(query, index, merge, need, missing, most - compared)
                rounds += 1
                continue
            rows = self._read_rows(query.machine, settled, by)
            matching = self._choose_rows(query, rows)
            found += [(row[0], row[2]) for number, row in enumerate(rows, start=1) if number in matching]
        return _make_page(found, None, query.limit, missing, compared)

    # Choice of the index

    def choose_index(self, query: Query, position: Position = BEGINNING) -> Condition | None:
        """Return the condition whose index is walked; None for the indexes of states. A cursor keeps its own index."""
        if position.by:
            for condition in query.where:
                if condition.field == position.by and condition.ordered:
                    return condition
            raise build_cursor_error()
        if query.needs_index and position.score:
            raise build_cursor_error()
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
        if TRANSITION not in listed and any(c.field == TRANSITION for c in query.where):
            self._refuse(query, listed)
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
        calls = [("sb_weigh", p.root, words) for p in self._catalog.partitions(query.machine)]
        for _, reply in self.call_available(query.machine, calls)[0]:
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

    def call(self, machine: str, calls: Sequence[tuple[str, str, Sequence[Any]]]) -> Iterable[list[Any]]:
        """Send calls in one round trip and yield their OK replies; raise for any other."""
        for reply in self._caller.many(calls):
            if isinstance(reply, Exception):
                translate(reply)
            self._check_reply(machine, reply)
            yield reply

    def call_available(
        self, machine: str, calls: Sequence[tuple[str, str, Sequence[Any]]]
    ) -> tuple[list[tuple[str, list[Any]]], tuple[str, ...]]:
        """Send calls in one round trip; return (root, OK reply) of each that was answered, and the roots of the others.
        Raises EngineUnavailable where none was answered."""
        answered, missing = [], []
        for (_, root, _), reply in zip(calls, keep_available(self._caller.many(calls)), strict=True):
            if isinstance(reply, EngineUnavailable):
                missing.append(root)
            else:
                self._check_reply(machine, reply)
                answered.append((root, reply))
        return answered, tuple(dict.fromkeys(missing))

    def _check_reply(self, machine: str, reply: list[Any]) -> None:
        if reply[0] != Status.OK:
            self._catalog.forget(machine)
            raise replies.build_error(machine, "", reply)

    def _read_places(
        self,
        query: Query,
        index: Condition | None,
        merge: PageMerge,
        need: int,
        missing: dict[str, None],
        most: int,
    ) -> int:
        """Ask the places that may hold the next rows, all at once, to compare ``most`` candidates; return how many they
        did.

        Partitions that do not answer are added to ``missing``. Raises EngineUnavailable where none answers, or where
        one does not and the query needs all.
        """
        asked = merge.choose_places(need)
        newest, wanted = "1" if query.newest else "0", _encode_filter(query, index)
        before = "" if query.before is None else query.before
        rule = "" if index is None else json.dumps(index.wire)
        look_at = max(1, min(most, MOST) // len(asked))
        if query.reads_all:
            look_at = min(look_at, TEXT_LOOK)
        looks = [max(p.share, look_at) if query.selects else p.share for p in asked]
        counts, compared = "1" if query.selects else "", 0
        calls: list[tuple[str, str, Sequence[Any]]] = []
        for place, look in zip(asked, looks, strict=True):
            score, id = place.position.score, place.position.id
            if index is not None:
                calls.append(("sb_lookup", place.root, (rule, place.share, score, newest, wanted, look, counts)))
            else:
                calls.append(
                    ("sb_find", place.root, (place.state, place.share, score, id, before, newest, wanted, look, counts))
                )
        answers = self._caller.many(calls)
        available = [reply if query.partial else _require(reply) for reply in answers]
        for place, reply in zip(asked, _keep_unless_read(available, merge), strict=True):
            if isinstance(reply, EngineUnavailable):
                missing[place.root] = None
                merge.drop(place.root)
            else:
                self._check_reply(query.machine, reply)
                if counts:
                    compared += int(reply.pop())
                merge.add(place, reply)
        merge.sort()
        return compared

    def _read_rows(self, machine: str, rows: Sequence[RawRow], by: str) -> list[Row]:
        found = []
        for row in rows:
            raw = replies.read_pairs(row.fields)
            if "_def" in raw:
                types = self._catalog.types(machine, row.place.root, raw["_def"])
                instance = replies.read_instance(machine, row.id, raw, types)
                found.append((Position(row.score, row.id, by), row.place.state, instance))
        return found

    def _choose_rows(self, query: Query, rows: Sequence[Row]) -> set[int]:
        """Return the numbers, from 1, of the rows that show their instance, and entered its state early enough."""
        found = {n: row[2] for n, row in enumerate(rows, start=1) if _is_counted_row(query, row)}
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
        for n, score in zip(several, self._caller.commands_available(asked), strict=True):
            if score is not None and not isinstance(score, EngineUnavailable):
                entered[n] = int(float(score))
        return {n for n, at in entered.items() if at <= before}


def _make_page(
    found: Sequence[tuple[Position, Instance]], bound: Position | None, limit: int, missing: Iterable[str], looked: int
) -> Page:
    """Make a page of the first ``limit`` rows. It ends at the last of them if there are more, else at ``bound``."""
    end = found[limit - 1][0] if len(found) > limit else bound
    return Page(
        [instance for _, instance in found[:limit]],
        end.encode() if end is not None else None,
        found[0][0].encode() if found else None,
        tuple(missing),
        looked,
    )


def _require(reply: Any) -> Any:
    if isinstance(reply, Exception):
        translate(reply)
    return reply


def _keep_unless_read(answers: Sequence[Any], merge: PageMerge) -> list[Any]:
    """Keep the answers that came; only where no partition of the page has answered so far raise EngineUnavailable."""
    if not any(place.read for place in merge.places):
        return keep_available(answers)
    return keep_available([*answers, ""])[:-1]


def _encode_filter(query: Query, index: Condition | None) -> str:
    """Encode what the server compares candidates with."""
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
