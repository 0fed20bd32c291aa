"""Lists the senders that a machine accepts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.http import HttpRequest

from dashboard.shared.access import Scope, scope_of
from dashboard.shared.addresses.page_addresses import find_page_address
from dashboard.shared.redacted_engine import RedactedEngine
from machines.catalog.accepted_senders import line
from machines.catalog.redaction import MASK
from machines.engine import Acceptance

ANY = "*"


@dataclass(frozen=True, slots=True)
class Sender:
    """Holds a sender. ``url`` is empty if the viewer may not open it, or if it is no single machine."""

    name: str
    why: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class AcceptedSenders:
    """Holds the senders. ``line``: what the definition should declare in place of the grants; empty without any."""

    senders: list[Sender]
    line: str


def read_senders(request: HttpRequest, engine: RedactedEngine, machine: str) -> AcceptedSenders:
    """Read the senders in one round trip. Raise UnknownMachine."""
    found, scope = engine.acceptance(machine), scope_of(request.user)
    granted = found.granted or () if found.declared is None else ()
    seen = [name for name in granted if name != MASK]
    own = Sender("itself, parents and children", "always")
    return AcceptedSenders(
        [own, *_list_declared(found, scope), *_list_granted(found, seen)], line(seen) if seen else ""
    )


def _list_declared(found: Acceptance, scope: Scope) -> Iterator[Sender]:
    for name in found.declared or ():
        if name == ANY:
            yield Sender("any machine", "everyone who may publish it")
        else:
            yield Sender(name, "named by the definition", _make_url(name, scope))


def _list_granted(found: Acceptance, seen: list[str]) -> Iterator[Sender]:
    """Yield the granted senders. Those that the viewer may not see are counted only."""
    if found.declared is not None:
        return
    for name in seen:
        yield Sender(name, "granted automatically", find_page_address("signalbox:machine", name))
    hidden = len(found.granted or ()) - len(seen)
    if hidden:
        yield Sender(f"{hidden} more", "granted, not visible to you")
    if found.granted is None:
        yield Sender("any machine", "until a worker has recorded the senders")


def _make_url(name: str, scope: Scope) -> str:
    return find_page_address("signalbox:machine", name) if name in scope else ""
