"""A table that follows a machine by reading its log: needs the package's base and sqlite3, no Django.

    python by_log.py redis://localhost:6379 orders.sqlite3 order

It has every step of the machine written to the logs of its partitions, reads them as a consumer group of its own, and
acknowledges a page after its rows are committed. Killed at any point it reads that page again; the revision guards
against applying a step twice. With steps that were lost, and at its first start, it reads all instances.
"""

from __future__ import annotations

import sqlite3
import sys
import time

from table import open_table, write

from machines.engine import Engine
from machines.engine.messages.emitted import START, Place, read_entry
from machines.patterns.bus import AttachedStream

GROUP, READER = "orders-table", "reader-1"
KEEP = 10_000  # entries that a log keeps in any case
WEEK = 7 * 86_400  # seconds for which steps are logged when this program does not come back


class Follower:
    """Follows one machine."""

    def __init__(self, engine: Engine, connection: sqlite3.Connection, machine: str) -> None:
        self.engine, self.connection, self.machine = engine, connection, machine
        self.logs = engine.emitted_logs()
        self.known: dict[Place, str] = {}
        self.streams: dict[Place, AttachedStream] = {}

    def begin(self) -> None:
        """Have steps logged and a group that reads them; call it again now and then, for new partitions."""
        fresh = bool(self.logs.log_steps(self.machine, seconds=WEEK))
        for place in [(self.machine, n) for n in range(self.engine.count_partitions(self.machine))]:
            self.streams[place] = AttachedStream(
                self.engine.client, self.logs.root(place), prefix=self.engine.keys.prefix, most=KEEP
            )
            fresh |= self.streams[place].begin(GROUP, "$")
            self.known.setdefault(place, START)
        if fresh:
            self.read_all()

    def read_all(self) -> None:
        """Write every instance: what happened before the log, or was lost from it."""
        cursor = None
        while True:
            page = self.engine.find(self.machine, limit=500, cursor=cursor)
            with self.connection:
                for instance in page:
                    write(self.connection, instance.id, instance.state, instance.revision)
            if (cursor := page.cursor) is None:
                return

    def follow(self, *, wait: float = 1.0) -> int:
        """Write what the logs have, waiting up to ``wait`` seconds for it; return how many steps there were."""
        found = 0
        for place in self.logs.find_new(self.known, wait=wait):
            taken = self.streams[place].take(GROUP, READER, count=500, idle=60.0)
            steps = [entry for entry in (read_entry(*one) for one in taken.entries) if entry.kind == "step"]
            with self.connection:
                for step in steps:
                    write(self.connection, step.instance, step.state, step.revision)
            if taken.lost:
                self.read_all()
            if taken.entries:
                self.streams[place].ack(GROUP, *(id for id, _ in taken.entries))
            self.known[place] = taken.last
            found += len(steps)
        return found


def main(url: str, path: str, machine: str) -> None:
    follower = Follower(Engine.from_url(url), open_table(path), machine)
    while True:
        follower.begin()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            follower.follow()


if __name__ == "__main__":
    main(*sys.argv[1:4])
