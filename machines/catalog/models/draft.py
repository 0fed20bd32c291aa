"""Drafts of definitions: texts that are not published yet, with author, base version and a note; and who is editing."""

from __future__ import annotations

import hashlib

from django.db import models
from django.utils import timezone


class Draft(models.Model):
    """Written by ``machines.versions.drafts`` alone.

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

    class Meta:
        ordering = ["-updated_at", "-id"]
        default_permissions = ()
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


class Editing(models.Model):
    """Who has the editor of a machine open. Written by ``machines.versions.presence`` alone. ``draft``: the
    number of the draft that they edit, NULL for one that is not kept yet."""

    machine = models.CharField(max_length=64)
    draft = models.PositiveBigIntegerField(null=True, blank=True)
    who = models.CharField(max_length=150)
    who_id = models.CharField(max_length=40)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["machine", "who_id"], name="editing_once")]

    def __str__(self) -> str:
        return f"{self.who} edits {self.machine}"
