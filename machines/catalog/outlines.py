"""Caches the outlines of published versions. A published version never changes."""

from __future__ import annotations

import json
from functools import lru_cache

from machines.engine.definitions import Outline, outline
from machines.engine.errors import UnknownMachine
from machines.models import MachineVersion

from . import publishing

KEPT = 256  # outlines in memory


def stored(machine: str, version: int, *, without: tuple[str, ...] = ()) -> MachineVersion:
    """A version's row, its fields ``without`` not read. Raises UnknownMachine.

    A version that a script published straight into Redis is taken in first.
    """
    versions = MachineVersion.objects.filter(machine__name=machine, number=version).defer(*without)
    found = versions.first()
    if found is None:
        publishing.adopt(machine)
        found = versions.first()
    if found is None:
        raise UnknownMachine(machine, version=version)
    return found


def outline_of(machine: str, version: int) -> Outline:
    """Raises UnknownMachine."""
    return outline_from(json.dumps(stored(machine, version, without=("drawing",)).definition))


def every_outline(machine: str) -> list[Outline]:
    """Those of all versions of a machine that SQL has, the newest first."""
    found = MachineVersion.objects.filter(machine__name=machine).only("definition").order_by("-number")
    return [outline_from(json.dumps(version.definition)) for version in found]


@lru_cache(maxsize=KEPT)
def outline_from(text: str) -> Outline:
    """Of a definition as JSON."""
    return outline(json.loads(text))
