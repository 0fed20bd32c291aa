"""``approval`` of a machine: the repairs and events for which a person needs a second one's consent."""

from __future__ import annotations

from .. import limits
from .model import Machine
from .outline import matches
from .path import Path, quote
from .place import Place
from .program import descriptors, known_events
from .report import Report

REPAIRS = ("force", "edit", "reset", "retry", "skip", "cancel", "suspend", "resume", "delete")
"""As the methods of the engine are called."""

FIRE = "fire:"


def read_approval(place: Place | None) -> dict[str, Path]:
    """What is named, each with where it stands; whether there are such events is seen once all of them were read."""
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
        elif name in REPAIRS:
            found[name] = one.path
        else:
            one.report.unknown("SB125", one.path, "repair", name, (*REPAIRS, "fire:<event>"))
    return found


def review(machine: Machine, report: Report) -> None:
    known = known_events(machine)
    listened = [event for transition, event in descriptors(machine) if transition.cause == "on"]
    for name, path in machine.approval.items():
        event = name.removeprefix(FIRE)
        if event == name or any(matches(descriptor, event) for descriptor in listened):
            continue
        if not any(matches(event, one) for one in known):
            report.unknown("SB125", path, "event", event, known)


def _is_event(event: str, place: Place) -> bool:
    why = limits.check_external_event_name(event)
    if why is not None:
        hint, later = 'write "fire:" and the name of an event', limits.is_reserved_event(event)
        place.report.add("SB107", place.path, f"the event {quote(event)} {why}", hint, later=later)
    return why is None
