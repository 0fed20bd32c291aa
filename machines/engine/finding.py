"""Pages of instances. Pages are cut by (time entered, id), so they stay put while instances move."""

from __future__ import annotations

import base64
import binascii
import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from . import arguments, replies
from .calls import Caller, translate
from .catalog import Catalog
from .errors import BadInput
from .records import Instance, Page
from .replies import Status

MAX_LIMIT = 1000
MAX_ROUNDS = 20  # pages read for one `where` page at most; the cursor goes on from there


@dataclass(frozen=True, slots=True)
class Query:
    """One page asked for. ``before``: entered at or before this ms. ``where``: data fields and their values."""

    machine: str
    states: Sequence[str]
    limit: int
    before: int | None
    where: Mapping[str, Any]
    newest: bool


@dataclass(frozen=True, slots=True)
class Position:
    """Where a page ended: the score as Redis wrote it, and the id."""

    score: str = ""
    id: str = ""

    def encode(self) -> str:
        text = json.dumps([self.score, self.id], ensure_ascii=False)
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, cursor: str | None) -> Position:
        if not cursor:
            return cls()
        try:
            score, id = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
            if not isfinite(float(score)):
                raise ValueError(score)
            return cls(str(score), str(id))
        except (ValueError, TypeError, binascii.Error) as error:
            raise BadInput("that cursor was not made by find(); begin without one", code="SB405") from error


#: where it stands in an index, the state whose index that is, and the instance
Row = tuple[Position, str, Instance]


class Finder:
    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog

    def page(self, query: Query, cursor: str | None) -> Page:
        """Instances that match, at most ``query.limit``; the cursor is None once there are no more."""
        arguments.count("limit", query.limit, MAX_LIMIT)
        position, found = Position.decode(cursor), []
        for _ in range(MAX_ROUNDS if query.where or len(query.states) > 1 else 1):
            rows = self._rows(query, position)
            for index, (entry, state, instance) in enumerate(rows[: query.limit], start=1):
                position = entry
                if _first(instance, state, query.states) and _matches(instance, query.where):
                    found.append(instance)
                if len(found) == query.limit:
                    return Page(found, position.encode() if index < len(rows) else None)
            if len(rows) <= query.limit:
                return Page(found, None)
        return Page(found, position.encode())

    def _rows(self, query: Query, position: Position) -> list[Row]:
        """One page of every state and partition, merged, and the first row of the page after."""
        before = "" if query.before is None else query.before
        newest = "1" if query.newest else "0"
        places = [(p.root, state) for p in self._catalog.partitions(query.machine) for state in query.states]
        calls = [
            ("sb_find", root, (state, query.limit + 1, position.score, position.id, before, newest))
            for root, state in places
        ]
        pages = [
            self._read(query.machine, root, state, reply)
            for (root, state), reply in zip(places, self._caller.many(calls), strict=True)
        ]
        merged = heapq.merge(*pages, key=_order, reverse=query.newest)
        return [row for row, _ in zip(merged, range(query.limit + 1), strict=False)]

    def _read(self, machine: str, root: str, state: str, reply: Any) -> list[Row]:
        if isinstance(reply, Exception):
            translate(reply)
        if reply[0] != Status.OK:
            self._catalog.forget(machine)
            raise replies.failure(machine, "", reply)
        rows = []
        for id, score, flat in zip(reply[3::3], reply[4::3], reply[5::3], strict=True):
            raw = replies.pairs(flat)
            if "_def" in raw:
                instance = replies.instance(machine, id, raw, self._catalog.types(machine, root, raw["_def"]))
                rows.append((Position(str(score), id), state, instance))
        return rows


def _order(row: Row) -> tuple[float, bytes]:
    return float(row[0].score), row[0].id.encode()


def _first(instance: Instance, state: str, states: Sequence[str]) -> bool:
    """An instance stands in the index of each of its leaves; a page shows it once.

    Where it entered several at one moment, its rows have the same place; the first of them that a page meets, in the
    order of ``states``, has to be the one that counts, or a page that ends between them would lose it.
    """
    return state == next((asked for asked in states if asked in instance.configuration), state)


def _matches(instance: Instance, where: Mapping[str, Any]) -> bool:
    return all(_same(instance.data.get(name), value) for name, value in where.items())


def _same(held: Any, wanted: Any) -> bool:
    """As expressions compare: True is not 1."""
    return held == wanted and isinstance(held, bool) == isinstance(wanted, bool)
