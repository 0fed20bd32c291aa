"""Reads and checks ``accepts`` (the machines that may send to this machine's instances and invoke it) and
``approval`` (the repairs and events of a person, and changes of versions, that need a second person's approval)."""

from __future__ import annotations

from machines.engine import limits

from .model import Machine
from .outline import FIRE, is_match
from .place import Place
from .program import list_descriptors, list_known_events
from .report import Path, Report, quote
from .scope import Scope

ANY = "*"
_SHAPE = 'write {"from": ["order", "billing"]}'


def read_accepts(place: Place | None, scope: Scope) -> dict[str, Path] | None:
    """Read the senders by full name, each with its path; None where the definition has no ``accepts``."""
    if place is None or not place.is_object("an object with from", _SHAPE):
        return None
    place.refuse_unknown(("from", "description"), {"machines": 'write "from"', "senders": 'write "from"'})
    if "from" not in place:
        place.report.add("SB106", place.below("from"), '"from" is missing', _SHAPE)
        return {}
    listed = place.at("from")
    if not listed.is_array('a list of machines, such as ["order", "billing"]'):
        return {}
    if len(listed.value) > limits.MAX_SENDERS:
        listed.error("SB114", f"{len(listed.value)} machines; at most {limits.MAX_SENDERS} can be named")
        return {}
    return _read_names(listed, scope)


def _read_names(place: Place, scope: Scope) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for one in place.one_or_many():
        written = one.text("the name of a machine")
        if written is None:
            continue
        name = scope.machine_named(written)
        if name in found:
            one.error("SB115", f"{quote(written)} is listed twice")
        elif name != ANY and (why := limits.check_machine_name(name)) is not None:
            one.error("SB107", f"the machine name {quote(name)} {why}", "write the name of a machine, or * for any")
        else:
            found[name] = one.path
    return found


def review_accepts(machine: Machine, report: Report) -> None:
    path = (machine.accepts or {}).get(ANY)
    if path is not None:
        message = "every machine, of any publisher, may send to this one and invoke it"
        report.add("SB216", path, message, "name the machines that do")


REPAIRS = ("force", "edit", "reset", "retry", "skip", "cancel", "suspend", "resume", "delete")
"""As the methods of the engine are called."""

VERSIONING = ("publish", "migrate")
"""Actions on the machine: publish a definition, and move instances to another version."""


def read_approval(place: Place | None) -> dict[str, Path]:
    """Read the actions that need approval, each with its path; events are checked once all of them were read."""
    if place is None or not place.is_array('a list of repairs and events, such as ["delete", "fire:refund"]'):
        return {}
    found: dict[str, Path] = {}
    for one in place.one_or_many():
        name = one.text("the name of a repair, or fire:<event>")
        if name is None:
            continue
        if name in found:
            one.error("SB115", f"{quote(name)} is listed twice")
        elif name.startswith(FIRE):
            if _is_event(name.removeprefix(FIRE), one):
                found[name] = one.path
        elif name in REPAIRS or name in VERSIONING:
            found[name] = one.path
        else:
            one.report.add_unknown("SB125", one.path, "action", name, (*REPAIRS, *VERSIONING, "fire:<event>"))
    return found


def review_approval(machine: Machine, report: Report) -> None:
    known = list_known_events(machine)
    listened = [event for transition, event in list_descriptors(machine) if transition.cause == "on"]
    for name, path in machine.approval.items():
        event = name.removeprefix(FIRE)
        if event == name or any(is_match(descriptor, event) for descriptor in listened):
            continue
        if not any(is_match(event, one) for one in known):
            report.add_unknown("SB125", path, "event", event, known)


def _is_event(event: str, place: Place) -> bool:
    why = limits.check_external_event_name(event)
    if why is not None:
        hint, later = 'write "fire:" and the name of an event', limits.is_reserved_event(event)
        place.report.add("SB107", place.path, f"the event {quote(event)} {why}", hint, later=later)
    return why is None
