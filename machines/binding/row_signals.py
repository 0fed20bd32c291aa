"""Follows the rows of bound models: a new one gets an instance, of a deleted one the instance is kept or deleted.

Receivers are connected to bound models alone: others keep Django's fast deletion.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db.models import Model
from django.db.models.signals import class_prepared, post_delete, post_save, pre_save

log = logging.getLogger(__name__)

RESTORED = "_signalbox_restored"  # on a row that a fixture brings, while it is saved
_UID = "machines.binding"


def connect() -> None:
    """Watch for models with a machine field, from now on."""
    class_prepared.connect(_connect_model, dispatch_uid=_UID)


def _connect_model(sender: type[Model], **_: Any) -> None:
    fields = [field for field in sender._meta.concrete_fields if getattr(field, "is_machine_field", False)]
    if not fields or sender._meta.abstract or sender.__module__ == "__fake__":
        return
    pre_save.connect(_note_restored, sender=sender, dispatch_uid=_UID)
    post_save.connect(_create_instances, sender=sender, dispatch_uid=_UID)
    post_delete.connect(_leave_instances, sender=sender, dispatch_uid=_UID)


def _note_restored(instance: Model, raw: bool, **_: Any) -> None:
    if raw:
        instance.__dict__[RESTORED] = True


def _create_instances(instance: Model, created: bool, raw: bool, using: str, **_: Any) -> None:
    """Have instances created once the row is committed. Rows of a fixture have theirs already, or get one later."""
    from . import outbox, registry

    instance.__dict__.pop(RESTORED, None)
    for field in registry.fields_of(type(instance)) if created and not raw else ():
        outbox.put_creation(field, instance, using)


def _leave_instances(instance: Model, using: str, **_: Any) -> None:
    from . import outbox, registry

    for field in registry.fields_of(type(instance)):
        id = str(field.id_field.to_python(getattr(instance, field.id_field.attname)))
        if field.on_delete == "delete":
            outbox.put_deletion(field, id, using)
        else:
            log.warning("a row of %s was deleted; its instance %s %s is kept", field.label, field.machine, id)
