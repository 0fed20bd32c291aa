"""Selects the instances of a bulk action: page by page, as they stood when it was created."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from machines.engine import Engine, Instance
from machines.engine.errors import BadInput, UnknownInstance

from .builtin_machine import BULK
from .order import IDS, Order
from .store import PAGE, Item, Store

MAX_FOUND = 1_000_000  # instances of one bulk
READ = 200  # instances found at a time: their data is read along with them
AGAIN = frozenset(["refused", "changed", "failed"])


def find(engine: Engine, order: Order, made: int) -> Iterator[Item]:
    """Yield all instances of the order. ``made``: ms; an instance that entered its state later is not selected.

    That also keeps an instance that moves meanwhile from being found twice: it stands behind ``made`` from then on.
    """
    if order.of:
        return find_failed(engine, order.of)
    return _read_listed(engine, order) if IDS in order.filter else _find(engine, order, made)


def find_failed(engine: Engine, bulk: str) -> Iterator[Item]:
    """Yield the instances that another bulk could not move and that are still there, as they are now."""
    source = engine.get(BULK, bulk).data
    store = Store(engine, bulk)
    machine = store.order().machine
    for start in range(0, source["tried"], PAGE):
        ids = [item.id for item in store.items(source["selection"], start, min(start + PAGE, source["tried"]))]
        notes = zip(ids, store.outcomes(ids), strict=True)
        for instance in engine.get_many(machine, [id for id, note in notes if note and note.word in AGAIN]):
            if isinstance(instance, Instance):
                yield _make_item(instance)


def split_pages(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield pages of ``PAGE`` instances, the last one shorter. Raises BadInput past ``MAX_FOUND``."""
    source, total = iter(items), 0
    while page := list(islice(source, PAGE)):
        total += len(page)
        if total > MAX_FOUND:
            raise BadInput(f"more than {MAX_FOUND:,} instances match: narrow the filter")
        yield page


def _read_listed(engine: Engine, order: Order) -> Iterator[Item]:
    """Yield the instances of a list, as they are now, without those that are gone."""
    for instance in engine.get_many(order.machine, order.filter[IDS]):
        if isinstance(instance, Instance):
            yield _make_item(instance)
        elif not isinstance(instance, UnknownInstance):
            raise instance


def _find(engine: Engine, order: Order, made: int) -> Iterator[Item]:
    terms = {"older_than": 0} | {name: term for name, term in order.filter.items() if term is not None}
    cursor = None
    while True:
        page = engine.find(order.machine, **terms, limit=READ, cursor=cursor, now=made, partial=False)
        yield from map(_make_item, page.instances)
        cursor = page.cursor
        if cursor is None:
            return


def _make_item(instance: Instance) -> Item:
    return Item(instance.id, instance.revision, instance.state, instance.version)
