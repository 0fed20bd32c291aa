"""Settings and engine of a Django project during a test. Imports Django only where the project uses it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from machines.engine import Engine


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

    given = {**getattr(settings, "SIGNALBOX", {}), "REDIS_URL": url, "PREFIX": prefix}
    with override_settings(SIGNALBOX=given), use_engine(engine):
        yield


def list_app_folders() -> list[Path]:
    """List the folders of definitions of the installed apps; none without Django."""
    if not is_django_project():
        return []
    from machines.catalog.app_definitions import list_folders

    return [folder for _, folder in list_folders()]


def update_rows(engine: Engine) -> None:
    """Do what a worker does for rows with a machine field, until nothing is left: send the outbox, create the instances
    of rows without one, write the columns. Needs the database. Raises UnknownMachine."""
    if not is_django_project():
        raise RuntimeError("update_rows is for Django projects with the app machines")
    from machines.binding import delivery, outbox, registry
    from machines.binding.reconcile import Reconcile

    for field in registry.list_fields():
        for using in field.databases():
            outbox.put_missing(field, using)
    for using in registry.list_aliases():
        while delivery.send_due(using):
            pass
    for field in registry.list_fields():
        Reconcile(engine, field).run()
