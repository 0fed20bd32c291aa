"""Reads what a definition says of the machine as a whole: ``retain``, ``index``, ``properties``, ``schedules``,
``accepts`` and ``approval``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from machines.engine import expressions, limits
from machines.engine.definitions.durations import read_duration
from machines.engine.definitions.fields import SCALARS, describe_types
from machines.engine.definitions.findings import Path, Report, quote
from machines.engine.definitions.model import Field, Property
from machines.engine.definitions.outline import FIRE
from machines.engine.definitions.place import Place, list_keys, require_key
from machines.engine.definitions.scope import Scope
from machines.engine.definitions.values import report_problems
from machines.engine.expressions import Node

_RETENTION_KEYS = ("finished", "most", "archive", "dead", "log")
_RETENTION_HINTS = {
    "history": 'write "history" beside "retain": the number of steps kept for each instance',
    "logs": 'write "log"',
    "age": 'write "finished"',
    "max": 'write "most"',
    "count": 'write "most"',
}


@dataclass(frozen=True, slots=True)
class Retention:
    """How much of a machine is kept. None: without a bound.

    ``finished``: ms for which an instance is kept after it ended; ``most``: finished instances that are kept, the
    newest; ``archive``: whether they are archived before they go (None: as the installation does); ``dead``: ms for
    which dead jobs are kept; ``log``: ms for which entries of the log are kept.
    """

    finished: int | None = None
    most: int | None = None
    archive: bool | None = None
    dead: int | None = None
    log: int | None = None

    def __bool__(self) -> bool:
        return any(bound is not None for bound in (self.finished, self.most, self.dead, self.log))

    def fill_from(self, default: Retention) -> Retention:
        """Return these bounds, and those of ``default`` where there is none."""
        own = {name: getattr(self, name) for name in _RETENTION_KEYS}
        return Retention(**{name: getattr(default, name) if bound is None else bound for name, bound in own.items()})


def read_retention(place: Place) -> Retention:
    """Read ``retain``, an age or an object. What is invalid is reported and left out."""
    if place.broken:
        return Retention()
    if isinstance(place.value, str):
        return Retention(finished=read_duration(place, None, 0, limits.MAX_AGE))
    if not place.is_object("an age or an object", 'write "30 days" or {"finished": "30 days", "most": 100000}'):
        return Retention()
    place.refuse_unknown(_RETENTION_KEYS, _RETENTION_HINTS)
    return Retention(
        finished=read_duration(place.part("finished"), None, 0, limits.MAX_AGE),
        most=place.part("most").whole(0, limits.MAX_RETAINED),
        archive=place.part("archive").flag(),
        dead=read_duration(place.part("dead"), None, 0, limits.MAX_AGE),
        log=read_duration(place.part("log"), None, 0, limits.MAX_AGE),
    )


def find_retention(definition: Mapping[str, Any]) -> Retention:
    """Return the bounds that a published definition declares."""
    if "retain" not in definition:
        return Retention()
    return read_retention(Place(definition["retain"], ("retain",), Report()))


IDS = "instance.id"
ACTOR = "instance.actor"
VERSION = "instance.version"
TRANSITION = "instance.transition"
#: what can be indexed beside data: the id, who acted last, the version of the machine, the transitions of the step that
#: led to each current state
FACTS = (IDS, ACTOR, VERSION, TRANSITION)


def read_index(place: Place, fields: dict[str, Field]) -> tuple[str, ...]:
    """Read the names of data fields and of FACTS, in order."""
    if not place.is_array("an array of data fields"):
        return ()
    if len(place.value) > limits.MAX_INDEXES:
        place.error("SB111", f"{len(place.value)} fields are indexed; at most {limits.MAX_INDEXES} are allowed")
        return ()
    found: list[str] = []
    for one in place.one_or_many():
        name = one.text("a data field's name")
        if name is None:
            continue
        if name in found:
            one.error("SB115", f"{quote(name)} is listed twice")
        elif _can_be_indexed(name, one, fields):
            found.append(name)
    return tuple(found)


def _can_be_indexed(name: str, place: Place, fields: dict[str, Field]) -> bool:
    if name in FACTS:
        return True
    field = fields.get(name)
    if field is None:
        known = FACTS if name.startswith("instance.") else fields
        place.report.add_unknown("SB102", place.path, "data field", name, known)
        return False
    wrong = [type_name for type_name in field.types if type_name not in (*SCALARS, "null")]
    if wrong or field.types == ("null",):
        hint = f"declare it as {', '.join(SCALARS[:-1])} or {SCALARS[-1]}; null may be added"
        place.error("SB124", f"the field {quote(name)} is {describe_types(field.types)}, which has no order", hint)
        return False
    return True


_PROPERTY_KINDS = ("never", "always", "leads")
MAX_PROPERTIES = 100
_PROPERTY_FORM = 'write {"never": "expression"}, {"always": "expression"} or {"leads": ["expression", "expression"]}'


def read_properties(place: Place, fields: dict[str, Field], states: Collection[str]) -> tuple[Property, ...]:
    """Read the properties of a machine. The name of a state stands for being in it."""
    if not place.is_array("a list of properties"):
        return ()
    if len(place.value) > MAX_PROPERTIES:
        place.error("SB111", f"{len(place.value)} properties; at most {MAX_PROPERTIES} are allowed")
        return ()
    return tuple(found for one in place.one_or_many() if (found := _read_property(one, fields, states)) is not None)


def _read_property(place: Place, fields: dict[str, Field], states: Collection[str]) -> Property | None:
    if not place.is_object("a property", _PROPERTY_FORM):
        return None
    place.refuse_unknown((*_PROPERTY_KINDS, "description"))
    kinds = [kind for kind in _PROPERTY_KINDS if kind in place]
    if len(kinds) != 1:
        place.error("SB106", f"a property has one of {', '.join(_PROPERTY_KINDS)}", _PROPERTY_FORM)
        return None
    inner = place.part(kinds[0])
    if inner.broken:
        return None
    if kinds[0] == "leads":
        if not inner.is_array("a list of two expressions"):
            return None
        parts = list(inner.one_or_many())
        if len(parts) != 2:
            inner.error("SB104", f"two expressions are needed, not {len(parts)}", _PROPERTY_FORM)
            return None
    else:
        parts = [inner]
    read = [_read_condition(part, fields, states) for part in parts]
    if any(one is None for one in read):
        return None
    return Property(kinds[0], tuple(str(part.value) for part in parts), tuple(one for one in read if one), place.path)


def _read_condition(place: Place, fields: dict[str, Field], states: Collection[str]) -> Node | None:
    text = place.text("an expression in quotes", "such as \"In('Paid')\", or the name of a state")
    if text is None:
        return None
    if text in states:
        return ["in", text]
    expression = expressions.read(text)
    report_problems(expression, place.path, place.report)
    if expression.problems:
        return None
    wrong = False
    for use in expression.uses:
        known: Collection[str] = {"data": fields, "state": states}.get(use.kind, ())
        if use.kind in ("data", "state") and use.name not in known:
            code, what = ("SB102", "data field") if use.kind == "data" else ("SB101", "state")
            place.report.add_unknown(code, place.path, what, use.name, known)
            wrong = True
    read = expressions.references(expression.tree)
    if outside := [name for name in ("event", "instance", "now", "trigger") if name in read]:
        place.error("SB109", f"a property is about data and states; {quote(outside[0])} changes with each event")
        wrong = True
    return None if wrong else expression.tree


MAX_SCHEDULES = 50
_SCHEDULE_FORM = 'write {"name": ..., "when": {"cron": "30 2 * * *"}, "what": {"do": "create"}}'


def read_schedules(place: Place) -> None:
    """Report what has the wrong shape."""
    if not place.is_array("a list of schedules"):
        return
    if len(place.value) > MAX_SCHEDULES:
        place.error("SB111", f"{len(place.value)} schedules; at most {MAX_SCHEDULES} are allowed")
        return
    names: set[str] = set()
    for one in place.one_or_many():
        if not one.is_object("a schedule", _SCHEDULE_FORM):
            continue
        one.refuse_unknown(list_keys("schedule"))
        for key in ("name", "when", "what"):
            if key not in one:
                one.error("SB106", f'"{key}" is missing', _SCHEDULE_FORM)
        given = one.part("name")
        if (name := given.text("a name")) is not None:
            if name in names:
                given.error("SB115", f"another schedule is called {quote(name)}", "rename one of them")
            names.add(name)
        for key in ("when", "what"):
            one.part(key).is_object("an object", _SCHEDULE_FORM)


_ANY = "*"
_ACCEPTS_FORM = 'write {"from": ["order", "billing"]}'


def read_accepts(place: Place, scope: Scope) -> dict[str, Path] | None:
    """Read the senders by full name, each with its path; None where the definition has no ``accepts``."""
    if not place.is_object("an object with from", _ACCEPTS_FORM):
        return None
    place.refuse_unknown(("from", "description"), {"machines": 'write "from"', "senders": 'write "from"'})
    listed = require_key(place, "from", _ACCEPTS_FORM)
    if not listed.is_array('a list of machines, such as ["order", "billing"]'):
        return {}
    if len(listed.value) > limits.MAX_SENDERS:
        listed.error("SB114", f"{len(listed.value)} machines; at most {limits.MAX_SENDERS} can be named")
        return {}
    return _read_senders(listed, scope)


def _read_senders(place: Place, scope: Scope) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for one in place.one_or_many():
        written = one.text("the name of a machine")
        if written is None:
            continue
        name = scope.machine_named(written)
        if name in found:
            one.error("SB115", f"{quote(written)} is listed twice")
        elif name != _ANY and (why := limits.check_machine_name(name)) is not None:
            one.error("SB107", f"the machine name {quote(name)} {why}", "write the name of a machine, or * for any")
        else:
            found[name] = one.path
    return found


REPAIRS = ("force", "edit", "reset", "retry", "skip", "cancel", "suspend", "resume", "delete")
"""As the methods of the engine are called."""

VERSIONING = ("publish", "migrate")
"""Actions on the machine: publish a definition, and move instances to another version."""


def is_action(name: object) -> bool:
    """Tell whether a name is one that ``approval`` can hold, whatever events a machine has."""
    return isinstance(name, str) and (name in REPAIRS or name in VERSIONING or name.startswith(FIRE))


def read_approval(place: Place) -> dict[str, Path]:
    """Read the actions that need approval, each with its path; events are checked once all of them were read."""
    if not place.is_array('a list of repairs and events, such as ["delete", "fire:refund"]'):
        return {}
    found: dict[str, Path] = {}
    for one in place.one_or_many():
        name = one.text("the name of a repair, or fire:<event>")
        if name is None:
            continue
        if name in found:
            one.error("SB115", f"{quote(name)} is listed twice")
        elif name.startswith(FIRE):
            if _can_be_fired(name.removeprefix(FIRE), one):
                found[name] = one.path
        elif name in REPAIRS or name in VERSIONING:
            found[name] = one.path
        else:
            one.report.add_unknown("SB125", one.path, "action", name, (*REPAIRS, *VERSIONING, "fire:<event>"))
    return found


def _can_be_fired(event: str, place: Place) -> bool:
    why = limits.check_external_event_name(event)
    if why is not None:
        hint, later = 'write "fire:" and the name of an event', limits.is_reserved_event(event)
        place.report.add("SB107", place.path, f"the event {quote(event)} {why}", hint, later=later)
    return why is None
