"""Plain commands on keys beside the instances, for parts of the product that keep something of their own there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .connection.calls import Arg, Caller
from .connection.client import Client
from .errors import UnknownMachine
from .keys import Keys, Partition, choose_partition


class Storage:
    """Sends what it is told. Keys come from ``Engine.keys``; raises EngineUnavailable and EngineFault."""

    def __init__(self, client: Client) -> None:
        self._caller = Caller(client)

    def partition(self, keys: Keys, machine: str, id: str) -> Partition:
        """Where what belongs to an instance is kept. Raises UnknownMachine."""
        count = self.command("HGET", keys.machines, machine)
        if count is None:
            raise UnknownMachine(machine)
        return keys.partition(machine, choose_partition(id, int(count)))

    def command(self, *words: Arg) -> Any:
        return self._caller.command(*words)

    def commands(self, sent: Sequence[tuple[str, Sequence[Arg]]]) -> list[Any]:
        """Several in one round trip, each with the key that routes it; raises for the first that failed."""
        return self._caller.commands(sent)
