"""System checks of machine fields."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.db import models, router

from machines.catalog import builtin_machines
from machines.catalog.queries import outline_from
from machines.conf import conf
from machines.conf.table import find_problems
from machines.connections import get_engine, get_prefix
from machines.engine import SignalboxError
from machines.engine.limits import check_machine_name

from . import registry
from .errors import ColumnGone
from .models import OutboxEntry

if TYPE_CHECKING:
    from .field import MachineField


def check_field(field: MachineField) -> list[checks.CheckMessage]:
    """Check one field without a server: its machine's name, its ids, its outbox, and that the machine has one field."""
    return [
        *check_name(field),
        *_check_ids(field),
        *_check_followed(field),
        *_check_shared(field),
        *_check_outbox(field),
    ]


def check_machines(**_: Any) -> list[checks.CheckMessage]:
    """Warn of fields whose machine is not published. Without Redis one warning says that nobody looked."""
    fields = registry.list_fields()
    if not fields or find_problems():  # of the settings; another check says them
        return []
    if get_prefix() != conf.PREFIX:  # a test process publishes in its tests
        return []
    try:
        published = get_engine().machines()
    except SignalboxError as error:
        names = ", ".join(sorted({field.machine for field in fields}))
        text = f"whether the machines {names} are published could not be checked: {error}"
        return [checks.Warning(text, hint="Start Redis, or check REDIS_URL.", id="signalbox.W041")]
    unknown = [_report_unknown(field, published) for field in fields if field.machine not in published]
    known = (field for field in fields if field.follows and field.machine in published)
    return [*unknown, *(warning for field in known for warning in _check_declared(field))]


def _check_declared(field: MachineField) -> list[checks.CheckMessage]:
    """Warn of columns that a field follows and no guard of the published definition can read."""
    data = outline_from(json.dumps(get_engine().definition(field.machine))).data
    missing = [name for name in field.follows if name not in {one.name for one in data}]
    text = f"{field.label} follows {', '.join(missing)}, which the published definition of {field.machine!r} does not"
    hint = "Declare the field in `context`, or remove it from follows=. New rows get no instance until then."
    return [checks.Warning(f"{text} declare", hint=hint, obj=field, id="signalbox.W039")] if missing else []


def _report_unknown(field: MachineField, published: Any) -> checks.CheckMessage:
    known = ", ".join(sorted(published)) or "none"
    text = f"{field.label} shows the machine {field.machine!r}, which is not published"
    hint = "Publish it (`manage.py machine sync` publishes the files in statemachines/), or correct the name; "
    hint += f"published are: {known}. New rows wait in the outbox until then."
    return checks.Warning(text, hint=hint, obj=field, id="signalbox.W042")


def check_name(field: MachineField) -> list[checks.CheckMessage]:
    why = check_machine_name(field.machine)
    if field.machine in builtin_machines.NAMES:
        why = "is the product's own, whose instances its own pages and services change"
    return [] if why is None else [checks.Error(f"the machine {field.machine!r} {why}", obj=field, id="signalbox.E043")]


def _check_ids(field: MachineField) -> list[checks.CheckMessage]:
    hint = "id_from names a field of the model that is unique and not null, such as 'pk' or a unique number."
    try:
        found = field.model._meta.pk if field.id_from == "pk" else field.model._meta.get_field(field.id_from)
    except FieldDoesNotExist:
        found = None
    usable = isinstance(found, models.Field) and found.concrete and (found.unique or found.primary_key)
    if usable and isinstance(found, models.Field) and found.column and not found.null:
        return []
    message = f"{field.model._meta.label} has no single unique column {field.id_from!r} for the ids of its instances"
    return [checks.Error(message, hint=hint, obj=field, id="signalbox.E044")]


def _check_followed(field: MachineField) -> list[checks.CheckMessage]:
    try:
        field.list_followed()
    except ColumnGone as error:
        hint = "Until then its events are refused, its rows are not saved, and what waits in the outbox stays there."
        return [checks.Error(error.message, hint=hint, obj=field, id="signalbox.E038")]
    return []


def _check_shared(field: MachineField) -> list[checks.CheckMessage]:
    others = [one.label for one in registry.list_fields() if one.machine == field.machine and one.label != field.label]
    text = f"{field.label} and {', '.join(others)} show one machine, {field.machine!r}"
    hint = "Rows of both would share instances of the same ids: publish a machine for each, or keep one field."
    return [checks.Error(text, hint=hint, obj=field, id="signalbox.E045")] if others else []


def _check_outbox(field: MachineField) -> list[checks.CheckMessage]:
    wrong = [alias for alias in field.databases() if not router.allow_migrate_model(alias, OutboxEntry)]
    text = f"the database {', '.join(wrong)} of {field.label} has no outbox"
    hint = "What a transaction asks for is written beside its rows: let the router migrate 'machines' there."
    return [checks.Error(text, hint=hint, obj=field, id="signalbox.E046")] if wrong else []
