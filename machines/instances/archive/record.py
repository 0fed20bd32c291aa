"""One archived instance. Its body is compressed JSON of what Redis held: the fields of its hash and its history."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from machines.engine.instances.retirement import FinishedInstance

LEVEL = 6  # of zlib: a higher one saves 1 % and takes twice the time
MAX_BODY = 64 * 1024 * 1024  # bytes of an uncompressed body: far more than data and 10,000 steps take


class DamagedBody(ValueError):
    """The body of an archived instance cannot be read."""


@dataclass(frozen=True, slots=True)
class ArchivedRecord:
    """``created``, ``finished``, ``archived``: ms since the epoch. ``indexed``: JSON of the indexed data fields, as
    Redis held them."""

    machine: str
    instance: str
    finished: int
    version: int
    revision: int
    state: str
    created: int
    actor: str
    archived: int
    indexed: str
    body: bytes

    @classmethod
    def of(cls, found: FinishedInstance, index: Sequence[str], archived: int) -> ArchivedRecord:
        """Make the record of an instance. ``index``: the indexed data fields of its machine."""
        raw = found.raw
        indexed = {name: raw[name] for name in index if name in raw}
        return cls(
            machine=found.machine,
            instance=found.id,
            finished=found.finished,
            version=found.version,
            revision=found.revision,
            state=found.state,
            created=found.created,
            actor=raw.get("_actor", ""),
            archived=archived,
            indexed=_compact(indexed) if indexed else "",
            body=compress(found),
        )

    def restore(self) -> FinishedInstance:
        """Return the instance as Redis held it. Raises DamagedBody."""
        try:
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(self.body, MAX_BODY)
            if unpacker.unconsumed_tail:
                raise DamagedBody(f"the archived body of {self.machine}/{self.instance} is too large")
            held = json.loads(text)
            steps = [_compact(step) for step in held["h"]]
            raw = {str(name): str(value) for name, value in held["i"].items()}
        except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedBody(f"the archived body of {self.machine}/{self.instance} cannot be read: {error}") from error
        return FinishedInstance(self.machine, self.instance, raw, steps)


@dataclass(frozen=True, slots=True)
class Page:
    """Records, the newest first. ``cursor``: for the next page; None on the last one."""

    records: list[ArchivedRecord]
    cursor: str | None


def compress(found: FinishedInstance) -> bytes:
    """Compress the fields and the history of an instance. A step is JSON already and is put in as it is."""
    return zlib.compress(f'{{"i":{_compact(dict(found.raw))},"h":[{",".join(found.steps)}]}}'.encode(), LEVEL)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
