"""Settings and engine of a Django project during a test. Imports Django only where the project uses it."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from machines.engine import Engine

MOST_ENTRIES = 20  # of the outbox in a report


def is_django_project() -> bool:
    """Tell whether this process has set up Django with the app ``machines``."""
    registry = getattr(sys.modules.get("django.apps"), "apps", None)
    return registry is not None and registry.ready and registry.is_installed("machines")


@contextlib.contextmanager
def bind(engine: Engine, url: str, prefix: str) -> Iterator[None]:
    """Have ``machines.connections.get_engine()`` give ``engine``, and the settings name its server and prefix. Does
    nothing without Django."""
    if not is_django_project():
        yield
        return
    from django.conf import settings
    from django.test import override_settings

    from machines.connections import use_engine

    given = {**getattr(settings, "SIGNALBOX", {}), "REDIS_URL": url, "PREFIX": prefix, "TEST_PREFIX": "shared"}
    with override_settings(SIGNALBOX=given), use_engine(engine), _send_in_tests():
        yield


@contextlib.contextmanager
def _send_in_tests() -> Iterator[None]:
    """Have the transaction that Django puts around a test count as none: what rows ask for is sent at once, or when the
    transaction of the code under test ends. The database still forgets it after the test."""
    from django.db import connections
    from django.db.backends.base.base import BaseDatabaseWrapper

    from machines.integrations.binding import delivery, outbox, state_columns

    def is_in_transaction(using: str) -> bool:
        return any(not block._from_testcase for block in connections[using].atomic_blocks)

    def send(connection: Any) -> None:
        if not connection.in_atomic_block or is_in_transaction(connection.alias):
            return
        held, connection.run_on_commit = connection.run_on_commit, []
        for hook in held:
            if getattr(hook[1], "func", None) is delivery.send_soon:
                hook[1]()
            else:
                connection.run_on_commit.append(hook)

    def send_after_commit(field: Any, entry: Any, using: str, row: Any) -> None:
        put(field, entry, using, row)
        send(connections[using])

    def savepoint_commit(connection: Any, sid: str) -> None:
        release(connection, sid)
        send(connection)

    put, release = outbox._send_after_commit, BaseDatabaseWrapper.savepoint_commit
    with (
        mock.patch.object(state_columns, "is_in_transaction", is_in_transaction),
        mock.patch.object(outbox, "_send_after_commit", send_after_commit),
        mock.patch.object(BaseDatabaseWrapper, "savepoint_commit", savepoint_commit),
    ):
        yield


def list_app_folders() -> list[Path]:
    """List the folders of definitions of the installed apps; none without Django."""
    if not is_django_project():
        return []
    from machines.catalog.definition_files import list_folders

    return [folder for _, folder in list_folders()]


def update_rows(engine: Engine, *, reraise: bool = False) -> None:
    """Do what a worker does for rows with a machine field, until nothing is left: send the outbox, create the instances
    of rows without one, write the columns. Needs the database. Raises UnknownMachine; with ``reraise`` what the first
    entry failed with, or AssertionError for one that still waits and for a row that could not be created."""
    if not is_django_project():
        raise RuntimeError("update_rows is for Django projects with the app machines")
    from machines.integrations.binding import delivery, outbox, registry
    from machines.integrations.binding.reconcile import Reconcile
    from machines.signals import delivered

    failed: list[Any] = []

    def note(entry: Any, error: Exception | None, **_: Any) -> None:
        if entry.state == entry.State.FAILED:
            failed.append(error or AssertionError(f"{entry}: {entry.message}"))

    delivered.connect(note)
    try:
        for field in registry.list_fields():
            for using in field.databases():
                after = None
                while (after := outbox.create_missing(field, using, after=after)[1]) is not None:
                    pass
        for using in registry.list_aliases():
            while delivery.send_due(using):
                pass
        errors = [text for field in registry.list_fields() for text in Reconcile(engine, field).run().errors]
    finally:
        delivered.disconnect(note)
    if reraise:
        failed += [AssertionError(f"{entry}: {entry.message}") for entry in list_entries() if entry.waits]
        for error in failed + [AssertionError(text) for text in errors]:
            raise error


def list_entries(machine: str = "", id: str = "") -> list[Any]:
    """List the entries of the outbox that wait or failed, of one instance or of all. None where there is no database:
    what this adds to an error must not hide the error."""
    if not is_django_project():
        return []
    from django.db import transaction

    from machines.integrations.binding import registry
    from machines.integrations.binding.models import OutboxEntry

    wanted = {"machine": machine, "instance": id} if id else {}
    found: list[Any] = []
    for using in registry.list_aliases():
        with contextlib.suppress(Exception), transaction.atomic(using=using):
            rows = OutboxEntry.objects.using(using).filter(**wanted).exclude(state=OutboxEntry.State.DONE)
            found += rows.order_by("pk")[:MOST_ENTRIES]
    return found
