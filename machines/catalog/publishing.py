"""Publishes versions: the same versions under the same numbers, in SQL for people and in Redis for instances.

Redis gives the numbers, so that programs without Django publish too. Whichever side lacks a version gets it
from the other: ``adopt`` fills SQL, ``restore`` fills Redis, and ``publish`` does both for its machine first.
"""

import json
import logging
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from machines import diagrams
from machines.connections import get_engine
from machines.engine.definitions import CompiledDefinition, compile_definition, find_embedded
from machines.engine.errors import DefinitionError, SignalboxError, UnknownMachine

from . import submissions
from .models import Machine, MachineVersion
from .submissions import Submission

log = logging.getLogger(__name__)


class Diverged(SignalboxError):
    """SQL and Redis hold different definitions under one number; ``machine`` and ``version`` name it.

    It takes a Redis that lost its data and got a script's publication before ``restore`` ran, or two sites on
    one prefix.
    """

    code = "SB460"

    def __init__(self, machine: str, version: int) -> None:
        super().__init__(
            f"version {version} of {machine!r} is one definition in SQL and another one in Redis",
            machine=machine,
            version=version,
        )


@dataclass(frozen=True, slots=True)
class Publication:
    """A definition that can be published. ``along``: the machines it brings along that are new or change by it, by
    name, inner ones first; those that stay as they are are not written."""

    compiled: CompiledDefinition
    along: dict[str, CompiledDefinition]

    @property
    def name(self) -> str:
        return str(self.compiled.source["id"])

    @property
    def own(self) -> set[str]:
        """The names of all machines in it."""
        return {self.name, *self.compiled.along}


def publish(
    definition: object | CompiledDefinition, *, user: AbstractBaseUser | None = None, notes: str = ""
) -> MachineVersion:
    """Check a definition, make it the machine's current version, record it; before it, those it brings along. The same
    document is the same version. It asks nobody's right: ``machines.catalog.versions.publication`` does.

    Raises DefinitionError with every finding, Diverged, EngineUnavailable. Should SQL fail after Redis
    succeeded, calling again records what Redis has.
    """
    publication = prepare(definition)
    for inner in publication.along.values():
        write(inner, user=user, notes=notes)
    return write(publication.compiled, user=user, notes=notes)


def prepare(definition: object | CompiledDefinition) -> Publication:
    """Check a definition, and find what publishing it would write. Writes nothing. One that is compiled is not read
    again.

    Raises DefinitionError with every finding, EngineUnavailable.
    """
    submission = Submission.of(definition)
    compiled = submission.compiled
    if compiled is None:
        raise DefinitionError(list(submission.findings))
    return Publication(compiled, {name: inner for name, inner in compiled.along.items() if not is_current(name, inner)})


def write(
    compiled: CompiledDefinition, *, user: AbstractBaseUser | None = None, notes: str = "", rollout: float | None = None
) -> MachineVersion:
    """Publish one machine of a Publication, without those it brings along. ``rollout``: per cent of new instances that
    get the version. Raises Diverged, EngineUnavailable."""
    name = compiled.source["id"]
    for known in (*find_embedded(compiled.source), name):
        restore(known)
    try:
        number = _find_number(adopt(name), compiled)
    except UnknownMachine:
        number = None
    engine = get_engine()
    if rollout is None:
        published = engine.publish(compiled, version=number, alone=True)
    else:
        who = {"actor": user.get_username() if user is not None else "", "reason": notes}
        published = engine.publish(compiled, version=number, alone=True, rollout=rollout, **who)
    version = _record(name, published.version, compiled, user=user, notes=notes)
    current = engine.live(name).version  # a roll-out, or a pin, leaves another one current
    if current != version.number:
        _make_current(version.machine, version.machine.versions.get(number=current))
    submissions.follow(engine, name)
    return version


def adopt(name: str) -> Machine:
    """Record every version of a machine that is in Redis and not in SQL. Raises UnknownMachine, Diverged."""
    engine = get_engine()
    current, numbers = engine.live(name).version, engine.versions(name)
    recorded = set(MachineVersion.objects.filter(machine__name=name).values_list("number", flat=True))
    news = [number for number in numbers if number not in recorded]
    for number in news:
        _record(name, number, compile_definition(engine.definition(name, number)), adopted=True)
    machine = Machine.objects.get(name=name)
    if moved := machine.current != current:
        _make_current(machine, machine.versions.get(number=current))
    if news or moved:
        submissions.follow(engine, name)
    return machine


def adopt_published(known: dict[str, str]) -> bool:
    """Record what scripts published since ``known`` was filled, machine -> current version, and fill it; return whether
    anything was. One round trip where nothing was published."""
    fresh = {name: at for name, at in get_engine().recent_versions().items() if known.get(name) != at}
    for name, current in fresh.items():
        try:
            adopt(name)
        except Diverged as error:
            log.warning("%s", error)
        known[name] = current
    return bool(fresh)


def redraw(count: int = 5) -> int:
    """Store diagrams that an older release drew, or nobody, as this one draws them: a few at a time; how many."""
    stale = list(MachineVersion.objects.exclude(drawing_format=diagrams.DRAWING).order_by("-pk")[:count])
    for version in stale:
        drawn = {"drawing": version.svg, "drawing_format": diagrams.DRAWING}
        MachineVersion.objects.filter(pk=version.pk).update(**drawn)
    return len(stale)


