"""Writes commands and code of this project as pages show them, to be pasted as they are."""

import json
import sys
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl

from django.conf import settings

from machines.conf import conf
from machines.connections import get_prefix
from machines.engine.keys import PREFIX

from . import home
from .environment import is_own_site

PLAIN = "python manage.py"


def write_command(words: str) -> str:
    """Write the command line of a management command: ``python manage.py worker --settings shop.settings``."""
    if is_own_site():
        return f"{'signalbox' if home.IS_INSTALLED else PLAIN} {words}"
    module = settings.SETTINGS_MODULE
    return f"{PLAIN if _has_manage(module) else 'python -m django'} {words}" + f" --settings {module}" * bool(module)


def write_engine() -> str:
    """Write the call that makes an engine of this project's keys. Who pastes it knows user, password and options; the
    number of the database decides which keys these are."""
    url, _, query = conf.REDIS_URL.partition("?")
    scheme, mark, rest = url.partition("://")
    _, at, place = rest.rpartition("@")
    database = [f"?db={number}" for name, number in parse_qsl(query) if name == "db"]
    words = [json.dumps("".join([scheme, mark, "user:password@" * bool(at), place, *database[:1]]))]
    words += [f"prefix={json.dumps(get_prefix())}"] * (get_prefix() != PREFIX)
    return f"Engine.from_url({', '.join(words)})"


@cache
def _has_manage(module: str) -> bool:
    """Tell whether a ``manage.py`` lies above the settings, or here."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return any((folder / "manage.py").is_file() for folder in [Path(), *Path(file or "/").resolve().parents[:3]])
