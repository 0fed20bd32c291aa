"""Writes a machine with all its instances into a file, while it goes on running."""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from machines.engine import arguments
from machines.engine.connection import routing
from machines.engine.connection.calls import Caller, translate
from machines.engine.connection.client import FAILURES, Client
from machines.engine.connection.replies import Status, require_ok
from machines.engine.errors import BadInput, EngineUnavailable
from machines.engine.jobs.queue_operations import join_limits
from machines.engine.keys import Keys, Partition
from machines.engine.publishing.catalog import Catalog
from machines.engine.publishing.machine_meta import read_policy, refuse_growing
from machines.engine.rates import QueueRate

from .drafts import open_draft
from .records import ChunkWriter, TransferHeader

SCAN = 1000  # keys that one step scans
TOGETHER = 50  # instances that one call reads
MAX_WAIT = 30.0  # seconds to wait for an outbox that is delivered

Progress = Callable[[int, int], None]  # instances done, of how many


class Export:
    """One export of a machine into ``path``.

    Each instance is read in one atomic call, so its state, history, timers and jobs belong together. Different
    instances are read at different times: an instance that exists all the time is in the file, one that is created
    or deleted meanwhile may be.
    """

    def __init__(self, client: Client, keys: Keys, machine: str, path: Path) -> None:
        self._caller = Caller(client, keys.prefix)
        self._catalog = Catalog(self._caller, keys, 1)
        self._keys = keys
        self.machine = arguments.check_machine(machine)
        self.path = path
        self.instances = self.jobs = 0
        self._seen: set[int] = set()
        self._versions: set[int] = set()

    def run(self, progress: Progress = lambda done, total: None) -> TransferHeader:
        """Write the file and return its header. Raises BadInput for a file that exists or that another run writes,
        UnknownMachine, EngineUnavailable."""
        partitions = self._catalog.partitions(self.machine)
        refuse_growing(self.machine, self._catalog.find_growth(self.machine))  # a scan could miss what moves
        header = TransferHeader(self.machine, secrets.token_hex(8), len(partitions), round(time.time() * 1000))
        with open_draft(self.path) as draft, closing(ChunkWriter(draft)) as writer:
            if self.path.exists():
                raise BadInput(f"{self.path} exists: remove it, or give another name")
            writer.add(header.as_line())
            self._write_versions(writer)
            total = self._count(partitions)
            scan = self._scan(partitions)
            while found := list(islice(scan, TOGETHER)):
                self._export_instances(writer, found)
                progress(self.instances, total)
            self._export_rest(writer, partitions)
        return header

    def _write_versions(self, writer: ChunkWriter) -> None:
        """Write the versions that are not in the file yet."""
        for number in self._catalog.versions(self.machine):
            if number not in self._versions:
                self._versions.add(number)
                source = self._catalog.definition(self.machine, number)
                writer.add({"kind": "version", "number": number, "source": source})

    def _count(self, partitions: Sequence[Partition]) -> int:
        held = self._caller.commands([(p.meta, ("HGET", p.meta, "instances")) for p in partitions])
        return sum(int(each or 0) for each in held)

    def _scan(self, partitions: Sequence[Partition]) -> Iterator[tuple[Partition, str, str]]:
        """Yield (partition, "i" or "j", id) of each instance and job. SCAN returns every key that exists from its begin
        to its end, whatever else happens meanwhile."""
        heads = {f"{p.root}:{word}:": (p, word[0]) for p in partitions for word in ("i", "job")}
        for name in scan_keys(self._caller.client, self._keys.records_pattern(self.machine)):
            head, _, rest = name.partition("}:")
            word, _, id = rest.partition(":")
            found = heads.get(f"{head}}}:{word}:")
            if found is not None and (digest := _digest(found[1], id)) not in self._seen:
                self._seen.add(digest)
                yield (*found, id)

    def _export_instances(self, writer: ChunkWriter, found: Sequence[tuple[Partition, str, str]]) -> None:
        """Write the records of some instances and jobs."""
        groups: dict[tuple[str, str], list[str]] = {}
        for partition, kind, id in found:
            groups.setdefault((partition.root, "instances" if kind == "i" else "jobs"), []).append(id)
        for (root, what), ids in groups.items():
            for text in self._read(root, what, ids):
                writer.add_text(text)
                if what == "instances":
                    self.instances += 1
                else:
                    self.jobs += 1

    def _read(self, root: str, what: str, ids: list[str]) -> Iterator[str]:
        """Yield the records that are there."""
        until = time.monotonic() + MAX_WAIT
        while ids:
            reply = self._caller.call("sb_export", root, what, *ids)
            if reply[0] == Status.FULL:
                if time.monotonic() > until:
                    raise EngineUnavailable(f"{reply[1]} messages of {root} are not delivered: is a worker running?")
                time.sleep(0.05)
                continue
            require_ok("sb_export", reply)
            yield from (str(text) for text in reply[1:] if text)
            ids = ids[len(reply) - 1 :]

    def _export_rest(self, writer: ChunkWriter, partitions: Sequence[Partition]) -> None:
        """Write versions that are newer than the beginning, settings, counters, and the end."""
        self._write_versions(writer)
        writer.add({"kind": "settings", **read_settings(self._caller, partitions)})
        for number, partition in enumerate(partitions):
            reply = require_ok("sb_export", self._caller.call("sb_export", partition.root, "counters"))
            writer.add_text(f'{{"partition":"{number}",{str(reply[1])[1:]}')
        writer.add({"kind": "end", "instances": self.instances, "jobs": self.jobs, "versions": len(self._versions)})


