"""Context that every screen of the product in the admin needs: the admin's own, the machine, its diagram."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.forms.widgets import Script
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from machines import diagrams
from machines.audit.entries import storable
from machines.catalog.models import Machine, MachineVersion

STYLES = ["signalbox/admin/diagram.css", "signalbox/admin/admin.css"]
SCRIPTS = [Script("signalbox/admin/frame.js", type="module")]


def screen(
    request: HttpRequest, template: str, machine: Machine | None, title: str, *, status: int = 200, **context: Any
) -> HttpResponse:
    """Return a page within the admin's frame."""
    shared = {
        **admin.site.each_context(request),
        "opts": Machine._meta,
        "machine": machine,
        "title": title,
        "styles": STYLES,
    }
    return TemplateResponse(request, f"admin/machines/machine/{template}", shared | context, status=status)


def drawing(version: MachineVersion, current: Iterable[str] = ()) -> SafeString:
    """Return the diagram to put into a page, with the leaf states named in ``current`` lit, and those they stand in."""
    ids = diagrams.index(version.outline)["states"]
    lit = diagrams.lit(version.svg, [ids[state] for state in diagrams.active(version.outline, current)])
    return mark_safe(lit)  # noqa: S308  our own drawing: what users wrote is escaped in it


def instances_url(machine: Machine, **query: str) -> str:
    address = reverse("admin:machines_machine_instances", args=[machine.pk])
    return f"{address}?{urlencode(query)}" if query else address


def instance_url(machine: Machine, id: str) -> str:
    """Return the address of an instance. Ids hold any text, so the id is in the query, where everything can be
    quoted."""
    return f"{reverse('admin:machines_machine_instance', args=[machine.pk])}?{urlencode({'id': id})}"


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=UTC)


def write_log_entry(request: HttpRequest, machine: Machine, what: str, about: str) -> None:
    """Write a log entry of the admin: what staff did, with its outcome; a machine's history there shows them. ``about``
    is what it was done to: an instance's id, or a version."""
    LogEntry.objects.create(
        user_id=request.user.pk,
        content_type=ContentType.objects.get_for_model(Machine),
        object_id=str(machine.pk),
        object_repr=storable(f"{machine.name} / {about}")[:200],  # what the column holds
        action_flag=CHANGE,
        change_message=storable(what),
    )
