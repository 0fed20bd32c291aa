"""Describes a section of the Patterns page; one template renders all of them."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from random import Random
from typing import Any, NamedTuple

from django.http import HttpRequest, QueryDict

from dashboard.shared.addresses import REVISION_DIGITS, parse_number
from machines.connections import get_prefix, get_raw_client
from machines.engine import BadInput
from machines.engine.connection.client import Client
from machines.engine.pattern_keys import PatternKeys


class Form(NamedTuple):
    """Fields, and buttons for the acts of the section named in ``acts``. ``texts``: text fields with what they hold."""

    acts: Sequence[str]
    title: str = ""
    hidden: Mapping[str, Any] = {}
    choices: Mapping[str, Collection[Any]] = {}
    texts: Mapping[str, str] = {}

    @property
    def buttons(self) -> list[tuple[str, str]]:
        return [(act, act.replace("_", " ").capitalize()) for act in self.acts]


class Table(NamedTuple):
    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @property
    def columns(self) -> list[tuple[str, bool]]:
        return self._mark(self.heads)

    @property
    def cells(self) -> list[list[tuple[Any, bool]]]:
        return [self._mark(row) for row in self.rows]

    def _mark(self, row: Sequence[Any]) -> list[tuple[Any, bool]]:
        """Pair each cell with whether its column has numbers, which the first row tells."""
        return [(cell, isinstance(first, int | float)) for cell, first in zip(row, self.rows[0], strict=True)]


@dataclass(frozen=True, slots=True)
class View:
    """What a section shows now. ``keys``: names of keys that may be in Redis."""

    facts: Mapping[str, Any]
    hint: str
    forms: Sequence[Form]
    keys: Sequence[str]
    tables: Sequence[Table] = ()


class Section:
    """A pattern on the page. Each method ``do_<act>(request, form)`` is an act and returns a sentence on its result."""

    name: str
    title: str
    summary: str

    def show(self, request: HttpRequest) -> View:
        raise NotImplementedError

    def move(self, random: Random) -> None:
        """Do one small thing in bounded space, as the traffic of the demo does all the time."""
        raise NotImplementedError

    @property
    def guarantees(self) -> str:
        """Return what the module of the pattern says of itself."""
        return inspect.getdoc(import_module(f"machines.patterns.{self.name}")) or ""


def connect() -> tuple[Client, PatternKeys]:
    return get_raw_client(), PatternKeys(get_prefix())


def read_choice(form: QueryDict, name: str, allowed: Sequence[str]) -> str:
    value = form.get(name, "")
    if value not in allowed:
        raise BadInput(f"{name} is one of {', '.join(allowed)}, not {value!r:.40}", code="SB401")
    return value


def read_number(form: QueryDict, name: str) -> int:
    text = form.get(name, "")
    if (number := parse_number(text, REVISION_DIGITS)) is None:
        raise BadInput(f"{name} is a whole number, not {text!r:.40}", code="SB402")
    return number
