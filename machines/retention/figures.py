"""How much of a machine is kept and was archived, for its pages."""

from dataclasses import dataclass

from machines.catalog import builtin_machines
from machines.catalog.queries import get_version
from machines.conf import conf
from machines.conf.retention_policy import parse_policy
from machines.connections import get_engine
from machines.engine import errors
from machines.engine.definitions.reading.machine_settings import Retention, find_retention
from machines.instances.archive.store import get_archive
from machines.instances.models import ArchiveTotal


@dataclass(frozen=True, slots=True)
class ArchiveFigures:
    """``bounds``: what holds for the machine; ``archives``: whether its instances are archived before they go.
    ``last``: ms since the epoch, when the last one was archived, or None; ``bytes``: of the bodies."""

    bounds: Retention
    archives: bool
    archived: int = 0
    bytes: int = 0
    last: int | None = None


@dataclass(frozen=True, slots=True)
class KeptFigures:
    """Finished instances in Redis. ``states``: the final ones of the machine; ``oldest``: ms since the epoch, or None;
    ``each``: bytes of one, by samples, 0 where that is not known; ``bytes``: the estimate for all."""

    states: list[str]
    finished: int
    oldest: int | None
    each: int

    @property
    def bytes(self) -> int:
        return self.finished * self.each


def read_archive_figures(machine: str, version: int) -> ArchiveFigures:
    """Read the bounds of a machine, whose current version this is, and how much of it is archived. Two queries."""
    own = find_retention(get_version(machine, version, without=("drawing",)).definition)
    default = Retention() if machine in builtin_machines.NAMES else parse_policy(conf.RETAIN).machines
    bounds = own.fill_from(default)
    total = ArchiveTotal.objects.filter(machine=machine).first()
    archives = get_archive().enabled and bounds.archive is not False
    if total is None:
        return ArchiveFigures(bounds, archives)
    return ArchiveFigures(bounds, archives, total.instances, total.bytes, total.last or None)


def read_kept_figures(machine: str) -> KeptFigures:
    """Count the finished instances in Redis, and estimate the memory they take. Raises UnknownMachine."""
    retirement = get_engine().retirement()
    try:
        each = retirement.measure_memory(machine)
    except errors.NotPermitted:
        each = 0
    return KeptFigures(
        retirement.final_states(machine), retirement.count(machine), retirement.find_oldest(machine), each
    )
