"""Stores what a schedule does: a hash in the partition of its instance.

What is run is read from here and never from the data of the instance: a schedule stands here only when an account that
may do what it does gave it. An account that may only create instances and fire events cannot have others moved by a
schedule of its own making.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from machines.engine import Engine, Permit
from machines.engine.errors import UnknownMachine
from machines.engine.keys import choose_partition
from machines.engine.storage import Storage
from machines.people.transition_groups import Groups

from . import document as documents
from .document import Schedule
from .errors import UnknownSchedule

SCHEDULES = "schedules"
"""The machine whose instances are schedules."""
PEOPLE = "people"
"""The source of what people and programs made; others are modules, and ``the definition of <machine>``."""


@dataclass(frozen=True, slots=True)
class Order:
    """A schedule with its author. ``person``: whether a person made it, so that rules for people hold; ``groups``:
    theirs at that time. ``made`` and ``changed``: ms."""

    schedule: Schedule
    source: str = PEOPLE
    author: str = ""
    person: bool = False
    groups: Groups = None
    made: int = 0
    changed: int = 0

    @property
    def is_declared(self) -> bool:
        return self.source != PEOPLE

    def permit(self) -> Permit | None:
        """Return what the engine holds each event to; None for a program's."""
        return Permit(self.groups) if self.person else None

    def encode(self) -> str:
        groups = None if self.groups is None else sorted(self.groups)
        facts = {name: getattr(self, name) for name in ("source", "author", "person", "made", "changed")}
        document = {**facts, "groups": groups, "anchor": self.schedule.anchor, "schedule": self.schedule.as_dict()}
        return json.dumps(document, separators=(",", ":"))


@lru_cache(maxsize=256)
def decode(text: str) -> Order:
    """Decode a schedule once: each occurrence reads it."""
    found: dict[str, Any] = json.loads(text)
    schedule = documents.read(found.pop("schedule"), anchor=found.pop("anchor"))
    groups = found.pop("groups")
    return Order(schedule, groups=None if groups is None else frozenset(groups), **found)


class Store:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._storage = Storage(engine.client)
        self._count: int | None = None

    def put(self, order: Order) -> None:
        self._storage.command("HSET", self._find_key(order.schedule.name), "order", order.encode())

    def remove(self, name: str) -> None:
        self._storage.command("UNLINK", self._find_key(name))

    def find(self, name: str) -> Order | None:
        try:
            text = self._storage.command("HGET", self._find_key(name), "order")
        except UnknownMachine:
            return None
        return None if text is None else decode(text)

    def get(self, name: str) -> Order:
        """Return a schedule. Raises UnknownSchedule."""
        order = self.find(name)
        if order is None:
            raise UnknownSchedule(name)
        return order

    def get_with_time(self, name: str) -> tuple[Order, int]:
        """Return the schedule and ms of the server's clock. Raises UnknownSchedule."""
        key = self._find_key(name)
        text, (seconds, micros) = self._storage.commands([(key, ("HGET", key, "order")), (key, ("TIME",))])
        if text is None:
            raise UnknownSchedule(name)
        return decode(text), int(seconds) * 1000 + int(micros) // 1000

    def read_time(self, name: str) -> int:
        """Return ms of the server's clock."""
        key = self._find_key(name)
        seconds, micros = self._storage.commands([(key, ("TIME",))])[0]
        return int(seconds) * 1000 + int(micros) // 1000

    def read(self, names: Sequence[str]) -> Mapping[str, Order]:
        """Return the schedules of several names, in one round trip; those that are gone are left out."""
        if not names:
            return {}
        keys = [self._find_key(name) for name in names]
        texts = self._storage.commands([(key, ("HGET", key, "order")) for key in keys])
        return {name: decode(text) for name, text in zip(names, texts, strict=True) if text is not None}

    def _find_key(self, name: str) -> str:
        if self._count is None:
            self._count = self._engine.count_partitions(SCHEDULES)
        return self._engine.keys.partition(SCHEDULES, choose_partition(name, self._count)).schedule(name)
