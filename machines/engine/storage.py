"""Plain Redis commands on keys beside the instances, for other parts of the product that store data there."""

from .connection.calls import Caller
from .connection.replies import read_pairs
from .errors import UnknownMachine
from .keys import Keys, Partition, choose_partition

__all__ = ["Storage", "read_pairs"]


class Storage(Caller):
    """Sends Redis commands. Keys come from ``Engine.keys``. Raises EngineUnavailable and EngineFault."""

    def partition(self, keys: Keys, machine: str, id: str) -> Partition:
        """Return the partition that holds an instance. Raises UnknownMachine."""
        count = self.command("HGET", keys.machines, machine)
        if count is None:
            raise UnknownMachine(machine)
        return keys.partition(machine, choose_partition(id, int(count)))
