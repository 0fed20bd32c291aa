"""State machines that programs keep under keys of their own with the SM commands: read one, move one.

They belong to no machine of the engine's, so the rights are asked for globally. The keys are not the engine's, and
anyone may have written to them. The library checks all it reads, and what it does not take for a state machine is not
there.
"""

import json
import logging
from dataclasses import dataclass

from django.http import Http404
from redis import exceptions

from machines.connections import get_engine
from machines.engine import sm_commands
from machines.engine.connection import calls
from machines.engine.connection.client import FAILURES
from machines.people import limits
from machines.people.actor import Actor

log = logging.getLogger(__name__)
SHOWN = 80  # characters of a key in a sentence
OURS = ("ERR", "WRONGTYPE")  # how errors begin that say something about the key, and not about the server


@dataclass(frozen=True, slots=True)
class StoredMachine:
    """The machine under ``key``. ``map``: state -> the states it leads to."""

    key: str
    current: str
    initial: str
    reason: str
    map: dict[str, list[str]]

    @property
    def onward(self) -> list[str]:
        """Where it may go now: what its current state leads to, as far as that is a key of the map."""
        return [state for state in dict.fromkeys(self.map.get(self.current, ())) if state in self.map]


class Moved(Exception):
    """It does not stand where it stood when someone looked; ``now`` is how it stands."""

    def __init__(self, now: StoredMachine) -> None:
        super().__init__(now.key)
        self.now = now


class MoveRefused(Exception):
    """The map does not lead there. The text is the library's."""


def get(actor: Actor, key: str) -> StoredMachine:
    """Return a key as the actor may see it. Raises Forbidden, and what ``read`` raises."""
    actor.demand("view")
    return read(key)


def mutate(actor: Actor, key: str, state: str, *, seen: str, reason: str = "") -> StoredMachine:
    """Move a key along its map, if it still stands in ``seen``; return how it stood before. Raises Forbidden, Http404,
    Moved, MoveRefused."""
    return _act(actor, "fire", "fire", key, state, seen, reason)


def force(actor: Actor, key: str, state: str, *, seen: str, reason: str) -> StoredMachine:
    """Force a key as ``mutate`` does, into any state of its map."""
    before = _act(actor, "force", "operate", key, state, seen, reason)
    log.warning("%s forced %r from %r to %r: %s", actor.name, key, before.current, state, reason)
    return before


def _act(actor: Actor, action: str, right: str, key: str, state: str, seen: str, reason: str) -> StoredMachine:
    limits.spend_rate(actor, action, instance=key, target=state, reason=reason)
    with actor.records(action, instance=key, target=state, reason=reason, refusals=(Moved, MoveRefused)) as entry:
        actor.demand(right)
        before = _move(key, state, seen=seen, reason=reason, force=action == "force")
        entry.note(before=before.current, after=state)
    return before


def read(key: str) -> StoredMachine:
    """Read a key that holds a state machine. Raises Http404 for any other key."""
    try:
        text = sm_commands.call(get_engine().client, "SM.GET", key)
    except exceptions.ResponseError as error:
        raise Http404(f"{_nothing(key)} {_describe_error(error)}".rstrip()) from None
    except FAILURES as error:
        calls.translate(error)
    if text is None:
        raise Http404(_nothing(key))
    return StoredMachine(key, **json.loads(text))


def _move(key: str, state: str, *, seen: str, reason: str, force: bool) -> StoredMachine:
    words = sm_commands.build_fcall(
        "SM.MUTATE", key, state, *([reason] if reason or force else []), *(["FORCE"] if force else [])
    )
    try:
        with get_engine().client.pipeline(transaction=True) as pipe:
            pipe.watch(key)
            before = read(key)
            if before.current != seen:
                raise Moved(before)
            pipe.multi()
            pipe.execute_command(*words or ())
            (reply,) = pipe.execute(raise_on_error=False)
    except exceptions.WatchError:
        raise Moved(read(key)) from None
    except FAILURES as error:
        calls.translate(error)
    if isinstance(reply, Exception):
        raise MoveRefused(_describe_error(reply)) from None
    return before


def _nothing(key: str) -> str:
    return f"No state machine under the key {key if len(key) <= SHOWN else key[:SHOWN] + '…'}."


def _describe_error(error: Exception) -> str:
    """Return what the library says of a key; any other error is the server's. That a key is of another type stays
    unsaid."""
    code = getattr(error, "status_code", None) or str(error).partition(" ")[0]
    if code not in OURS:
        calls.translate(error)
    return "" if code == "WRONGTYPE" else f"{str(error)[:1].upper()}{str(error)[1:]}."
