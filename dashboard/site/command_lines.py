"""Writes commands and code of this project as pages show them, to be pasted as they are."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path

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
    """Write the call that makes an engine of this project's keys. Who pastes it knows user, password and options."""
    url = conf.REDIS_URL.partition("?")[0]
    scheme, mark, rest = url.partition("://")
    _, at, place = rest.rpartition("@")
    words = [json.dumps(f"{scheme}{mark}{'user:password@' if at else ''}{place}")]
    words += [f"prefix={json.dumps(get_prefix())}"] * (get_prefix() != PREFIX)
    return f"Engine.from_url({', '.join(words)})"


@cache
def _has_manage(module: str) -> bool:
    """Tell whether a ``manage.py`` lies above the settings, or here."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return any((folder / "manage.py").is_file() for folder in [Path.cwd(), *Path(file or "/").resolve().parents[:3]])
