"""Archived instances, and how many there are of each machine. Only ``machines.instances.archive`` writes them."""

from django.db import models

from machines.conf.base_model import BaseModel
from machines.engine.limits import MAX_INSTANCE_ID


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


class ArchiveTotal(BaseModel):
    """Counted as instances are archived: counting ten million rows would take seconds."""

    machine = models.CharField(max_length=64, unique=True)
    instances = models.BigIntegerField(default=0)
    bytes = models.BigIntegerField(default=0, help_text="of the bodies")
    last = models.BigIntegerField(default=0, help_text="ms since 1970: when the last one was archived")
