"""The base of all patterns: one client, one prefix, one way to call the functions library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from machines.engine.connection.calls import Arg, Caller, translate
from machines.engine.connection.client import Client
from machines.engine.connection.replies import Status, refuse
from machines.engine.errors import BadInput
from machines.engine.keys import PREFIX
from machines.engine.pattern_keys import PatternKeys

from . import arguments

OK = Status.OK.value  # looking up the member of an enum costs more than the comparison


class Pattern:
    """A pattern on one client. ``redis``: a client of ``machines.engine.connection.client.connect(url)``, or any
    other that decodes its responses. Safe to share between threads. Opens no connection by itself."""

    def __init__(self, redis: Client, prefix: str = PREFIX) -> None:
        if not isinstance(prefix, str) or not arguments.PREFIX.fullmatch(prefix):
            expected = "1 to 64 letters, digits, '_', '.' or '-', and a ':' at the end"
            raise BadInput(f"a prefix is {expected}, not {prefix!r:.80}", code="SB401")
        _check_client(redis)
        self._caller = Caller(redis, prefix)
        self._keys = PatternKeys(prefix)

    def _ask(self, function: str, root: str, *args: Arg, also: tuple[str, ...] = ()) -> list[Any]:
        """Call a function; return the reply, whose status is OK or one of ``also``.

        Raises BadInput for what the function refuses, EngineUnavailable when Redis cannot be used, EngineFault for
        anything else, such as a key of another type.
        """
        reply = self._caller.call(function, root, *args)
        if reply[0] != OK and reply[0] not in also:
            refuse(function, reply)
        return reply

    def _ask_all(self, calls: Sequence[tuple[str, str, Sequence[Arg]]]) -> list[list[Any]]:
        """Send several calls in one round trip, all of which have to be OK; raise as ``_ask`` does."""
        replies = self._caller.many(calls)
        for (function, *_), reply in zip(calls, replies, strict=True):
            if isinstance(reply, Exception):
                translate(reply)
            if reply[0] != OK:
                refuse(function, reply)
        return replies


def _check_client(redis: Any) -> None:
    if not hasattr(redis, "execute_command"):
        raise BadInput(f"redis is a client of redis-py, not {type(redis).__name__}", code="SB408")
    given = redis.get_connection_kwargs() if hasattr(redis, "get_connection_kwargs") else {}
    given = given or getattr(getattr(redis, "connection_pool", None), "connection_kwargs", {})
    if not given.get("decode_responses"):
        raise BadInput("redis is a client made with decode_responses=True: patterns read texts", code="SB408")
