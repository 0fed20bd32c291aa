"""Writes the admin's log entries: what staff did, with its outcome. A machine's history in the admin shows them."""

from __future__ import annotations

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest

from machines.audit.entries import storable
from machines.catalog import redaction
from machines.catalog.models import Machine, MachineVersion
from machines.engine import Conflict, Instance, Refused, SignalboxError

REPR = 200  # characters of LogEntry.object_repr


def record(request: HttpRequest, machine: Machine, what: str, about: str = "") -> None:
    """Write a log entry of the admin. ``about`` is what it was done to: an instance's id, or a version."""
    LogEntry.objects.create(
        user_id=request.user.pk,
        content_type=ContentType.objects.get_for_model(Machine),
        object_id=str(machine.pk),
        object_repr=storable(f"{machine.name} / {about}")[:REPR] if about else machine.name,
        action_flag=CHANGE,
        change_message=storable(what),
    )


def log_fire(request: HttpRequest, machine: Machine, event: str, before: str, after: Instance) -> None:
    moved = f"{before} → {after.state}" if before != after.state else f"stays in {after.state}"
    record(request, machine, f"Fired {event} at {after.id}: {moved}, revision {after.revision}.", after.id)


def log_failure(request: HttpRequest, machine: Machine, event: str, id: str, error: SignalboxError) -> None:
    word = "Refused" if isinstance(error, Refused) else "Conflict" if isinstance(error, Conflict) else "Failed"
    said = redaction.strict_redactor(machine.name).error(error)
    record(request, machine, f"{word}: {event} at {id}: {said} ({error.code})", id)


def log_publication(request: HttpRequest, version: MachineVersion) -> None:
    record(request, version.machine, f"Published version {version.number} ({version.digest}).", f"v{version.number}")
