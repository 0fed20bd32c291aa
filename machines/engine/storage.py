"""Plain Redis commands on keys beside the instances, for other parts of the product that store data there."""

from collections.abc import Sequence
from typing import Any

from .connection.calls import Arg, Caller
from .connection.client import Client
from .connection.replies import read_pairs
from .errors import UnknownMachine
from .keys import Keys, Partition, choose_partition

__all__ = ["Storage", "read_pairs"]


class Storage:
    """Sends Redis commands. Keys come from ``Engine.keys``. Raises EngineUnavailable and EngineFault."""

    def __init__(self, client: Client) -> None:
        self._caller = Caller(client)

    def partition(self, keys: Keys, machine: str, id: str) -> Partition:
        """Return the partition that holds an instance. Raises UnknownMachine."""
        count = self.command("HGET", keys.machines, machine)
        if count is None:
            raise UnknownMachine(machine)
        return keys.partition(machine, choose_partition(id, int(count)))

    def command(self, *words: Arg) -> Any:
        """Send one command and return its answer."""
        return self._caller.command(*words)

    def commands(self, sent: Sequence[tuple[str, Sequence[Arg]]]) -> list[Any]:
        """Send several commands in one round trip, each with the key that routes it; raise for the first that
        failed."""
        return self._caller.commands(sent)
