"""What a piece of work says to Redis: every command, and how often it waited for an answer.

Looks where redis-py hands bytes to a socket, so that function calls, pipelines, cache and sessions are all seen. One
hand-over is one round trip, however many commands are in it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.connection import AbstractConnection

CONNECTING = frozenset({"HELLO", "CLIENT", "AUTH", "SELECT", "PING", "READONLY"})
"""What a connection says for itself."""
STORES = ("engine", "throttle", "last seen", "session", "cache")

Command = tuple[str, ...]


@dataclass(slots=True)
class Traffic:
    """``trips``: the commands of each round trip, in order."""

    trips: list[list[Command]] = field(default_factory=list)

    @property
    def commands(self) -> list[Command]:
        return [command for trip in self.trips for command in trip]

    def of(self, store: str) -> list[list[Command]]:
        """The round trips to one of STORES; one that goes to several counts for the first of them."""
        return [trip for trip in self.trips if store_of(trip[0]) == store]

    @property
    def functions(self) -> Counter[str]:
        """Function -> calls."""
        return Counter(command[1] for command in self.commands if command[0].startswith("FCALL"))


@contextlib.contextmanager
def recorded() -> Iterator[Traffic]:
    """The traffic of this process while the block runs."""
    found, real = Traffic(), AbstractConnection.send_packed_command

    def send(self: Any, command: Any, check_health: bool = True) -> Any:
        sent = [one for one in _commands(command) if one[0] not in CONNECTING]
        if sent:
            found.trips.append(sent)
        return real(self, command, check_health)

    AbstractConnection.send_packed_command = send  # type: ignore[method-assign]
    try:
        yield found
    finally:
        AbstractConnection.send_packed_command = real  # type: ignore[method-assign]


def store_of(command: Command) -> str:
    """Which of STORES a command is for, by its function and its key."""
    words = " ".join(command[:5])
    if command[0].startswith("FCALL"):
        if command[1] == "sb_throttle":
            return "throttle"
        return "last seen" if command[1].startswith("sb_buffer") else "engine"
    if "-web:" in words:
        return "session" if "django.contrib.sessions" in words else "cache"
    return "engine"


def _commands(packed: Any) -> Iterator[Command]:
    """The commands in what is about to be sent: RESP arrays of bulk strings."""
    pieces: Sequence[Any] = [packed] if isinstance(packed, str | bytes) else packed
    raw = b"".join(piece.encode() if isinstance(piece, str) else bytes(piece) for piece in pieces)
    at = 0
    while at < len(raw):
        count, at = _number(raw, at)
        words = []
        for _ in range(count):
            size, at = _number(raw, at)
            words.append(raw[at : at + size].decode("utf-8", "replace"))
            at += size + 2
        yield (words[0].upper(), *words[1:])


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """Of ``*3`` or ``$12``, and where what follows begins."""
    end = raw.index(b"\r\n", at)
    return int(raw[at + 1 : end]), end + 2
