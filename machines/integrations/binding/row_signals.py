"""Follows the rows of bound models: a new one gets an instance, of a deleted one the instance is kept or deleted.

Receivers are connected to bound models alone: others keep Django's fast deletion.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from django.db import connections
from django.db.models import Model
from django.db.models.signals import class_prepared, post_delete, post_save, pre_save

from machines.engine import BadInput

from . import state_columns

if TYPE_CHECKING:
    from .field import MachineField

log = logging.getLogger(__name__)

BEFORE = "_signalbox_before"  # on a row, while it is saved: name of a field -> what the columns that it follows were
RESTORED = "_signalbox_restored"  # on a row that a fixture brings, while it is saved
_UID = "machines.integrations.binding"


def connect() -> None:
    """Watch for models with a machine field, from now on."""
    class_prepared.connect(_connect_model, dispatch_uid=_UID)


def _connect_model(sender: type[Model], **_: Any) -> None:
    fields = [field for field in sender._meta.concrete_fields if getattr(field, "is_machine_field", False)]
    if not fields or sender._meta.abstract or sender.__module__ == "__fake__":
        return
    pre_save.connect(_check_saved, sender=sender, dispatch_uid=_UID)
    post_save.connect(_follow_save, sender=sender, dispatch_uid=_UID)
    post_delete.connect(_leave_instances, sender=sender, dispatch_uid=_UID)


def _check_saved(
    instance: Model, raw: bool, using: str, update_fields: Collection[str] | None = None, **_: Any
) -> None:
    """Refuse ids that no instance can have, and other ids than before; note what followed columns are before the save.
    A fixture brings its rows as they are."""
    from . import registry

    if raw:
        instance.__dict__[RESTORED] = True
        return
    for field in registry.fields_of(type(instance)):
        named = {field.id_field.name, field.id_field.attname}
        if update_fields is None or named & set(update_fields):
            field.demand_id(instance)
            if not (field.id_field.primary_key or instance._state.adding):
                _demand_same_id(field, instance, using)
        followed = [
            column.attname
            for column in field.list_followed()
            if update_fields is None or column.generated or {column.name, column.attname} & set(update_fields)
        ]
        if followed and instance.pk is not None:
            row = state_columns.rows(field, using).filter(pk=instance.pk)
            if connections[using].in_atomic_block and connections[using].features.has_select_for_update:
                row = row.select_for_update()  # else another transaction may change them in between
            instance.__dict__.setdefault(BEFORE, {})[field.name] = row.values(*followed).first()


def _demand_same_id(field: MachineField, row: Model, using: str) -> None:
    name = field.id_field.attname
    value = getattr(row, name)
    before = state_columns.rows(field, using).filter(pk=row.pk).values_list(name, flat=True).first()
    if state_columns.check_id(before) is not None or hasattr(value, "resolve_expression"):
        return
    if before != field.id_field.to_python(value):
        raise BadInput(
            f"{field.label}: the row's instance is {before!r}, by {field.id_field.name}, which cannot become {value!r}:"
            f" the row would lose its instance. Make a new row, or take id_from= of a field that nobody edits"
        )


def _follow_save(instance: Model, created: bool, raw: bool, using: str, **_: Any) -> None:
    """Have the instance of a new row created once it is committed, and that of a changed one brought up to it. Rows of
    a fixture have theirs already, or get one later."""
    from . import outbox, registry

    instance.__dict__.pop(RESTORED, None)
    before = instance.__dict__.pop(BEFORE, {})
    for field in registry.fields_of(type(instance)) if not raw else ():
        if created:
            outbox.put_creation(field, instance, using)
        elif any(_is_changed(instance, name, value) for name, value in (before.get(field.name) or {}).items()):
            outbox.put(field, instance, field.find_id(instance), using, "follow")


def _is_changed(row: Model, name: str, before: Any) -> bool:
    """Tell whether a save may have changed a column. What an expression or the database made of it is not known before
    it is read."""
    column = row._meta.get_field(name)
    if column.generated:
        return True
    value = getattr(row, name)
    return hasattr(value, "resolve_expression") or column.to_python(value) != before


def _leave_instances(instance: Model, using: str, **_: Any) -> None:
    from . import outbox, registry

    for field in registry.fields_of(type(instance)):
        value = getattr(instance, field.id_field.attname)
        if state_columns.check_id(value) is not None:
            continue  # it had no instance
        id = field.find_id(instance)
        if field.on_delete == "delete":
            outbox.put(field, None, id, using, "delete", reason=f"its row of {field.label} was deleted")
        else:
            log.warning("a row of %s was deleted; its instance %s %s is kept", field.label, field.machine, id)
