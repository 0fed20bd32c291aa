"""Machines that mirror rows of a table: what the last comparison found, and asking for one."""

from dataclasses import dataclass

from django.utils import timezone

from machines.engine import BadInput
from machines.people.actor import Actor
from machines.people.mirrors import is_mirror

from ..binding.models import Reconciliation
from .reconcile import KINDS, MEANINGS, Report


@dataclass(frozen=True, slots=True)
class Row:
    """What was found of one kind. ``meaning``: of the kind, in words."""

    kind: str
    count: int
    meaning: str
    examples: list[str]


@dataclass(frozen=True, slots=True)
class Mirror:
    """The last comparison of a mirrored table, or the one that runs.

    ``ended_ms``: 0 before the first end; ``took``: ms; ``read``: rows and instances; ``left``: differences;
    ``wanted_by``: a person whose request waits.
    """

    is_running: bool = False
    ended_ms: int = 0
    took: float = 0.0
    read: int = 0
    rows: tuple[Row, ...] = ()
    mended: int = 0
    left: int = 0
    error: str = ""
    wanted_by: str = ""

    @property
    def ended(self) -> bool:
        return self.ended_ms > 0


def describe_mirror(actor: Actor, machine: str) -> Mirror:
    """Return what the page shows of a table and its mirror. Raises Forbidden."""
    actor.demand("view", machine)
    found = Reconciliation.objects.filter(machine=machine).first()
    if found is None:
        return Mirror()
    report = Report.from_dict(found.report)
    ended = 0 if found.ended is None else int(found.ended.timestamp() * 1000)
    took = 0.0
    if found.ended and found.begun and not found.is_running:
        took = (found.ended - found.begun).total_seconds() * 1000
    return Mirror(
        is_running=found.is_running, ended_ms=ended, took=took, read=found.read,
        rows=tuple(
            Row(kind, report.counts[kind], MEANINGS[kind], report.examples.get(kind, []))
            for kind in KINDS
            if report.counts[kind]
        ),
        mended=report.mended, left=report.left, error=str(found.report.get("error", "")), wanted_by=found.wanted_by,
    )  # fmt: skip


def request_reconcile(actor: Actor, machine: str) -> Reconciliation:
    """Ask the workers that have the model to compare all rows; one begins within half a minute. While a request waits
    another one changes nothing. Raises Forbidden, BadInput."""
    with actor.records("machine.reconcile", machine=machine):
        actor.demand("operate", machine)
        if not is_mirror(machine):
            raise BadInput(f"{machine} mirrors no table: its instances are the truth, and there is nothing to compare")
        found, _ = Reconciliation.objects.get_or_create(machine=machine)
        if found.wanted is None:
            found.wanted, found.wanted_by = timezone.now(), actor.name
            found.save(update_fields=["wanted", "wanted_by"])
        return found
