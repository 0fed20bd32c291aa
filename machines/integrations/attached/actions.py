"""Machines that mirror rows of a table: what the last comparison found, and asking for one."""

from django.utils import timezone

from machines.engine import BadInput
from machines.people.actor import Actor
from machines.people.mirrors import is_mirror

from ..binding.models import Reconciliation
from .reconcile import Report


def describe_mirror(actor: Actor, machine: str) -> tuple[Reconciliation, Report]:
    """Return the last comparison of a mirrored table, or the one that runs, and what it found. Raises Forbidden."""
    actor.demand("view", machine)
    found = Reconciliation.objects.filter(machine=machine).first() or Reconciliation(machine=machine)
    return found, Report.from_dict(found.report)


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
