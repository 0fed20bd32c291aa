"""A published version of a machine: written once, never changed."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import models
from django.utils.functional import cached_property

from machines import diagrams
from machines.engine.definitions import Outline, outline

from .document import DocumentField

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


class MachineVersion(models.Model):
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

    class Meta:
        ordering = ["machine", "-number"]
        default_permissions = ()
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
    return diagrams.draw(outline(json.loads(text))).svg
