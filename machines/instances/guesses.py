"""Limits how often people may have hidden values compared.

A guard ``pin < event.g`` answers one guess with each explanation and each event. A person without the right *reveal*
may ask for so many in an hour of one instance (``SIGNALBOX["GUESS_RATE"]``), and each stands in the audit with its
payload.
"""

import hashlib
import time
from collections.abc import Mapping
from typing import Any, TypeVar

from machines.audit.entries import REFUSED, record
from machines.catalog.queries import every_outline
from machines.conf import conf
from machines.connections import get_engine, get_pattern
from machines.engine import EngineUnavailable, Explanation, SignalboxError, UnknownMachine, rates
from machines.engine.definitions import Outline
from machines.patterns import Throttle
from machines.patterns.throttle import MAX_LIMIT
from machines.people.actor import Actor
from machines.people.errors import GuessedTooOften
from machines.people.mirrors import is_mirror

KEPT = 30.0  # seconds for which a process remembers what a machine hides
MAX_KNOWN = 256  # machines
GUESS, SEEN, GUESS_LOGGED = "guess", "guess.seen", "guess.told"
COMPUTING = ("force", "edit", "reset", "skip", "retry")
"""Repairs after which a step goes on by itself, by guards that read the data."""

Hiding = tuple[frozenset[str], tuple[Outline, ...]]
"""The sensitive fields of a machine, and the outlines of its versions if there are any."""
_known: dict[tuple[str, str], tuple[float, Hiding]] = {}

Answer = TypeVar("Answer", bound=Explanation | SignalboxError)


def find_hidden(actor: Actor, machine: str, event: str = "") -> list[str]:
    """List the hidden fields that decide or compute what an event does; without one, what a repair sets going. Empty
    for actors who may reveal them, and for programs."""
    if not actor.is_person or is_mirror(machine):
        return []
    sensitive, outlines = _recall(machine)
    found = sorted({name for each in outlines for name in each.list_data_reads(event) & sensitive})
    return [] if not found or actor.may("reveal", machine) else found


def _recall(machine: str) -> Hiding:
    key, now = (get_engine().keys.prefix, machine), time.monotonic()
    held = _known.get(key)
    if held is not None and held[0] > now:
        return held[1]
    if len(_known) >= MAX_KNOWN:
        _known.clear()
    _known[key] = (now + KEPT, found := _read(machine))
    return found


def _read(machine: str) -> Hiding:
    try:
        sensitive = get_engine().sensitive(machine).data
    except UnknownMachine:
        return frozenset(), ()
    return sensitive, tuple(every_outline(machine)) if sensitive else ()


def spend_guess(actor: Actor, machine: str, id: str, event: str = "", *, action: str, **asked: Any) -> bool:
    """Take one guess, if it is one; return whether it was. ``action``: of the audit, which has a refusal once in the
    time of the rate; ``asked``: what was asked. ``id``: "" for all instances together. Raises GuessedTooOften."""
    hidden = find_hidden(actor, machine, event)
    if not hidden:
        return False
    rate = rates.parse_rate(conf.GUESS_RATE)
    if rate is None:
        return True
    limit, per = min(rate[0], MAX_LIMIT), rate[1] / 1000
    verdict = get_pattern(Throttle).take(GUESS, _make_key(actor, machine, id), limit=limit, per=per)
    if not verdict.allowed:
        error = GuessedTooOften(machine, hidden, rates.format_rate(limit, rate[1]), verdict.retry_after)
        if get_pattern(Throttle).count(GUESS_LOGGED, _make_key(actor, machine, id, action), limit=1, per=per).allowed:
            detail = {"error": error.message, "code": error.code, "event": event, **asked}
            record(
                actor.user, action, machine=machine, instance=id, source=actor.source, outcome=REFUSED, detail=detail
            )
        raise error
    return True


def spend_explanation(actor: Actor, machine: str, id: str, event: str, payload: Mapping[str, Any] | None) -> None:
    """Count an explanation, which is in no audit otherwise, as a guess. Raises GuessedTooOften."""
    if spend_guess(actor, machine, id, event, action="explain", payload=payload):
        detail = {"event": event, "payload": payload}
        record(actor.user, "explain", machine=machine, instance=id, target=event, source=actor.source, detail=detail)


def withhold(
    actor: Actor, machine: str, id: str, revision: int, explanations: Mapping[str, Answer]
) -> dict[str, Answer]:
    """Leave out of what a page says of many events, without payloads, those that would be one guess too many. To look
    at one revision again and again is one guess."""
    guesses = [event for event in explanations if find_hidden(actor, machine, event)]
    if not guesses:
        return dict(explanations)
    rate, seen = rates.parse_rate(conf.GUESS_RATE), _make_key(actor, machine, id, str(revision))
    if rate is None:
        return dict(explanations)
    try:
        new = get_pattern(Throttle).count(SEEN, seen, limit=1, per=rate[1] / 1000).allowed
        if new:
            spend_guess(actor, machine, id, guesses[0], action="explain", events=guesses)
    except (GuessedTooOften, EngineUnavailable) as error:
        if isinstance(error, GuessedTooOften):
            get_pattern(Throttle).forget(SEEN, seen)
        else:  # the page goes on without what cannot be counted
            error = GuessedTooOften(machine, find_hidden(actor, machine, guesses[0]), conf.GUESS_RATE, 0)
        return {event: error if event in guesses else one for event, one in explanations.items()}  # type: ignore[misc]
    if new:
        detail = {"events": guesses, "revision": revision}
        record(actor.user, "explain", machine=machine, instance=id, source=actor.source, detail=detail)
    return dict(explanations)


def _make_key(actor: Actor, *about: str) -> str:
    """Return a digest, because ids of instances are longer than keys may be."""
    return hashlib.sha256("\0".join((actor.id, *about)).encode()).hexdigest()
