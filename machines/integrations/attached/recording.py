"""Collects what happens to rows and hands it on once it is committed.

A transition waits on its row until the row is saved, then in the transaction: what a rollback takes back, of the whole
or to a savepoint, is never recorded. Changes of one transaction go out together, unless savepoints part them.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from django.db import connections, models, transaction
from django.db.models.signals import class_prepared, post_delete, post_save

from machines.audit.request_context import current_request
from machines.engine import limits

from . import registry
from .libraries import MadeTransition, plain
from .registry import Attachment, Change

PENDING = "_signalbox_transitions"
ARGUMENTS = ("by", "user")
LOGGED = "__django_fsm_log_attr_"
"""Where django-fsm-log keeps ``by`` and ``description`` on a row while a transition runs."""
_UID = "machines.integrations.attached"
_acting: ContextVar[tuple[Any, str]] = ContextVar("attached_actor", default=(None, ""))


class Batch:
    """The changes of one transaction, or of one savepoint in it: row by row, in their order."""

    def __init__(self, using: str) -> None:
        self.using = using
        self.changes: dict[str, dict[Any, Change]] = {}

    def change(self, attachment: Attachment, pk: Any) -> Change:
        return self.changes.setdefault(attachment.machine, {}).setdefault(pk, Change())

    def __call__(self) -> None:
        from . import mirror

        for machine, changes in self.changes.items():
            if (attachment := registry.find(machine)) is not None:
                mirror.record(attachment, changes, self.using)


def connect(attachment: Attachment) -> None:
    """Follow a model, its proxies and its children. Other models keep their fast deletion."""
    attachment.library.connect(_note_transition)
    class_prepared.connect(_note_class, dispatch_uid=_UID)
    for model in _family(attachment.model):
        _follow(model)


def disconnect(attachment: Attachment) -> None:
    for model in _family(attachment.model):
        if not registry.list_of(model):
            post_save.disconnect(sender=model, dispatch_uid=_UID)
            post_delete.disconnect(sender=model, dispatch_uid=_UID)


def _family(model: type[models.Model]) -> list[type[models.Model]]:
    return [model, *(one for child in model.__subclasses__() for one in _family(child))]


def _note_class(sender: type[models.Model], **_: Any) -> None:
    if registry.list_of(sender):
        _follow(sender)


def _follow(model: type[models.Model]) -> None:
    post_save.connect(_note_save, sender=model, dispatch_uid=_UID)
    post_delete.connect(_note_deletion, sender=model, dispatch_uid=_UID)


def _note_transition(row: models.Model, field_name: str, heard: MadeTransition) -> None:
    for attachment in registry.list_of(type(row)):
        if attachment.field_name == field_name:
            actor, reason = find_actor(row, heard.arguments), find_reason(row, heard.arguments)
            made = replace(heard, arguments={}, actor=actor, reason=reason)
            row.__dict__.setdefault(PENDING, {}).setdefault(attachment.machine, []).append(made)


def _note_save(
    sender: type[models.Model], instance: models.Model, created: bool, using: str,
    update_fields: Collection[str] | None = None, **_: Any,
) -> None:  # fmt: skip
    for attachment in registry.list_of(sender):
        written = None if created or update_fields is None else set(update_fields)
        pending = []
        if attachment.is_written([attachment.field_name], written):  # else its transitions wait for the save that does
            pending = instance.__dict__.get(PENDING, {}).pop(attachment.machine, [])
        if pending and pending[-1].begins and pending[-1].target not in (None, plain(attachment.value_of(instance))):
            pending = []  # it was refused, or raised, after it had begun
        if created or pending or attachment.is_written(attachment.columns, written):
            _put(attachment, instance, using, pending, created=created)


def _note_deletion(sender: type[models.Model], instance: models.Model, using: str, **_: Any) -> None:
    for attachment in registry.list_of(sender):
        _put(attachment, instance, using, [], deleted=True)


def _put(
    attachment: Attachment, row: models.Model, using: str, transitions: list[MadeTransition],
    *, created: bool = False, deleted: bool = False,
) -> None:  # fmt: skip
    connection = connections[using]
    batch = _find_batch(connection)
    made = batch or Batch(using)
    change = made.change(attachment, row.pk)
    change.transitions += transitions
    change.created |= created
    change.deleted |= deleted
    change.actor = find_actor(row, {})
    if batch is None:
        transaction.on_commit(made, using, robust=True)


def _find_batch(connection: Any) -> Batch | None:
    """Return the last batch of the transaction, where it shares the fate of what is written now."""
    if not connection.in_atomic_block:
        return None
    for savepoints, function, *_ in reversed(connection.run_on_commit):
        if isinstance(function, Batch):
            return function if savepoints == set(connection.savepoint_ids) else None
    return None


@contextmanager
def acting_as(user: Any, reason: str = "") -> Iterator[None]:
    """Name a user, or a program, for the transitions of a block, and a reason for those that give none."""
    outer = _acting.set((user, reason))
    try:
        yield
    finally:
        _acting.reset(outer)


def find_actor(row: Any, arguments: Mapping[str, Any]) -> str:
    """Return the name of who makes a transition; "" where nobody said it."""
    given = [arguments.get(name) for name in ARGUMENTS]
    request = current_request.get()
    for user in (*given, getattr(row, LOGGED + "by", None), _acting.get()[0], getattr(request, "user", None)):
        if name := _name(user):
            return name[: limits.MAX_ACTOR]
    return ""


def find_reason(row: Any, arguments: Mapping[str, Any]) -> str:
    given = arguments.get("description") or getattr(row, LOGGED + "description", None) or _acting.get()[1]
    return given[: limits.MAX_REASON] if isinstance(given, str) else ""


def _name(user: Any) -> str:
    if isinstance(user, str):
        return user
    if user is None or not getattr(user, "is_authenticated", False):
        return ""
    return str(user.get_username())
