"""Lists the machine fields of a project."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import connections, models, router
from django.utils import timezone

from .models import OutboxEntry

if TYPE_CHECKING:
    from .field import MachineField

log = logging.getLogger(__name__)

UNKNOWN_FOR = timedelta(hours=1)  # in which a worker of the release before may meet entries of a new field
AGAIN = timedelta(seconds=10)  # between two looks at such an entry


def list_fields() -> list[MachineField]:
    """List the fields of all installed models, each once: with the model that has the column."""
    every: Any = [field for model in apps.get_models() for field in model._meta.local_fields]
    return [field for field in every if is_machine_field(field)]


def is_machine_field(field: Any) -> bool:
    return getattr(field, "is_machine_field", False)


def fields_of(model: type[models.Model]) -> list[MachineField]:
    """List the fields of a model, those it inherits too."""
    return [field for field in model._meta.concrete_fields if is_machine_field(field)]  # type: ignore[misc]


def field_of_machine(machine: str) -> MachineField | None:
    """Find the field that shows a machine; None where there is none."""
    return next((field for field in list_fields() if field.machine == machine), None)


def require_field(entry: OutboxEntry, using: str) -> MachineField | None:
    """Find the field of an entry that waits: by its label, else the only one that shows its machine, as after the
    field or its model was renamed. Where there is none, put the entry off, and once it is an hour old end it as failed;
    return None."""
    fields = list_fields()
    found = [field for field in fields if field.label == entry.field]
    found = found or [field for field in fields if field.machine == entry.machine]
    if len(found) == 1:
        return found[0]
    text = f"the project has no field {entry.field}, and {len(found) or 'none'} with the machine {entry.machine!r}"
    now = timezone.now()
    same = OutboxEntry.objects.using(using).filter(pk=entry.pk, state="waiting", claim=entry.claim, due=entry.due)
    if now - entry.made_at < UNKNOWN_FOR:
        if same.update(due=now + AGAIN, message=text) and entry.message != text:
            log.warning("%s waits: %s", entry, text)
    elif same.update(state="failed", outcome="no_field", message=text, payload={}, ended_at=now):
        entry.outcome = "no_field"
        log.warning("%s failed: %s", entry, text)
    return None


def list_outboxes() -> list[str]:
    """List the databases whose outbox may hold entries: those with rows, and those whose fields were removed."""
    others = [alias for alias in connections if router.allow_migrate_model(alias, OutboxEntry)]
    wanted = list_aliases()
    return [*wanted, *(alias for alias in others if alias not in wanted and _has_outbox(alias))]


def _has_outbox(alias: str) -> bool:
    return OutboxEntry._meta.db_table in connections[alias].introspection.table_names()


def list_aliases() -> list[str]:
    """List the databases with rows that workers look after, as far as they have an outbox."""
    wanted = dict.fromkeys(alias for field in list_fields() for alias in field.databases())
    return [alias for alias in wanted if router.allow_migrate_model(alias, OutboxEntry)]


@cache
def locks_rows(alias: str) -> bool:
    """Tell whether a database can skip rows that another transaction has locked."""
    return bool(connections[alias].features.has_select_for_update_skip_locked)
