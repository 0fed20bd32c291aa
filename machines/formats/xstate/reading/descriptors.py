"""The keys of ``on``: XState prefers the exact name to a pattern, here the first in the document is tried first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from machines.engine.definitions.path import quote
from machines.engine.definitions.place import Place

from ..dialect import DONE_INVOKE, DONE_STATE, ERROR_INVOKE
from ..events import covering
from .context import Scope
from .names import descriptor


def in_order(place: Place, scope: Scope) -> list[tuple[str, Place]]:
    """What is listened for, in our words: exact names before the patterns that cover them."""
    found = [(descriptor(event, below.path, scope.reading) if event else "", below) for event, below in place.items()]
    if scope.reading.ours:
        return found
    if _comes_late(event for event, _ in found):
        found = sorted(found, key=lambda pair: (pair[0] == "*", -len(pair[0].split(".")), pair[0].endswith(".*")))
    _check(found, scope)
    return found


def scope_of(event: str, scope: Scope) -> Scope:
    """What can be seen of this event: some have an output, some an error."""
    if event.startswith(DONE_INVOKE):
        return scope.finishing("event.result")
    if event.startswith(DONE_STATE):
        return scope.finishing("event")
    return replace(scope, failing=event.startswith(ERROR_INVOKE))


def _comes_late(events: Iterable[str]) -> bool:
    """Whether something stands after what covers it."""
    seen: set[str] = set()
    for event in events:
        if event != "*" and any(one in seen for one in covering(event)):
            return True
        seen.add(event)
    return False


def _check(found: list[tuple[str, Place]], scope: Scope) -> None:
    """A name also takes the longer ones that begin with it and a dot, which XState leaves alone."""
    here = dict(found)
    for event, place in found:
        if not event or event.endswith("*") or event.startswith((DONE_INVOKE, ERROR_INVOKE)):
            continue
        longer = scope.reading.longer.get(event, ())
        left = next((name for name in longer if name not in here or not _always_taken(here[name])), None)
        if left is not None:
            message = f"here the event {quote(event)} also takes {quote(left)}, as in SCXML"
            hint = f"where that matters, add the guard trigger.name == {event!r}"
            scope.reading.report.add("SB224", place.path, message, hint)
        if any(one in here for one in covering(event) if one.endswith("*")) and not _always_taken(place):
            message = f"when no guard of {quote(event)} holds, the pattern beside it is tried; XState does not"
            scope.reading.report.add("SB224", place.path, message, "add a transition without a guard at the end")


def _always_taken(place: Place) -> bool:
    last = place.value[-1] if isinstance(place.value, list) and place.value else place.value
    return not (isinstance(last, dict) and any(last.get(key) is not None for key in ("guard", "cond", "in")))
