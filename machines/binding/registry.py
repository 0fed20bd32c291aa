"""Lists the machine fields of a project."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import connections, models, router

from machines.models import OutboxEntry

if TYPE_CHECKING:
    from .field import MachineField


def list_fields() -> list[MachineField]:
    """List the fields of all installed models, each once: with the model that has the column."""
    every: Any = [field for model in apps.get_models() for field in model._meta.local_fields]
    return [field for field in every if is_machine_field(field)]


def is_machine_field(field: Any) -> bool:
    return getattr(field, "is_machine_field", False)


def fields_of(model: type[models.Model]) -> list[MachineField]:
    """List the fields of a model, those it inherits too."""
    return [field for field in model._meta.concrete_fields if is_machine_field(field)]  # type: ignore[misc]


def find_field(label: str) -> MachineField | None:
    """Find a field by its label, ``shop.Order.status``; None where the project has it no longer."""
    return next((field for field in list_fields() if field.label == label), None)


def field_of_machine(machine: str) -> MachineField | None:
    """Find the field that shows a machine; None where there is none."""
    return next((field for field in list_fields() if field.machine == machine), None)


def list_aliases() -> list[str]:
    """List the databases with rows that workers look after, as far as they have an outbox."""
    wanted = dict.fromkeys(alias for field in list_fields() for alias in field.databases())
    return [alias for alias in wanted if router.allow_migrate_model(alias, OutboxEntry)]


@cache
def locks_rows(alias: str) -> bool:
    """Tell whether a database can skip rows that another transaction has locked."""
    return bool(connections[alias].features.has_select_for_update_skip_locked)
