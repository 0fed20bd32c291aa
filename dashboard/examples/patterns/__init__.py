"""The sections of the Patterns page: one module each, in the order they stand on the page.

A module has ``TITLE`` and ``TELLS`` (one sentence); ``MAKE``, a class or a function (redis, prefix) -> what its
``example`` takes; ``example``, a few lines that the page shows and a test runs; ``show(request)``, what its template
``patterns/<module>.html`` gets, with up to ``MOST_KEYS`` names of keys under ``keys``; and ``ACTS``: name of a POST ->
(request, its form) -> what came of it, in a sentence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from django.http import HttpRequest, QueryDict

ORDER = ("sessions", "write_buffer", "throttle", "ids", "locks", "bus", "cardinality", "scoreboard", "cas")
MOST_KEYS = 8


@dataclass(frozen=True, slots=True)
class Section:
    """``promises``: what the pattern's own module says of itself; ``source``: of its example."""

    name: str
    title: str
    tells: str
    promises: str
    source: str
    make: Callable[[Any, str], Any]
    example: Callable[[Any], Any]
    show: Callable[[HttpRequest], dict[str, Any]]
    acts: dict[str, Callable[[HttpRequest, QueryDict], str]]

    @property
    def template(self) -> str:
        return f"signalbox/patterns/{self.name}.html"


@cache
def sections() -> dict[str, Section]:
    """Name -> section."""
    return {name: _section(name) for name in ORDER}


def _section(name: str) -> Section:
    module: ModuleType = import_module(f"{__name__}.{name}")
    return Section(
        name=name,
        title=module.TITLE,
        tells=module.TELLS,
        promises=inspect.getdoc(import_module(f"machines.patterns.{name}")) or "",
        source=inspect.getsource(module.example),
        make=module.MAKE,
        example=module.example,
        show=module.show,
        acts=module.ACTS,
    )
