"""Statistics by minute and by hour: differences of the engine's counters. Only ``machines.insight.statistics`` writes
them."""

from django.db import models

from machines.conf.base_model import BaseModel
from machines.conf.database import DocumentField


class Measurement(BaseModel):
    """What one machine did in one stretch of time.

    ``period`` says what stretch: a minute, an hour, or a gap, in which nobody looked so that only the sum is known.
    ``numbers``: ``{"edges": {"<version>:<transition>": n}, "refused": {event: n}, "queues": {queue: {"enqueued",
    "taken", "completed", "failed", "lost", "died", "waits": {magnitude: n}, "runs": {...}}}}``, without what is 0. The
    columns are their sums, of all queues together, so that a database can add them up.
    """

    class Period(models.IntegerChoices):
        GAP = 0
        MINUTE = 60
        HOUR = 3600

    machine = models.CharField(max_length=64)
    period = models.PositiveSmallIntegerField(choices=Period.choices)
    at = models.BigIntegerField(help_text="s since 1970: where the stretch begins")
    covered = models.PositiveBigIntegerField(default=0, help_text="ms of it that were measured")
    transitions = models.BigIntegerField(default=0)
    refused = models.BigIntegerField(default=0)
    enqueued = models.BigIntegerField(default=0)
    completed = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0, help_text="attempts that failed, or whose lease ran out")
    died = models.BigIntegerField(default=0)
    instances = models.BigIntegerField(default=0, help_text="how many there were at the end")
    numbers = DocumentField(default=dict)

    class Meta(BaseModel.Meta):
        constraints = [models.UniqueConstraint(fields=["machine", "period", "at"], name="one_measurement_of_a_stretch")]
        indexes = [models.Index(fields=["period", "at"], name="measurement_by_time")]


class CounterReading(BaseModel):
    """The counters of one machine as they were last read: what the next differences are taken from."""

    machine = models.CharField(max_length=64, unique=True)
    at = models.BigIntegerField(help_text="ms since 1970, by the clock of Redis")
    counters = DocumentField(default=dict)


class SamplingTurn(BaseModel):
    """One row, which every sampling changes first: of two at the same moment the second finds it changed."""

    number = models.BigIntegerField(default=0, help_text="how often something was written")
    at = models.BigIntegerField(default=0, help_text="ms since 1970, by the clock of Redis: the last sampling written")
    began = models.BigIntegerField(default=0, help_text="ms since 1970: the first sampling of all")
