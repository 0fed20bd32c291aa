"""Jumps of the servers' clocks: what workers noticed, and what a call may learn of it.

Times in Redis are ms of its wall clock, which administrators set. A worker notices it against its monotonic clock, and
writes it down for others.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from machines.engine.connection.calls import Caller
from machines.engine.keys import Keys

DAY_MS = 86_400_000  # the longest lease, and how long a jump is remembered
SAME_MS = 60_000  # within which two workers notice the same jump
CLOSE_MS = 10_000  # by which they may measure it differently, and by which one jump may miss to undo another


class ClockBounds(NamedTuple):
    """What a caller knows of a server's clock, in ms. ``latest``: it cannot be later; ``since``: what it showed after
    it was set last, or the first time after that this was known. None for unknown."""

    latest: int | None = None
    since: int | None = None


def list_words(bounds: ClockBounds | None) -> list[str]:
    """Return both as arguments of a function."""
    return ["" if ms is None else str(ms) for ms in bounds or ClockBounds()]


@dataclass(frozen=True, slots=True)
class ClockJump:
    """A server's clock was set. ``server``: its address, "" for the only one; ``expected``: ms that the clock should
    have shown, ``shown``: what it showed; ``worker``: who noticed; ``undone``: a later jump led back, ``acknowledged``:
    its alarm was."""

    server: str
    expected: int
    shown: int
    worker: str
    undone: bool = False
    acknowledged: bool = False

    @property
    def by(self) -> int:
        """Return the ms by which it was put forward, or back (negative)."""
        return self.shown - self.expected

    @property
    def over(self) -> int:
        """Return the ms of the clock from when on nothing of before the jump counts any more."""
        return max(self.shown, self.expected) + DAY_MS


class ClockJumps:
    """The latest jump of each server."""

    def __init__(self, caller: Caller, keys: Keys) -> None:
        self._caller = caller
        self._key = keys.clock_jumps

    def note(self, jump: ClockJump) -> None:
        """Write a jump down, unless another worker has. Raises EngineUnavailable."""
        before = next((each for each in self.read() if each.server == jump.server), None)
        if before is not None:
            if abs(before.shown - jump.shown) < SAME_MS and abs(before.by - jump.by) < CLOSE_MS:
                return
            if not before.undone and abs(before.by + jump.by) < CLOSE_MS:
                jump = replace(jump, undone=True)
        self._write(jump)

    def read(self) -> list[ClockJump]:
        """Return the jumps that are written down, in no order. Raises EngineUnavailable."""
        found = []
        for server, text in self._caller.command("HGETALL", self._key).items():
            try:
                found.append(ClockJump(str(server), **json.loads(text)))
            except (TypeError, ValueError):
                continue  # a damaged one must not hide the others
        return found

    def acknowledge(self, server: str) -> None:
        """Note that the alarm about a server's latest jump was acknowledged. Raises EngineUnavailable."""
        for jump in self.read():
            if jump.server == server:
                self._write(replace(jump, acknowledged=True))

    def forget(self, server: str) -> None:
        """Remove a jump that is over. Raises EngineUnavailable."""
        self._caller.command("HDEL", self._key, server)

    def _write(self, jump: ClockJump) -> None:
        fields = {name: value for name, value in asdict(jump).items() if name != "server"}
        self._caller.command("HSET", self._key, jump.server, json.dumps(fields))
