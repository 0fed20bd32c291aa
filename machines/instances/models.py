"""Archived instances, and how many there are of each machine. Only ``machines.instances.archive`` writes them.

The body of one is compressed JSON of what Redis held: the fields of its hash and its history.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from django.db import models

from machines.conf.base_model import BaseModel
from machines.engine.instances.retirement import FinishedInstance
from machines.engine.limits import MAX_INSTANCE_ID

LEVEL = 6  # of zlib: a higher one saves 1 % and takes twice the time
MAX_BODY = 64 * 1024 * 1024  # bytes of an uncompressed body: far more than data and 10,000 steps take


class DamagedBody(ValueError):
    """The body of an archived instance cannot be read."""


class ArchivedInstance(BaseModel):
    """A finished instance that Redis no longer holds.

    On PostgreSQL the table is partitioned by the month of ``finished`` (migration 0012), so that the key has to hold
    it; an instance that was created anew under its id has one row for each time it finished.
    """

    pk = models.CompositePrimaryKey("machine", "instance", "finished")
    machine = models.CharField(max_length=64)
    instance = models.CharField(max_length=MAX_INSTANCE_ID)
    finished = models.BigIntegerField(help_text="ms since 1970")
    version = models.PositiveIntegerField(db_column="definition", help_text="of its machine")
    revision = models.PositiveBigIntegerField()
    state = models.TextField(help_text="its configuration as one line of text")
    created = models.BigIntegerField(help_text="ms since 1970")
    actor = models.CharField(
        max_length=150, blank=True, default="", help_text="the actor of its last step that had one"
    )
    archived = models.BigIntegerField(help_text="ms since 1970")
    indexed = models.TextField(blank=True, default="", help_text="JSON of the indexed data fields")
    body = models.BinaryField(help_text="compressed JSON: the fields of its hash, its history")

    class Meta(BaseModel.Meta):
        indexes = [models.Index(fields=["machine", "-finished"], name="archived_by_time")]

    @classmethod
    def of(cls, found: FinishedInstance, index: Sequence[str], archived: int) -> ArchivedInstance:
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


def compress(found: FinishedInstance) -> bytes:
    """Compress the fields and the history of an instance. A step is JSON already and is put in as it is."""
    return zlib.compress(f'{{"i":{_compact(dict(found.raw))},"h":[{",".join(found.steps)}]}}'.encode(), LEVEL)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class ArchiveTotal(BaseModel):
    """Counted as instances are archived: counting ten million rows would take seconds."""

    machine = models.CharField(max_length=64, unique=True)
    instances = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0, help_text="of the bodies")
    last = models.BigIntegerField(default=0, help_text="ms since 1970: when the last one was archived")
