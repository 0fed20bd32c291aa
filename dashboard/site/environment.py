"""Typed readers of environment variables, for Signalbox's own site.

A value that does not fit stops the start with an ``ImproperlyConfigured`` that names the variable,
shows what it holds (secrets are not shown) and says what would fit. An empty value counts as not given.
The rules are those of ``machines.conf.kinds``.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from machines.conf.kinds import CheckedText, Choice, Flag, Kind, Unfit, Url, Words
from machines.conf.table import SETTINGS, check_together


class Environment:
    """Reads settings out of ``values``; ``names`` lists every one that was ever asked for, in order."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.names: list[str] = []

    def signalbox(self, **defaults: Any) -> dict[str, Any]:
        """Build the dict ``SIGNALBOX``: each setting that has a variable. ``defaults``: these replace the table's."""
        found: dict[str, Any] = {}
        for name, setting in SETTINGS.items():
            if setting.variable:
                default = defaults.get(name, setting.default)
                found[name] = self._read(setting.variable, setting.kind, default, secret=setting.secret)
        try:
            check_together(found, lambda name: SETTINGS[name].variable)
        except Unfit as error:
            raise ImproperlyConfigured(str(error)) from None
        return found

    def text(self, name: str, default: str = "") -> str:
        self._note(name)
        value = self._values.get(name, "").strip()
        if "\0" in value:
            raise ImproperlyConfigured(f"{name} holds a NUL byte")
        return value or default

    def secret(self, name: str, default: str = "") -> str:
        """Return the value of ``NAME``, or the content of the file that ``NAME_FILE`` names; never both."""
        value, path = self.text(name), self.text(f"{name}_FILE")
        if value and path:
            raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; keep one of them")
        return (_read_content(f"{name}_FILE", path) if path else value) or default

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(self._read(name, Flag(), default))

    def words(self, name: str, default: Iterable[str] = ()) -> list[str]:
        """Read a list, separated by commas."""
        return list(self._read(name, Words(), []) or default)

    def choice(self, name: str, default: str, allowed: Iterable[str]) -> str:
        return str(self._read(name, Choice(tuple(allowed)), default))

    def url(self, name: str, default: str, schemes: Iterable[str]) -> str:
        """Read a URL of one of ``schemes``; return ``""`` when there is none and no default. It may come from a
        file."""
        return str(self._read(name, Url(tuple(schemes)), default, secret=True))

    def check(self, name: str, default: str, fits: Callable[[str], bool], wanted: str) -> str:
        """Read a text for which ``fits`` holds; ``wanted`` says in words what that is."""
        return str(self._read(name, CheckedText(fits, wanted), default))

    def _read(self, name: str, kind: Kind, default: Any, *, secret: bool = False) -> Any:
        value = self.secret(name) if secret else self.text(name)
        if not value:
            return default
        try:
            return kind.parse(name, value)
        except Unfit as error:
            raise ImproperlyConfigured(str(error)) from None

    def _note(self, name: str) -> None:
        if name not in self.names:
            self.names.append(name)


@lru_cache(maxsize=1)
def of_process() -> Environment:
    """Return the environment of this process, as the settings of Signalbox's own site read it."""
    return Environment(os.environ)


def is_own_site() -> bool:
    """Tell whether this process runs on the settings of Signalbox's own site, and not on those of another project."""
    return bool(of_process().names)


def _read_content(name: str, path: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(f"{name}={path!r} cannot be read: {error}") from None
    if not text:
        raise ImproperlyConfigured(f"{name}={path!r} is an empty file")
    return text