def scan_keys(client: Client, pattern: str) -> Iterator[str]:
    """Yield the keys of all nodes that match a pattern: each that exists all the time at least once."""
    for node in routing.list_nodes(client):
        cursor = -1
        while cursor:
            try:
                cursor, names = node.scan(max(cursor, 0), match=pattern, count=SCAN)
            except FAILURES as error:
                translate(error)
            yield from map(str, names)


def read_settings(caller: Caller, partitions: Sequence[Partition]) -> dict[str, Any]:
    """Read what operators have set: the current version, roll-out, pin and withdrawn versions, pauses and limits
    of queues."""
    policy = read_policy(caller, partitions[0])
    queues = sorted({str(q) for p in partitions for q in caller.command("SMEMBERS", p.queues)})
    rules = {}
    for queue in queues:
        keys = [key for p in partitions for key in (p.rules(queue), p.limits(queue))]
        rows = caller.commands([(key, ("HGETALL", key)) for key in keys])
        found = _merge_rules(rows[::2])
        if groups := {group: json.loads(text) for row in rows[1::2] for group, text in row.items()}:
            found["groups"] = groups
        if found:
            rules[queue] = found
    texts = {name: getattr(policy, name) for name in ("rollout", "pin", "withdrawn") if getattr(policy, name)}
    current = int(policy.current.partition(":")[0])
    return {"current": current, "granted": "", "queues": rules} | ({"versions": texts} if texts else {})


def _merge_rules(rows: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Merge the limits of all partitions: of an operator only, as the definition has its own."""
    found: dict[str, Any] = {}
    if paused := next((row for row in rows if "paused" in row), None):
        found["paused"] = {"actor": paused.get("actor", ""), "reason": paused.get("reason", "")}
    if (concurrency := join_limits(rows, "concurrency")) is not None:
        found["concurrency"] = int(concurrency)
    if (text := join_limits(rows, "rate")) is not None:
        found["rate"] = list(rate) if (rate := QueueRate.decode(text)) else None
    return found


def _digest(kind: str, id: str) -> int:
    """Return a number for an id: a set of numbers takes less memory than one of texts."""
    return int.from_bytes(hashlib.blake2b(f"{kind}{id}".encode(), digest_size=8).digest())