def find_unrecorded() -> list[str]:
    """List the machines that are in Redis and not in SQL."""
    known = set(Machine.objects.values_list("name", flat=True))
    return [name for name in get_engine().machines() if name not in known]


def restore(name: str | None = None) -> list[MachineVersion]:
    """Publish to Redis what SQL knows and Redis does not, under the same numbers; which versions that were.

    Instances do not come back: only Redis had them. Versions that differ on both sides are left, and logged.
    """
    machines = Machine.objects.all() if name is None else Machine.objects.filter(name=name)
    return [version for machine in machines for version in _restore(machine)]


def list_diverged(machine: Machine) -> list[int]:
    """Return numbers under which SQL and Redis hold different definitions."""
    engine = get_engine()
    shared = machine.versions.filter(number__in=engine.versions(machine.name)).order_by("number")
    return [version.number for version in shared if _differs(version, engine.definition(machine.name, version.number))]


def _restore(machine: Machine) -> list[MachineVersion]:
    engine = get_engine()
    try:
        held = engine.versions(machine.name)
    except UnknownMachine:
        held = []
    missing = list(machine.versions.exclude(number__in=held).order_by("number"))
    if not held:  # what is published last is current, and the newest version need not have been that
        missing.sort(key=lambda version: version.number == machine.current)
    for version in missing:
        _restore_along(version)
        engine.publish(version.definition, version=version.number, alone=True)
    newest = max(held, default=0)
    if held and missing and newest > missing[-1].number:
        # What is published last is current; a gap that was filled must not be.
        engine.publish(engine.definition(machine.name, newest), version=newest, alone=True)
    for number in list_diverged(machine) if held else ():
        log.warning("%s", Diverged(machine.name, number))
    return missing


def _restore_along(version: MachineVersion) -> None:
    """Restore machines that a version brings along and that no row of SQL would restore."""
    engine, along = get_engine(), find_embedded(version.definition)
    rows = set(Machine.objects.filter(name__in=along).values_list("name", flat=True))
    for name, inner in along.items():
        if name not in rows:
            engine.publish(inner, alone=True)


def is_current(name: str, compiled: CompiledDefinition) -> bool:
    """Tell whether it is the machine's current definition already; by SQL where Redis has lost the machine."""
    try:
        held: Any = get_engine().definition(name)
    except UnknownMachine:
        machine = Machine.objects.filter(name=name).first()
        held = machine.version().definition if machine else None
    return held is not None and is_same(held, compiled)


def is_same(held: dict[str, Any], compiled: CompiledDefinition) -> bool:
    """Tell whether a published definition is this one."""
    # Texts, because to Python 1 and true are equal; of the program too, to which the order of states matters.
    if _sort_keys(held) != _sort_keys(compiled.source):
        return False
    return _write_text(held) == _write_text(compiled.source) or compile_definition(held).digest == compiled.digest


def _sort_keys(definition: dict[str, Any]) -> str:
    return json.dumps(definition, sort_keys=True)


def _find_number(machine: Machine, compiled: CompiledDefinition) -> int | None:
    """Return the number of a new version. Redis compares programs, and gives the number. A change of words alone is a
    new document, so we give one."""
    current = machine.version()
    if current.digest == compiled.digest and _write_text(current.definition) != _write_text(compiled.source):
        return max(get_engine().versions(machine.name)) + 1
    return None


def _record(
    name: str,
    number: int,
    compiled: CompiledDefinition,
    *,
    user: AbstractBaseUser | None = None,
    notes: str = "",
    adopted: bool = False,
) -> MachineVersion:
    """Record the version in SQL; the first record of a number stays."""
    machines = Machine.objects.filter(name=name)
    fields = {"definition": compiled.source, "digest": compiled.digest, "notes": notes, "published_by": user}
    if not MachineVersion.objects.filter(machine__in=machines, number=number).exists():
        # Laid out before the transaction, which on SQLite keeps everybody else from writing.
        fields |= {"drawing": diagrams.draw(compiled.outline), "drawing_format": diagrams.DRAWING}
    with transaction.atomic():
        machine, _ = Machine.objects.get_or_create(name=name, defaults={"current": number, "adopted": adopted})
        version, _ = machine.versions.get_or_create(number=number, defaults=fields)
        if _differs(version, compiled):
            raise Diverged(name, number)
        _make_current(machine, version)
    return version


def _make_current(machine: Machine, version: MachineVersion) -> None:
    machine.current = version.number
    description = version.definition.get("description")
    machine.description = description if isinstance(description, str) else ""
    machine.save(update_fields=["current", "description"])


def _differs(version: MachineVersion, held: dict[str, Any] | CompiledDefinition) -> bool:
    """Tell whether the version is another definition than ``held``; it is compiled only where the words differ."""
    source = held.source if isinstance(held, CompiledDefinition) else held
    return _write_text(version.definition) != _write_text(source) and version.digest != compile_definition(held).digest


def _write_text(definition: dict[str, Any]) -> str:
    """Return a text that is the same for equal documents; the order of keys counts."""
    return json.dumps(definition, separators=(",", ":"))
