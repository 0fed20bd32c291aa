"""Stores the order, selection and results of a bulk action: hashes in the partition of its instance.

What a bulk does is read from here and never from the data of its instance: an order stands here only when an account
that may operate gave it, and ``released`` only while such a person lets it run. An account that may only create
instances and fire events cannot have others moved that way.

Every write may be said twice and then stands once. All keys expire by themselves should nobody remove the bulk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine import Engine
from machines.engine.keys import choose_partition
from machines.engine.storage import Storage
from machines.engine.versions.records import DryRun

from .order import BULK, Order, renew_order

MAX_REFUSED = 100  # refused instances kept with the classes of a dry run; each has its verdict besides
PAGE = 100  # instances on one page of a selection
KEPT = 64 * 24 * 3600  # seconds after the last write: it may wait thirty days twice, and its results are kept as long
BEGUN = "begun"  # an outcome that is not yet known


class OrderLost(Exception):
    """There is no order: it has expired, or the instance was not made by one."""


class ItemsLost(Exception):
    """A page of the selection is not there."""


@dataclass(frozen=True, slots=True)
class Item:
    """One instance as it was frozen."""

    id: str
    revision: int
    state: str
    version: int


@dataclass(frozen=True, slots=True)
class Note:
    """What was said of an instance: ``word`` is a verdict or an outcome, ``why`` is for people.

    ``plain``: the same without any value that an instance holds, for who may not see all of them.
    """

    word: str
    why: str = ""
    plain: str = ""

    @classmethod
    def of_all(cls, word: str, why: str) -> Note:
        """Make a note whose reason holds no value of an instance."""
        return cls(word, why, why)


@dataclass(frozen=True, slots=True)
class Row:
    """One instance of a bulk action: as it was selected, the result of the dry run, and the outcome."""

    item: Item
    verdict: Note | None
    outcome: Note | None


class Store:
    def __init__(self, engine: Engine, bulk: str) -> None:
        self._storage = Storage(engine.client)
        self._bulk = bulk
        partition = self._storage.partition(engine.keys, BULK, bulk)
        self._order, self._items = partition.bulk_order(bulk), partition.bulk_items(bulk)
        self._previews, self._outcomes = partition.bulk_previews(bulk), partition.bulk_outcomes(bulk)

    # The order

    def put_order(self, order: Order) -> None:
        """Keep the first selection: what was reviewed and approved is what is done."""
        self._write(self._order, ("HSETNX", self._order, "order", order.encode()))

    def order(self) -> Order:
        """Return what was ordered. Raises OrderLost."""
        text = self._storage.command("HGET", self._order, "order")
        if text is None:
            raise OrderLost(f"bulk {self._bulk} not found, or expired")
        return Order.decode(text)

    @classmethod
    def read_orders(cls, engine: Engine, bulks: Sequence[str]) -> dict[str, tuple[Order, int]]:
        """Read the orders of several bulks and their rates, in one round trip; those without an order are left out."""
        if not bulks:
            return {}
        storage = Storage(engine.client)
        count = storage.command("HGET", engine.keys.machines, BULK)
        if count is None:
            return {}
        keys = [engine.keys.partition(BULK, choose_partition(id, int(count))).bulk_order(id) for id in bulks]
        found = storage.commands([(key, ("HMGET", key, "order", "rate")) for key in keys])
        orders = {id: (Order.decode(order), rate) for id, (order, rate) in zip(bulks, found, strict=True) if order}
        return {id: (order, order.rate if rate is None else int(rate)) for id, (order, rate) in orders.items()}

    def renew_order(self) -> bool | None:
        """Encrypt the arguments of the order under the current key. Return whether that changed anything, None where no
        key fits."""
        text = self._storage.command("HGET", self._order, "order")
        new = text and renew_order(text)
        if new and new != text:
            self._write(self._order, ("HSET", self._order, "order", new))
        return None if text and not new else new != text

    def put_rate(self, rate: int) -> None:
        """Set the rate from the next instances on, in instances a second; 0 for as fast as it goes."""
        self._write(self._order, ("HSET", self._order, "rate", rate))

    def rate(self) -> int:
        """Return what was put last, or what was ordered."""
        put = self._storage.command("HGET", self._order, "rate")
        return self.order().rate if put is None else int(put)

    def release(self, actor: str, selection: str) -> None:
        """Let it run, on what was frozen under this name and on nothing that is frozen later."""
        self._write(self._order, ("HSET", self._order, "released", actor, "released_for", selection))

    def revoke(self) -> None:
        """Forbid anything further."""
        self._write(self._order, ("HDEL", self._order, "released"))

    def is_released(self, selection: str) -> bool:
        """Tell whether a person lets what was frozen under this name run."""
        actor, frozen = self._storage.command("HMGET", self._order, "released", "released_for")
        return actor is not None and frozen == selection

    def approve(self, second: str, selection: str) -> None:
        """Note that a second person has looked at what was frozen under this name: of that nobody is asked again."""
        self._write(self._order, ("HSET", self._order, "approved", second, "approved_for", selection))

    def read_approver(self, selection: str) -> str:
        """Return who approved the selection, "" for nobody."""
        second, held = self._storage.command("HMGET", self._order, "approved", "approved_for")
        return str(second) if second and held == selection else ""

    def put_dry_run(self, run: DryRun) -> None:
        """Keep the classes of a migration's dry run, and the first of the refused instances."""
        self._write(self._order, ("HSET", self._order, "dry_run", json.dumps(run.as_dict(MAX_REFUSED))))

    def dry_run(self) -> DryRun | None:
        """Return None where there is none: of other actions, and of a selection by more than the version."""
        text = self._storage.command("HGET", self._order, "dry_run")
        return None if text is None else DryRun.from_dict(json.loads(text))

    # The selection

    def put_page(self, selection: str, number: int, items: Sequence[Item]) -> None:
        text = json.dumps([[item.id, item.revision, item.state, item.version] for item in items])
        self._write(self._items, ("HSET", self._items, f"{selection}:{number}", text))

    def items(self, selection: str, start: int, stop: int) -> list[Item]:
        """Return the instances from ``start`` to before ``stop``, fewer where there are no more. Raises ItemsLost."""
        found: list[Item] = []
        for number in range(start // PAGE, -(-stop // PAGE)):
            page, begins = self._read_page(selection, number), number * PAGE
            found += page[max(start - begins, 0) : stop - begins]
        return found

    def _read_page(self, selection: str, number: int) -> list[Item]:
        text = self._storage.command("HGET", self._items, f"{selection}:{number}")
        if text is None:
            raise ItemsLost(f"page {number} of what bulk {self._bulk} found is gone")
        return [Item(*row) for row in json.loads(text)]

    # What was said of them

    def put_previews(self, notes: Mapping[str, Note]) -> None:
        self._put(self._previews, notes)

    def clear_previews(self) -> None:
        """Forget what an earlier attempt at a selection has said."""
        self._storage.command("UNLINK", self._previews)

    def previews(self, ids: Sequence[str]) -> list[Note | None]:
        """Return previews in the order of ``ids``; None where there is none yet."""
        return self._read_notes(self._previews, ids)

    def begin(self, ids: Sequence[str]) -> list[bool]:
        """Note that something is about to be done to each; False for those of which that was noted before."""
        text = _encode(Note(BEGUN))
        answers = self._write(self._outcomes, *[("HSETNX", self._outcomes, id, text) for id in ids])
        return [bool(answer) for answer in answers[: len(ids)]]

    def put_outcomes(self, notes: Mapping[str, Note]) -> None:
        self._put(self._outcomes, notes)

    def outcomes(self, ids: Sequence[str]) -> list[Note | None]:
        """Return outcomes in the order of ``ids``; None where there is none yet."""
        return [None if note and note.word == BEGUN else note for note in self._read_notes(self._outcomes, ids)]

    def remove(self) -> None:
        for key in (self._items, self._previews, self._outcomes, self._order):
            self._storage.command("UNLINK", key)

    # Within

    def _put(self, key: str, notes: Mapping[str, Note]) -> None:
        if notes:
            words: list[Any] = ["HSET", key]
            for id, note in notes.items():
                words += [id, _encode(note)]
            self._write(key, tuple(words))

    def _read_notes(self, key: str, ids: Sequence[str]) -> list[Note | None]:
        if not ids:
            return []
        texts = self._storage.command("HMGET", key, *ids)
        return [None if text is None else _decode(text) for text in texts]

    def _write(self, key: str, *commands: tuple[Any, ...]) -> list[Any]:
        """Run commands on one key in one round trip; every key is kept for as long again."""
        kept = [("EXPIRE", each, KEPT) for each in (self._order, self._items, self._previews, self._outcomes)]
        return self._storage.commands([(key, command) for command in [*commands, *kept]])


def _encode(note: Note) -> str:
    """Encode a note: ``[word, why, plain]``; 1 stands for a plain text that is the reason itself."""
    words: list[Any] = [note.word]
    if note.why:
        words += [note.why, 1 if note.plain == note.why else note.plain]
    return json.dumps(words, separators=(",", ":"))


def _decode(text: str) -> Note:
    word, why, plain, *_ = (*json.loads(text), "", "")
    return Note(word, why, why if plain == 1 else plain)
