"""Grants senders to machines that are older than ``accepts``: what was in use is granted once, with a warning.

A version that declares ``accepts`` ends what was granted. SQL keeps a copy for a Redis that loses its data.
"""

import json
import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from machines.connections import get_engine
from machines.engine import Engine, UnknownMachine
from machines.engine.definitions import Recipient

from .models import Machine

log = logging.getLogger(__name__)

Uses = Mapping[str, Collection[Recipient]]


@dataclass(frozen=True, slots=True)
class GrantedSenders:
    """``uses``: sender -> where its definition sends to the machine, or invokes it."""

    machine: str
    uses: Uses

    def __str__(self) -> str:
        where = ", ".join(f"{name} ({next(iter(at)).path})" for name, at in sorted(self.uses.items()))
        return f"{self.machine} is sent to by {where}; it goes on. Add to its definition: {line(self.uses)}"


def line(senders: Iterable[str]) -> str:
    """Return what a definition says to accept these machines."""
    return f'"accepts": {json.dumps({"from": sorted(senders)})}'


def takes(machine: str, sender: str) -> bool:
    """Tell whether a machine accepts another one, by its definition or by what was granted; false where there is
    none."""
    engine = get_engine()
    try:
        found = engine.acceptance(machine)
        if found.declared is None and found.granted is None:
            grant_used()  # else the first sender would be accepted without a grant
            found = engine.acceptance(machine)
    except UnknownMachine:
        return False
    return found.takes(sender)


def grant_used() -> list[GrantedSenders]:
    """Look once at each machine that was published before there was ``accepts``: who sends to it by the current
    definitions goes on. Two round trips where every machine was looked at."""
    engine = get_engine()
    waiting = [name for name, granted in engine.list_granted().items() if granted is None]
    return _grant(engine, waiting) if waiting else []


def _grant(engine: Engine, names: Iterable[str]) -> list[GrantedSenders]:
    """Grant machines what they use, but for those that another process has looked at meanwhile."""
    senders = engine.senders()
    found = [GrantedSenders(name, senders.known.get(name, {})) for name in names]
    for one in found:
        held = engine.grant(one.machine, one.uses, once=True)
        Machine.objects.filter(name=one.machine).update(granted=list(held))
        if one.uses:
            log.warning("%s", one)
    for name, at in senders.unknown.items():
        log.warning(
            "%s computes the machine it sends to or invokes (%s): where that is another one, name %s under its accepts",
            name, ", ".join(one.path for one in at), name,
        )  # fmt: skip
    return [one for one in found if one.uses]


def give_back(engine: Engine, machine: Machine) -> None:
    """Restore grants in a Redis that has lost the machine, and has got its versions back. One that was never looked at
    is again."""
    engine.grant(machine.name, machine.granted)
