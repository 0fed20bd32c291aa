"""Machines whose number of partitions grows, as all processes know it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from machines.engine.connection.calls import Caller
from machines.engine.errors import BadInput, EngineUnavailable, NotPermitted
from machines.engine.keys import Keys

FRESH = 2.0  # seconds for which a process trusts what it read


@dataclass(frozen=True, slots=True)
class Growth:
    """One growth: from and to how many partitions; ``run``, the number of the latest run of the command; ``over``, ms
    since the epoch: messages from before it are asked of the old partition first, 0 while instances still move."""

    before: int
    after: int
    run: int
    over: int

    @property
    def under_way(self) -> bool:
        return self.over == 0

    def __str__(self) -> str:
        return f"{self.before}:{self.after}:{self.run}:{self.over}"

    @classmethod
    def read(cls, text: str) -> Self:
        return cls(*(int(number) for number in text.split(":")))


def refuse_growing(machine: str, growth: Growth | None) -> None:
    """Raise BadInput for a machine whose instances move between partitions now."""
    if growth is not None and growth.under_way:
        raise BadInput(f"{machine} grows to {growth.after} partitions: finish that first, by `machine repartition`")


class GrowthReader:
    """Reads which machines grow, at most every two seconds. ``changed`` is called with each machine of which something
    new was read."""

    def __init__(self, caller: Caller, keys: Keys, changed: Callable[[str], None]) -> None:
        self._caller = caller
        self._keys = keys
        self._changed = changed
        self._known: dict[str, Growth] = {}
        self._until = 0.0

    def find(self, machine: str, *, refresh: bool = False) -> Growth | None:
        """Return the growth of a machine, None for one that never grew. ``refresh``: read it if the last reading is
        older than two seconds."""
        if refresh and time.monotonic() >= self._until:
            self.read()
        return self._known.get(machine) if isinstance(machine, str) else None

    def read(self) -> None:
        """Read all growths now. One round trip."""
        self._until = time.monotonic() + FRESH
        try:
            held = self._read_hash()
        except EngineUnavailable:
            if not self._caller.spread:
                raise
            return  # the node of a cluster that has it is away: what was read before stands, and calls are sent on
        found = {str(name): Growth.read(str(text)) for name, text in held.items()}
        before, self._known = self._known, found
        for name in before.keys() | found.keys():
            if before.get(name) != found.get(name):
                self._changed(name)

    def _read_hash(self) -> dict[str, str]:
        try:
            held = self._caller.command("HGETALL", self._keys.growth)
        except NotPermitted:  # an account for some machines only: as if none grew; calls are sent on all the same
            return {}
        return held if isinstance(held, dict) else dict(zip(held[::2], held[1::2], strict=True))
