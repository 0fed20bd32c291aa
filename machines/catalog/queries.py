"""Reads versions and their outlines, cached since a published version never changes; and the partitions that an
answer is without, because their shard of a cluster does not answer."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from django.db.models import F, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from machines.connections import get_engine
from machines.engine import Instance
from machines.engine.definitions import CompiledDefinition, Finding, Outline, compile_definition, outline
from machines.engine.errors import UnknownMachine
from machines.engine.keys import get_machine

from .models import Machine, MachineVersion

KEPT = 256  # outlines in memory
LOOKED_AT = 50  # definitions whose outlines one search for words reads


def get_version(machine: str, version: int, *, without: tuple[str, ...] = ()) -> MachineVersion:
    """Return a version's row, its fields ``without`` not read; of a version that only Redis has, a row that is not
    written. Raises UnknownMachine."""
    found = MachineVersion.objects.filter(machine__name=machine, number=version).defer(*without).first()
    return found or make_version(machine, version)


def find_version(instance: Instance) -> MachineVersion | None:
    """Return the version that an instance runs; None where nobody has its definition any more."""
    try:
        return get_version(instance.machine, instance.version)
    except UnknownMachine:
        return None


def read_current_row(machine: str) -> MachineVersion:
    """Return the current version's row: by SQL, or by Redis where SQL has no such machine. Raises UnknownMachine."""
    row = Machine.objects.filter(name=machine).first()
    return get_version(machine, get_engine().live(machine).version if row is None else row.current)


def find_current(machine: str) -> int | None:
    """Return the number of the current version: by Redis, by SQL where Redis has lost the machine, None for a new
    machine."""
    try:
        return get_engine().live(machine).version
    except UnknownMachine:
        return Machine.objects.filter(name=machine).values_list("current", flat=True).first()


def find_latest(machine: str) -> int | None:
    """Return the version that the next one comes after: the one that is rolled out now, else the current one."""
    try:
        rollout = get_engine().rollout(machine)
    except UnknownMachine:
        rollout = None
    return rollout.version if rollout is not None and rollout.under_way else find_current(machine)


def make_version(machine: str, version: int) -> MachineVersion:
    """Make the row of a version that a script published straight into Redis. Reading writes nothing: a worker records
    it. Raises UnknownMachine."""
    return list_unrecorded({machine: version})[machine]


def list_unrecorded(wanted: Mapping[str, int]) -> dict[str, MachineVersion]:
    """Make such a row for a version of each machine; one query for all. Raises UnknownMachine."""
    if not wanted:
        return {}
    definitions = {machine: get_engine().definition(machine, version) for machine, version in wanted.items()}
    known = {row.name: row for row in Machine.objects.filter(name__in=wanted)}
    return {
        machine: MachineVersion(
            machine=known.get(machine) or Machine(name=machine, current=wanted[machine], adopted=True),
            number=wanted[machine], definition=definition, digest=_digest(json.dumps(definition)),
            published_at=timezone.now(),
        )
        for machine, definition in definitions.items()
    }  # fmt: skip


def outline_of(machine: str, version: int) -> Outline:
    """Return the outline of a version. Raises UnknownMachine."""
    return outline_from(json.dumps(get_version(machine, version, without=("drawing",)).definition))


def outlines_of(wanted: Mapping[str, int]) -> dict[str, Outline]:
    """Return machine -> the outline of one of its versions. One query for those that are stored, one for the others.
    Raises UnknownMachine."""
    rows = MachineVersion.objects.filter(machine__name__in=wanted, number__in=set(wanted.values()))
    found = {
        machine: outline_from(json.dumps(definition))
        for machine, number, definition in rows.values_list("machine__name", "number", "definition")
        if wanted[machine] == number
    }
    for machine, row in list_unrecorded({name: wanted[name] for name in wanted if name not in found}).items():
        found[machine] = outline_from(json.dumps(row.definition))
    return {machine: found[machine] for machine in wanted}


def every_outline(machine: str) -> list[Outline]:
    """Return those of all versions of a machine that SQL has, the newest first."""
    found = MachineVersion.objects.filter(machine__name=machine).only("definition").order_by("-number")
    return [outline_from(json.dumps(version.definition)) for version in found]


def find_definitions(words: Iterable[str], machines: Iterable[str], limit: int) -> dict[str, list[str]]:
    """Find machines whose current definition names or describes something with all these words; machine -> where, as
    "state Held". It reads what SQL has of at most ``LOOKED_AT`` definitions that hold the words."""
    rows = MachineVersion.objects.filter(machine__name__in=list(machines), number=F("machine__current"))
    rows = rows.annotate(text=Cast("definition", TextField()))
    wanted = [word.lower() for word in words]
    for word in wanted:
        rows = rows.filter(text__icontains=json.dumps(word)[1:-1])
    found: dict[str, list[str]] = {}
    for name, definition in rows.order_by("machine__name").values_list("machine__name", "definition")[:LOOKED_AT]:
        texts = [(place, text.lower()) for place, text in _read_names(outline_from(json.dumps(definition)))]
        places = [place for place, text in texts if any(word in text for word in wanted)]
        if len(found) < limit and all(any(word in text for _, text in texts) for word in wanted):
            found[name] = list(dict.fromkeys(places))
    return found


def _read_names(outline: Outline) -> Iterator[tuple[str, str]]:
    yield "description", outline.description
    for state in outline.states:
        yield f"state {state.name}", " ".join((state.name, state.description, *state.tags))
    yield from ((f"event {name}", f"{name} {event.description}") for name, event in outline.events.items())
    yield from ((f"field {each.name}", f"{each.name} {each.description}") for each in outline.data)


@lru_cache(maxsize=KEPT)
def _digest(text: str) -> str:
    return compile_definition(json.loads(text)).digest


@lru_cache(maxsize=KEPT)
def outline_from(text: str) -> Outline:
    """Read the outline of a definition as JSON."""
    return outline(json.loads(text))


def list_changes(compiled: CompiledDefinition) -> list[Finding]:
    """Warn of each machine of a definition that is published already, with another number of partitions. Raises
    EngineUnavailable."""
    found: list[Finding] = []
    for each in (*compiled.along.values(), compiled):
        if each.partitions is None:
            continue
        try:
            found += each.compare_partitions(get_engine().count_partitions(str(each.source["id"])))
        except UnknownMachine:
            continue
    return found


@dataclass(frozen=True, slots=True)
class MissingPartitions:
    """``count`` partitions do not answer, of the ``of`` that their machines have; ``of`` is 0 where other keys are
    missing. ``nodes``: those of the cluster that hold them."""

    count: int
    of: int = 0
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.count} of {self.of} partitions"


def count_missing(roots: Iterable[str], *, of: bool = True) -> MissingPartitions | None:
    """Count partitions by their roots, or with ``of=False`` other keys; None where none is missing."""
    found = sorted(set(roots))
    if not found:
        return None
    engine = get_engine()
    total = sum(engine.count_partitions(name) for name in {get_machine(root) for root in found}) if of else 0
    return MissingPartitions(len(found), total, tuple(engine.name_nodes(found)))
