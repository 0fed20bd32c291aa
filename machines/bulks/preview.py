"""The dry run of a bulk action: the outcome for each instance, without a change.

Results: ``taken``, ``refused``, ``gone``, and ``changed`` where only unchanged ones are to be moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from machines.catalog.mirrors import is_mirror, row_methods
from machines.catalog.redaction import without_values
from machines.engine import Engine, Explanation
from machines.engine.errors import (
    EngineFault,
    EngineUnavailable,
    LookupFailed,
    NeedsApproval,
    NotAllowed,
    SignalboxError,
)
from machines.people import transition_groups

from .order import Order
from .store import Item, Note

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
        transition_groups.check(order.groups, answer)
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
