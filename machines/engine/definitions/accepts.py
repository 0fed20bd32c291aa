"""``accepts`` of a machine: which other machines may send to its instances, and invoke it."""

from __future__ import annotations

from .. import limits
from .model import Machine
from .path import Path, quote
from .place import Place
from .report import Report
from .scope import Scope

ANY = "*"
_SHAPE = 'write {"from": ["order", "billing"]}'


def read_accepts(place: Place | None, scope: Scope) -> dict[str, Path] | None:
    """The senders by full name, each with where it stands; None where nothing is said."""
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


def review(machine: Machine, report: Report) -> None:
    path = (machine.accepts or {}).get(ANY)
    if path is not None:
        message = "every machine may send to this one, and invoke it, whoever publishes them"
        report.add("SB216", path, message, "name the machines that do")
