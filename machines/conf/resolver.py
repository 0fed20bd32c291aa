"""Resolves the dict ``SIGNALBOX`` of Django's settings: names and values checked, defaults filled in."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from .kinds import Unfit
from .table import SETTINGS, check_together

NAME = "SIGNALBOX"


class Conf:
    """The settings of the apps as attributes: ``conf.REDIS_URL``.

    A read raises ImproperlyConfigured with every problem of the dict, also of keys that were not asked for: a misspelt
    ``PREFIX`` must not send keys to the default one. The dict is read once; to change a key, assign another dict.
    """

    def __init__(self) -> None:
        self._held: tuple[Any, dict[str, Any]] = (object(), {})

    def __getattr__(self, name: str) -> Any:
        if name not in SETTINGS:
            raise AttributeError(f"no setting {name}; {suggest(name)}")
        given = _read_given()
        held, values = self._held
        if given is not held:
            values, problems = resolve({} if given is None else given)
            if problems:
                from django.core.exceptions import ImproperlyConfigured

                raise ImproperlyConfigured("\n".join(problems))
            self._held = (given, values)
        return values[name]


conf = Conf()


def _read_given() -> Any:
    """Return the dict of Django's settings; None if there is none, or if Django is not installed."""
    try:
        from django.conf import settings
    except ModuleNotFoundError:
        return None
    return getattr(settings, NAME, None)


def resolve(given: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the value of each setting, and a sentence for each name and value that does not fit."""
    if not isinstance(given, Mapping):
        return {}, [f"{NAME} in Django's settings is of the type {type(given).__name__}; it must be a dict"]
    problems = [
        f"{label(name)} in Django's settings: there is no such setting; {suggest(str(name))}"
        for name in given
        if name not in SETTINGS
    ]
    values = {}
    for name, setting in SETTINGS.items():
        try:
            values[name] = setting.read(label(name), given[name]) if name in given else setting.default
        except Unfit as error:
            problems.append(str(error))
    values["HOME"] = SETTINGS["HOME"].kind.read(label("HOME"), values.get("HOME", SETTINGS["HOME"].default))
    if not problems:
        try:
            check_together(values, label)
        except Unfit as error:
            problems.append(str(error))
    return values, problems


def find_problems() -> list[str]:
    """Return a sentence for each name and value in Django's settings that does not fit."""
    given = _read_given()
    return resolve({} if given is None else given)[1]


def label(name: Any) -> str:
    """Return the name of a key as its owner wrote it."""
    return f'{NAME}["{name}"]'


def suggest(name: str) -> str:
    """Return the setting that a misspelt name was probably meant to be, or all settings."""
    plain = name.removeprefix("SIGNALBOX_")
    close = [plain] if plain in SETTINGS else difflib.get_close_matches(plain.upper(), SETTINGS, n=1)
    return f"did you mean {close[0]}?" if close else f"there are {', '.join(SETTINGS)}"
