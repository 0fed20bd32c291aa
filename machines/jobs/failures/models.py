"""Groups of failures and their counts. Only ``machines.jobs.failures`` writes them.

No row holds a message, a traceback or an id of an instance: those are read from the dead jobs, as far as these are
kept.
"""

from django.db import models

from machines.conf.base_model import BaseModel
from machines.conf.database import DocumentField

NAME = 200


class FailureGroup(BaseModel):
    """Failures of one handler with one exception and one shape of message, on all machines.

    ``shape`` is empty for a machine with sensitive fields: its messages may hold their values. Times are ms since 1970.
    """

    class State(models.TextChoices):
        OPEN = "open", "open"
        MUTED = "muted", "muted"
        RESOLVED = "resolved", "resolved"

    key = models.CharField(max_length=64, unique=True)
    handler = models.CharField(max_length=NAME)
    kind = models.CharField(max_length=NAME, blank=True, default="")
    shape = models.CharField(max_length=300, blank=True, default="")
    first_seen = models.BigIntegerField()
    last_seen = models.BigIntegerField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    assignee = models.CharField(max_length=150, blank=True, default="")
    changed_by = models.CharField(max_length=150, blank=True, default="", help_text="who muted or resolved it")
    changed_at = models.BigIntegerField(default=0)
    muted_versions = DocumentField(
        default=dict, blank=True, help_text="machine -> versions concerned when it was muted"
    )
    unmuted_by = models.CharField(max_length=200, blank=True, default="", help_text="the change that ended the mute")
    resolved_at = models.BigIntegerField(default=0, help_text="the last time it was resolved; kept after a regression")
    regressed_at = models.BigIntegerField(default=0, help_text="its first failure after that")

    class Meta(BaseModel.Meta):
        indexes = [
            models.Index(fields=["state", "-last_seen"], name="failure_group_by_state"),
            models.Index(fields=["handler", "kind"], name="failure_group_by_handler"),
        ]

    def __str__(self) -> str:
        return f"{self.handler}: {self.kind} ({self.state})"

    @property
    def is_regression(self) -> bool:
        return self.state == self.State.OPEN and self.regressed_at > self.resolved_at > 0


class FailurePart(BaseModel):
    """The failures of a group on one machine: what a person sees of a group is the sum over their machines."""

    group = models.ForeignKey(FailureGroup, on_delete=models.CASCADE, related_name="parts")
    machine = models.CharField(max_length=64)
    count = models.BigIntegerField(default=0, help_text="jobs that died")
    attempts = models.BigIntegerField(default=0, help_text="attempts of these jobs")
    first_seen = models.BigIntegerField()
    last_seen = models.BigIntegerField()
    versions = DocumentField(default=list, blank=True)
    queues = DocumentField(default=list, blank=True)

    class Meta(BaseModel.Meta):
        constraints = [models.UniqueConstraint(fields=["group", "machine"], name="one_part_of_a_failure_group")]
        indexes = [models.Index(fields=["machine", "-last_seen"], name="failure_part_by_machine")]


class FailureHour(BaseModel):
    """Deaths of one group on one machine in one hour: the trend. ``hour``: hours since 1970."""

    group = models.ForeignKey(FailureGroup, on_delete=models.CASCADE, related_name="hours")
    machine = models.CharField(max_length=64)
    hour = models.PositiveIntegerField()
    count = models.BigIntegerField(default=0)

    class Meta(BaseModel.Meta):
        constraints = [models.UniqueConstraint(fields=["group", "machine", "hour"], name="one_hour_of_a_failure_group")]
        indexes = [models.Index(fields=["hour"], name="failure_hour_by_age")]


class FailedJob(BaseModel):
    """One death of a job that was counted: there is never a second row of it. ``open``: whether the job was still dead
    and unhandled at ``checked``."""

    group = models.ForeignKey(FailureGroup, on_delete=models.CASCADE, related_name="jobs")
    machine = models.CharField(max_length=64)
    queue = models.CharField(max_length=64)
    job = models.CharField(max_length=40)
    died = models.BigIntegerField()
    open = models.BooleanField(default=True)
    checked = models.BigIntegerField(default=0)

    class Meta(BaseModel.Meta):
        constraints = [models.UniqueConstraint(fields=["machine", "job", "died"], name="one_count_of_a_death")]
        indexes = [
            models.Index(fields=["group", "open", "-died"], name="failed_job_by_group"),
            models.Index(fields=["open", "checked"], name="failed_job_by_check"),
            models.Index(fields=["died"], name="failed_job_by_age"),
        ]


class FailurePosition(BaseModel):
    """How far the dead jobs of one queue of one partition were counted: ``died`` in ms."""

    machine = models.CharField(max_length=64)
    partition = models.PositiveIntegerField()
    queue = models.CharField(max_length=64)
    died = models.BigIntegerField(default=0)

    class Meta(BaseModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["machine", "partition", "queue"], name="one_position_of_a_queue")
        ]


class FailureAction(BaseModel):
    """A retry or a skip of open jobs, or an action on jobs that a search found, which a worker carries out at a rate.

    ``group``: None for jobs of several groups, whose machine and queue are in ``terms``. ``jobs``: numbers of rows of
    ``FailedJob``, or, with a ``place`` in ``terms``, ids of jobs with the time they came there; fixed at the start,
    and none once all were dealt with. ``position``: how many of them were dealt with.
    """

    class State(models.TextChoices):
        RUNNING = "running", "running"
        DONE = "done", "done"
        STOPPED = "stopped", "stopped"

    group = models.ForeignKey(FailureGroup, on_delete=models.CASCADE, related_name="actions", null=True, blank=True)
    ACTIONS = {
        "redrive": "Retry", "skip": "Skip", "move": "Run now", "withdraw": "Withdraw", "delay": "Delay",
        "reroute": "Move to another queue",
    }  # fmt: skip
    action = models.CharField(max_length=10, choices=list(ACTIONS.items()))
    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING)
    actor = models.CharField(max_length=150)
    person = models.BooleanField(default=True, help_text="whether rules for people hold")
    reason = models.TextField()
    rate = models.PositiveIntegerField(help_text="max jobs per second")
    terms = DocumentField(default=dict, blank=True, help_text="result of skipped jobs; which jobs, without a group")
    machines = DocumentField(default=list, blank=True)
    jobs = DocumentField(default=list, blank=True)
    position = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    passed = models.PositiveIntegerField(default=0, help_text="jobs that were not dead any more, or were refused")
    error = models.CharField(max_length=200, blank=True, default="", help_text="code of the last refusal")
    started = models.BigIntegerField()
    updated = models.BigIntegerField()

    class Meta(BaseModel.Meta):
        indexes = [models.Index(fields=["state", "started"], name="failure_action_by_state")]

    def __str__(self) -> str:
        return f"{self.action} of group {self.group_id or 'any'}: {self.position} of {self.total}"

    @property
    def total(self) -> int:
        return len(self.jobs) or self.position
