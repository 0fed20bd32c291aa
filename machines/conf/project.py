"""What the apps need in the settings of their project, as far as the settings alone can show it, and the system
checks of a project that has the app machines, with or without the pages."""

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from .table import conf, find_problems

APPS = ("django.contrib.contenttypes", "django.contrib.auth", "guardian")
PAGE_APPS = ("django.contrib.sessions", "django.contrib.messages", "django.contrib.staticfiles")
MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
)
PROCESSORS = (
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
)
BACKEND = "guardian.backends.ObjectPermissionBackend"
# Writers wait their turn instead of failing with "database is locked"; readers never wait for a writer.
SQLITE_OPTIONS = {
    "timeout": 20,  # seconds
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
}
TEMPLATES = "django.template.backends.django.DjangoTemplates"
BESIDE = (
    "Run Signalbox beside your project, as a process of its own (`signalbox serve`), and use the engine alone here: "
    "docs/add-to-your-project.md#beside."
)


class Finding(NamedTuple):
    """Something the project lacks: ``id`` of the system check, what is missing, what to do."""

    id: str
    text: str
    hint: str


def find_missing(*, loaded: bool = True) -> Iterator[Finding]:
    """Find every app, middleware, context processor and backend that is missing.

    ``loaded``: apps are ready, so that subclasses of a middleware count, too; before that, names alone do.
    """
    pages = apps.is_installed("dashboard") and is_own_package("dashboard")
    for name in (*APPS, *(PAGE_APPS if pages else ())):
        if not apps.is_installed(name):
            yield Finding("signalbox.E017", f"INSTALLED_APPS lacks {name}", f'Add "{name}" to INSTALLED_APPS.')
    if pages:
        yield from _find_middleware(loaded)
        yield from _find_processors()
    if BACKEND not in settings.AUTHENTICATION_BACKENDS:
        text = f"AUTHENTICATION_BACKENDS lacks {BACKEND}: permissions on single machines do not count everywhere"
        yield Finding("signalbox.W020", text, f'Add "{BACKEND}" behind the other backends.')
    if getattr(settings, "ANONYMOUS_USER_NAME", "AnonymousUser") is not None:
        text = "guardian makes an account AnonymousUser, which Signalbox does not use"
        yield Finding("signalbox.W025", text, "Set ANONYMOUS_USER_NAME = None, or silence this check if you use it.")


def _find_middleware(loaded: bool) -> Iterator[Finding]:
    given = settings.MIDDLEWARE
    missing = [
        name
        for name in MIDDLEWARE
        if name not in given and not (loaded and any(_is_kind_of(each, name) for each in given))
    ]
    if missing:
        order = ", ".join(f'"{name}"' for name in MIDDLEWARE)
        hint = f"Add what is missing to MIDDLEWARE. The order is {order}."
        yield Finding("signalbox.E018", f"MIDDLEWARE lacks {', '.join(missing)}", hint)


def _is_kind_of(name: str, wanted: str) -> bool:
    """Tell whether one middleware is a subclass of another."""
    try:
        kind, base = import_string(name), import_string(wanted)
    except ImportError:
        return False
    return isinstance(kind, type) and issubclass(kind, base)


def _find_processors() -> Iterator[Finding]:
    engines = [engine for engine in settings.TEMPLATES if engine.get("BACKEND") == TEMPLATES]
    if not engines:
        yield Finding("signalbox.E019", f"TEMPLATES lacks {TEMPLATES}", "Add it, with APP_DIRS: beside others is fine.")
    for name in PROCESSORS:
        if engines and not any(name in engine.get("OPTIONS", {}).get("context_processors", ()) for engine in engines):
            hint = f'Add "{name}" to OPTIONS["context_processors"] of {TEMPLATES}.'
            yield Finding("signalbox.E019", f"TEMPLATES lacks the context processor {name}", hint)


def demand_apps() -> None:
    """Raise ImproperlyConfigured if models could not be loaded, with everything else that is missing."""
    found = list(find_missing(loaded=False))
    if any(finding.id == "signalbox.E017" for finding in found):
        lines = [f"  {finding.text}. {finding.hint} ({finding.id})" for finding in found]
        raise ImproperlyConfigured("Signalbox cannot start in this project:\n" + "\n".join(lines))


def find_foreign_dashboard() -> Iterator[Finding]:
    """Find an app ``dashboard`` of another project: a process can load only one package of that name."""
    if apps.is_installed("dashboard") and not is_own_package("dashboard"):
        place = next(iter(import_module("dashboard").__path__), "an unknown place")
        text = f"the package dashboard at {place} is not Signalbox's: its pages cannot be in this project"
        yield Finding("signalbox.W023", text, BESIDE)


def is_own_package(name: str) -> bool:
    """Tell whether the package of that name lies beside this one, as Signalbox's packages do."""
    found: Any = import_module(name)
    ours = Path(__file__).resolve().parents[2] / name
    return any(Path(place).resolve() == ours for place in getattr(found, "__path__", ()))


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
    _, is_database, alias = ("" if found else str(conf.INSIGHT)).partition("database:")
    if is_database and alias not in settings.DATABASES:
        found.append((f'SIGNALBOX["INSIGHT"] names the database {alias!r}', "Add it to DATABASES, or write default."))
    found += [
        (
            f"nothing reads {name} in Django's settings; settings of Signalbox are keys of the dict SIGNALBOX",
            f'Write SIGNALBOX = {{"{name.removeprefix("SIGNALBOX_")}": ...}}.',
        )
        for name in dir(settings)
        if name.startswith("SIGNALBOX_")
    ]
    return [Error(text, hint=hint, id="signalbox.E016") for text, hint in found]


@register(TAG, WORKER_TAG)
def sqlite_options(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Check for W029: writers of an SQLite database that fail with "database is locked" in place of waiting."""
    from django.db import connections, router

    found: list[CheckMessage] = []
    for alias in connections:
        given = connections[alias].settings_dict
        name, options = str(given["NAME"]), given["OPTIONS"]
        in_memory = name == ":memory:" or "mode=memory" in name
        if connections[alias].vendor != "sqlite" or in_memory or not router.allow_migrate(alias, "machines"):
            continue
        missing = {}
        if str(options.get("transaction_mode") or "").upper() not in ("IMMEDIATE", "EXCLUSIVE"):
            missing["transaction_mode"] = SQLITE_OPTIONS["transaction_mode"]
        command = str(options.get("init_command") or "").strip().removesuffix(";")
        modes = re.findall(r"journal_mode\s*[=(]\s*['\"]?(\w+)", command, re.I)
        if (modes[-1].lower() if modes else _read_journal_mode(name)) != "wal":
            missing["init_command"] = f"{command}; {SQLITE_OPTIONS['init_command']}".removeprefix("; ")
        if missing:
            text = f'writers of the SQLite database {alias!r} meet "database is locked" in place of waiting their turn'
            wanted = ", ".join(f'"{name}": {json.dumps(value)}' for name, value in missing.items())
            hint = f'Set in DATABASES["{alias}"]["OPTIONS"], beside what is there: {wanted}.'
            found.append(Warning(text, hint=hint, id="signalbox.W029"))
    return found


def _read_journal_mode(name: str) -> str:
    """Read how a database file keeps its journal, which stays from one connection to the next; "" without a file."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"{Path(name).absolute().as_uri()}?mode=ro", uri=True)) as db,
    ):
        return str(db.execute("PRAGMA journal_mode").fetchone()[0])
    return ""


@register(Tags.database)
def check_migrations(app_configs: Any, databases: Iterable[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
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
