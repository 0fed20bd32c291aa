"""Tables of the catalog: machines, their versions, drafts, stored plans, coverage; and the field for JSON documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.functional import cached_property

from machines import diagrams
from machines.conf.base_model import BaseModel
from machines.conf.database import DocumentField
from machines.engine.definitions import Outline, outline
from machines.engine.limits import MAX_INSTANCE_ID

if TYPE_CHECKING:
    from .coverage import Coverage


class Machine(BaseModel):
    """Written by ``machines.catalog.publishing`` alone, its policy by ``machines.catalog.versions.rollouts``. What
    instances do is in Redis, never here."""

    name = models.CharField(max_length=64, unique=True)
    description = models.TextField(blank=True, default="")
    current = models.PositiveIntegerField(help_text="number of the version that new instances get")
    created_at = models.DateTimeField(auto_now_add=True)
    adopted = models.BooleanField(default=False, help_text="first seen in Redis, where a script had published it")
    version_policy = models.JSONField(
        blank=True, default=list, null=True, help_text="actions on its versions that take a second person"
    )

    class Meta(BaseModel.Meta):
        ordering = ["name"]
        default_permissions = ("view",)
        permissions = [
            ("fire_machine", "Can fire events"),
            ("operate_machine", "Can operate (force, delete, queues)"),
            ("publish_machine", "Can publish definitions"),
            ("reveal_machine", "Can see fields marked sensitive"),
        ]

    def __str__(self) -> str:
        return self.name

    def version(self, number: int | None = None) -> MachineVersion:
        """Return a version that SQL has, the current one by default. Raises MachineVersion.DoesNotExist."""
        return self.versions.get(number=self.current if number is None else number)


KEPT = 32  # drawings in memory that are not stored yet
DRAWN = {"drawing", "drawing_format"}
"""The cached diagram: the one thing of a version that may be made again."""


class VersionIsImmutable(TypeError):
    """A published version was about to be changed or deleted. Publish a new one instead."""


class VersionQuerySet(models.QuerySet["MachineVersion"]):
    def update(self, **values: Any) -> int:
        if not values.keys() <= DRAWN:
            raise VersionIsImmutable(f"published versions never change: {', '.join(sorted(values))}")
        return super().update(**values)

    def delete(self) -> tuple[int, dict[str, int]]:
        raise VersionIsImmutable("published versions stay: instances and their history refer to them")


class MachineVersion(BaseModel):
    """``definition`` is the document as it was published; Redis holds the same, compiled."""

    machine = models.ForeignKey("machines.Machine", on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    definition = DocumentField()
    digest = models.CharField(max_length=12, help_text="of the compiled program")
    notes = models.TextField(blank=True, default="")
    published_at = models.DateTimeField(auto_now_add=True)
    published_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    drawing = models.TextField(blank=True, default="", editable=False)
    drawing_format = models.PositiveSmallIntegerField(default=0, editable=False)

    objects = VersionQuerySet.as_manager()

    class Meta(BaseModel.Meta):
        ordering = ["machine", "-number"]
        constraints = [models.UniqueConstraint(fields=["machine", "number"], name="one_version_of_a_number")]

    def __str__(self) -> str:
        return f"{self.machine} v{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise VersionIsImmutable(f"{self} is published and never changes")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise VersionIsImmutable(f"{self} is published and stays: instances and their history refer to it")

    @cached_property
    def outline(self) -> Outline:
        return outline(self.definition)

    @property
    def svg(self) -> str:
        """The diagram as it is stored. One that an older release drew, or nobody, is drawn here and kept in memory;
        ``machines.catalog.publishing.redraw`` stores it."""
        if self.drawing_format == diagrams.DRAWING:
            return self.drawing
        return _draw(json.dumps(self.definition), diagrams.DRAWING)


@lru_cache(maxsize=KEPT)
def _draw(text: str, way: int) -> str:
    """Draw the version. ``way``: how diagrams are drawn."""
    return diagrams.draw(outline(json.loads(text)))


class StoredCoverage(BaseModel):
    """The latest report for a definition. ``digest``: of its program, as ``MachineVersion.digest``, so that a report
    never counts for a version with other transitions. ``numbers``: ``machines.catalog.coverage.Coverage.as_dict``."""

    machine = models.CharField(max_length=64)
    digest = models.CharField(max_length=12)
    numbers = DocumentField(default=dict)
    recorded_at = models.DateTimeField(default=timezone.now)
    recorded_by = models.CharField(max_length=150, blank=True, default="")

    class Meta(BaseModel.Meta):
        constraints = [models.UniqueConstraint(fields=["machine", "digest"], name="one_coverage_of_a_definition")]

    @classmethod
    def record(cls, coverages: Iterable[Coverage], by: str) -> list[StoredCoverage]:
        """Store reports of a run; each replaces the one before for the same definition. ``by``: who or what ran it."""
        found = []
        for one in coverages:
            values = {"numbers": one.as_dict(), "recorded_at": timezone.now(), "recorded_by": by[:150]}
            row, _ = cls.objects.update_or_create(machine=one.machine, digest=one.digest, defaults=values)
            found.append(row)
        return found

    @classmethod
    def find(cls, machine: str, digest: str) -> StoredCoverage | None:
        """Find the report for a definition; None where there is none."""
        return cls.objects.filter(machine=machine, digest=digest).first()


class Draft(BaseModel):
    """Written by ``machines.catalog.versions.drafts`` alone.

    People are kept as text, as the audit keeps them. ``base``: the number of the version that was current when the
    draft was begun or rebased; NULL where there was no such machine. ``revision`` counts the writes.
    """

    class State(models.TextChoices):
        OPEN = "open", "open"
        PUBLISHED = "published", "published"
        DISCARDED = "discarded", "discarded"

    machine = models.CharField(max_length=64)
    base = models.PositiveIntegerField(null=True, blank=True)
    text = models.TextField()
    format = models.CharField(max_length=20, default="json")
    note = models.TextField(blank=True, default="")
    author = models.CharField(max_length=150)
    author_id = models.CharField(max_length=40, blank=True, default="")
    editor = models.CharField(max_length=150, blank=True, default="", help_text="who wrote it last")
    editor_id = models.CharField(max_length=40, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    revision = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=9, choices=State.choices, default=State.OPEN)
    published = models.PositiveIntegerField(null=True, blank=True, help_text="number of the version it became")
    closed_by = models.CharField(max_length=150, blank=True, default="", help_text="who published or discarded it")

    class Meta(BaseModel.Meta):
        ordering = ["-updated_at", "-id"]
        indexes = [models.Index(fields=["machine", "state", "-updated_at", "-id"], name="draft_by_machine")]

    def __str__(self) -> str:
        return f"draft {self.pk} of {self.machine} by {self.author} ({self.state})"

    @property
    def is_open(self) -> bool:
        return self.state == self.State.OPEN

    @property
    def digest(self) -> str:
        """Of the text: a request for approval covers exactly this one."""
        return hashlib.sha256(f"{self.format}\n{self.text}".encode()).hexdigest()[:16]


class Editing(BaseModel):
    """Who has the editor of a machine open. Written by ``machines.catalog.versions.editors`` alone. ``draft``: the
    number of the draft that they edit, NULL for one that is not kept yet; ``line`` and ``state``: of the cursor."""

    STATE = 100  # characters

    machine = models.CharField(max_length=64)
    draft = models.PositiveBigIntegerField(null=True, blank=True)
    who = models.CharField(max_length=150)
    who_id = models.CharField(max_length=40)
    line = models.PositiveIntegerField(null=True, blank=True)
    state = models.CharField(max_length=STATE, blank=True, default="", db_default="")
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta(BaseModel.Meta):
        constraints = [models.UniqueConstraint(fields=["machine", "who_id"], name="editing_once")]


class StoredPlan(BaseModel):
    """Written by ``machines.instances.plans`` alone. The plan itself never changes: another one is another row.

    ``plan``: as ``MigrationPlan.as_dict()`` has it; ``plan_id``: its id, the digest of its content. ``dry_run``: the
    last one, at ``dry_run_at``; it may hold values of instances. ``bulk``: the id of the bulk action that moves the
    instances, ``back``: of the one that moves them back. ``outcome``: the outcomes of the bulk once it has ended.
    """

    machine = models.CharField(max_length=64)
    to = models.PositiveIntegerField(help_text="number of the version to which it moves instances")
    plan = DocumentField()
    plan_id = models.CharField(max_length=12)
    note = models.TextField(blank=True, default="")
    author = models.CharField(max_length=150)
    author_id = models.CharField(max_length=40, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    dry_run = DocumentField(null=True, blank=True)
    dry_run_at = models.DateTimeField(null=True, blank=True)
    approved_by = models.CharField(max_length=150, blank=True, default="")
    approved_at = models.DateTimeField(null=True, blank=True)
    bulk = models.CharField(max_length=MAX_INSTANCE_ID, blank=True, default="")
    back = models.CharField(max_length=MAX_INSTANCE_ID, blank=True, default="")
    outcome = DocumentField(null=True, blank=True)

    class Meta(BaseModel.Meta):
        ordering = ["-created_at", "-id"]
        indexes = [models.Index(fields=["machine", "-created_at", "-id"], name="plan_by_machine")]

    def __str__(self) -> str:
        return f"plan {self.plan_id} of {self.machine} to v{self.to}"
