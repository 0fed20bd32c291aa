"""Encrypts every stored secret under the current key. Each value is replaced only where it is still the one that was
read, so a rotation runs beside a live installation, and a second time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.apps import apps
from django.db import models
from django.db.models.functions import Cast

from .ciphers import renew
from .fields import EncryptedTextField

Fields = Iterator[tuple[type[models.Model], EncryptedTextField]]


@dataclass(slots=True)
class Rotation:
    """The result for one field. ``current``: values that the current key had encrypted already; ``unreadable``: primary
    keys of rows whose value no key decrypts, which stays; ``changed``: others wrote the value meanwhile."""

    name: str
    renewed: int = 0
    current: int = 0
    changed: int = 0
    unreadable: list[object] = field(default_factory=list)


def list_fields() -> Fields:
    """List the encrypted fields of all models."""
    for model in apps.get_models():
        for found in model._meta.local_concrete_fields:
            if isinstance(found, EncryptedTextField):
                yield model, found


def rotate(model: type[models.Model], column: EncryptedTextField) -> Rotation:
    """Encrypt the values of a field under the current key."""
    report = Rotation(f"{model._meta.label}.{column.name}")
    rows = model._base_manager.annotate(stored=Cast(column.name, models.TextField()))
    held = rows.exclude(stored__in=column.EMPTY).exclude(stored=None)
    for pk, stored in held.order_by("pk").values_list("pk", "stored").iterator():
        new = renew(stored, column.purpose)
        if new is None:
            report.unreadable.append(pk)
        elif new == stored:
            report.current += 1
        elif rows.filter(pk=pk, stored=stored).update(**{column.name: models.Value(new, models.TextField())}):
            report.renewed += 1
        else:
            report.changed += 1
    return report
