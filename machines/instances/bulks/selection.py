"""Selects the instances of a bulk action: page by page, as they stood when it was created; and the dry run: the outcome
for each instance, without a change.

Results: ``taken``, ``refused``, ``gone``, and ``changed`` where only unchanged ones are to be moved.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from machines.audit.redaction import without_values
from machines.engine import Engine, Explanation, Instance
from machines.engine.errors import (
    BadInput,
    EngineFault,
    EngineUnavailable,
    LookupFailed,
    NeedsApproval,
    NotAllowed,
    SignalboxError,
    UnknownInstance,
)
from machines.engine.search.page_merge import find_pages
from machines.people import transition_groups
from machines.people.mirrors import is_mirror, row_methods

from .order import BULK, IDS, Order
from .store import PAGE, Item, Note, Store

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
    pages = find_pages(engine, order.machine, **terms, limit=READ, now=made, partial=False)
    yield from map(_make_item, chain.from_iterable(pages))


def _make_item(instance: Instance) -> Item:
    return Item(instance.id, instance.revision, instance.state, instance.version)


RESULTS = ("taken", "refused", "changed", "gone", "failed")
SAID = 300  # characters of why


def preview_items(engine: Engine, order: Order, items: Sequence[Item]) -> dict[str, Note]:
    """Return instance -> its preview."""
    return {item.id: note for item, note in zip(items, _judge(engine, order, items), strict=True)}


def note_error(error: SignalboxError) -> Note:
    """Note why something was not done."""
    if isinstance(error, LookupFailed):
        return Note("gone")
    if isinstance(error, NotAllowed | NeedsApproval):  # they hold no value of an instance
        return Note.of_all("refused", f"{error} ({error.code})"[:SAID])
    word = "failed" if isinstance(error, EngineFault) else "refused"
    return Note(word, str(error)[:SAID], without_values(error)[:SAID])


def note_change(item: Item, revision: int) -> Note:
    return Note.of_all("changed", f"changed from revision {item.revision} to {revision}")


def _judge(engine: Engine, order: Order, items: Sequence[Item]) -> Iterator[Note]:
    ids = [item.id for item in items]
    if order.action == "fire" and is_mirror(order.machine):
        yield from _judge_methods(order, items)
        return
    if order.action == "fire":
        asked = engine.explain_many(order.machine, ids, order.event, order.payload)
        for item, answer in zip(items, asked, strict=True):
            yield _preview_event(order, item, answer)
        return
    for item in items:
        yield _preview_repair(engine, order, item)


def _judge_methods(order: Order, items: Sequence[Item]) -> Iterator[Note]:
    """Ask the rows: an event is a call of a method of the model there."""
    calls = row_methods()
    try:
        user = calls.find_user(order.actor) if order.person else order.actor
    except SignalboxError as error:
        yield from (note_error(error) for _ in items)
        return
    for item in items:
        refusal = calls.find_refusals(order.machine, item.id, [order.event], user).get(order.event)
        if refusal is None:
            refusal = "the worker that previewed this does not have the model"
        yield Note("refused", refusal[:SAID], refusal[:SAID]) if refusal else Note("taken")


def _preview_event(order: Order, item: Item, answer: Explanation | SignalboxError) -> Note:
    if isinstance(answer, SignalboxError):
        return note_error(answer)
    if order.unchanged and answer.revision != item.revision:
        return note_change(item, answer.revision)
    try:
        transition_groups.check_transitions(order.groups, answer)
    except NotAllowed as error:
        return note_error(error)
    if answer.taken:
        return Note("taken")
    return Note("refused", str(answer)[:SAID], str(answer.without_values())[:SAID])


def _preview_repair(engine: Engine, order: Order, item: Item) -> Note:
    try:
        seen = engine.preview(order.machine, item.id, order.action, **order.asked)
    except EngineUnavailable:
        raise
    except SignalboxError as error:
        return note_error(error)
    return note_change(item, seen.revision) if order.unchanged and seen.revision != item.revision else Note("taken")
