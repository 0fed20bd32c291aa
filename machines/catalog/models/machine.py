"""A machine: its name, and facts about its current version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models

if TYPE_CHECKING:
    from .version import MachineVersion


class Machine(models.Model):
    """Written by ``machines.catalog.publishing`` alone, its policy by ``machines.versions.policy``. What
    instances do is in Redis, never here."""

    name = models.CharField(max_length=64, unique=True)
    description = models.TextField(blank=True, default="")
    current = models.PositiveIntegerField(help_text="number of the version that new instances get")
    created_at = models.DateTimeField(auto_now_add=True)
    adopted = models.BooleanField(default=False, help_text="first seen in Redis, where a script had published it")
    granted = models.JSONField(
        blank=True,
        default=list,
        null=True,
        help_text="machines that go on sending to it since they did before its definition named any",
    )
    """Their names; NULL where nobody has looked yet: see ``machines.catalog.accepted_senders``."""
    version_policy = models.JSONField(
        blank=True, default=list, null=True, help_text="actions on its versions that take a second person"
    )

    class Meta:
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
