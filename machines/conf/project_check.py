"""Django system checks of a project that has the app machines, with or without the pages."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from .project import find_foreign_dashboard
from .resolver import find_problems

TAG = "signalbox"
WORKER_TAG = "signalbox_worker"  # checks that a worker also runs at its start: none of them loads the pages


@register(TAG, WORKER_TAG)
def foreign_dashboard(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check for W023: the package dashboard belongs to another project."""
    return [Warning(one.text, hint=one.hint, id=one.id) for one in find_foreign_dashboard()]


@register(TAG, WORKER_TAG)
def configuration(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check for E016: a wrong name or value in the dict ``SIGNALBOX``, or a key of it written as a Django setting."""
    found = [(problem, "docs/settings.md has every key.") for problem in find_problems()]
    found += [
        (
            f"nothing reads {name} in Django's settings; settings of Signalbox are keys of the dict SIGNALBOX",
            f'Write SIGNALBOX = {{"{name.removeprefix("SIGNALBOX_")}": ...}}.',
        )
        for name in dir(settings)
        if name.startswith("SIGNALBOX_")
    ]
    return [Error(text, hint=hint, id="signalbox.E016") for text, hint in found]


@register(Tags.database)
def joined_migrations(app_configs: Any, databases: Iterable[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Check for E049: a database that had some of the migrations that were joined into one, and not all."""
    from django.db import connections
    from django.db.migrations.recorder import MigrationRecorder

    joined = set(import_module("machines.migrations.0001_squashed_0022").Migration.replaces)
    found: list[CheckMessage] = []
    for alias in databases or ():
        had = joined & set(MigrationRecorder(connections[alias]).applied_migrations())
        if had and had != joined:
            last, end = max(had)[1], max(joined)[1]
            text = f"the tables of the database {alias!r} are those of migration {last}, which is joined with others"
            hint = f"Take the last commit that has the file {end}.py, run `migrate` there, then take this one."
            found.append(Error(text, hint=hint, id="signalbox.E049"))
    return found
