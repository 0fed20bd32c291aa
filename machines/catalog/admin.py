"""Versions of machines in the admin, and what its pages of a machine share.

Rights on one machine are given and taken back on the machine's own page of the admin. Who may change users there may
make anything of them, so that is the permission it takes; for groups likewise. The audit says who gave what to whom.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import get_permission_codename
from django.contrib.contenttypes.models import ContentType
from django.db.models import ForeignKey, QuerySet
from django.forms import ModelChoiceField
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from machines import diagrams
from machines.audit.entries import storable
from machines.people import permissions
from machines.people.admin import SCRIPTS, STYLES, ReadOnly, may
from machines.people.models import MachineGroupGrant, MachineUserGrant

from .models import Machine, MachineVersion


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


def machine_of(request: HttpRequest, pk: int) -> Machine:
    """Return the machine with this number. One that may not be seen is forbidden, whether or not there is one: the
    refusal does not name it."""
    found = Machine.objects.filter(pk=pk).first()
    if not may(request, "view", found.name if found else ""):
        raise permissions.Forbidden("view")
    if found is None:
        raise Http404(f"machine {pk} not found")
    return found


class Grants(admin.TabularInline):
    extra = 1
    holder = ""
    """The field of who holds the permission."""

    def get_autocomplete_fields(self, request: HttpRequest) -> list[str]:
        """Search the holders where the admin of the project can; elsewhere their number is typed."""
        model = self.model._meta.get_field(self.holder).related_model
        return [self.holder] if getattr(self.admin_site._registry.get(model), "search_fields", ()) else []

    @classmethod
    def holder_permission(cls) -> str:
        meta = cls.model._meta.get_field(cls.holder).related_model._meta
        return f"{meta.app_label}.{get_permission_codename('change', meta)}"

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        """Offer the permissions that a machine has."""
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if db_field.name == "permission" and field is not None:
            own = field.queryset.filter(
                content_type__app_label=Machine._meta.app_label, content_type__model=Machine._meta.model_name
            )
            field.queryset = own
            field.label_from_instance = lambda permission: permission.name
        return field

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return request.user.has_perm(self.holder_permission())

    has_add_permission = has_change_permission = has_delete_permission = has_view_permission


class UserGrants(Grants):
    model = MachineUserGrant
    holder = "user"
    raw_id_fields = ["user"]
    fields = ["user", "permission"]
    verbose_name = "user permission on this machine"
    verbose_name_plural = "user permissions on this machine"


class GroupGrants(Grants):
    model = MachineGroupGrant
    holder = "group"
    raw_id_fields = ["group"]
    fields = ["group", "permission"]
    verbose_name = "group permission on this machine"
    verbose_name_plural = "group permissions on this machine"


def may_grant(request: HttpRequest) -> bool:
    return any(request.user.has_perm(grants.holder_permission()) for grants in (UserGrants, GroupGrants))


@admin.register(MachineVersion)
class MachineVersionAdmin(ReadOnly, admin.ModelAdmin):
    machine_field = "machine__name"
    list_display = ["machine", "number", "is_current", "digest", "published_at", "published_by", "notes"]
    list_display_links = ["machine", "number"]
    list_filter = [("machine", admin.RelatedOnlyFieldListFilter)]
    list_select_related = ["machine", "published_by"]
    fieldsets = [
        (None, {"fields": ["machine", "number", "is_current", "published_at", "published_by", "digest", "notes"]}),
        ("Diagram", {"fields": ["diagram"], "classes": ["sb-bare"]}),
        ("Definition", {"fields": ["document"], "classes": ["sb-bare"]}),
    ]
    readonly_fields = ["is_current", "diagram", "document"]

    class Media:
        css = {"all": STYLES}
        js = SCRIPTS

    def get_queryset(self, request: HttpRequest) -> QuerySet[MachineVersion]:
        """Defer documents and drawings, which the list does not show."""
        found = super().get_queryset(request)
        listing = request.resolver_match is not None and request.resolver_match.url_name.endswith("_changelist")
        return found.defer("definition", "drawing") if listing else found

    @admin.display(boolean=True, description="current")
    def is_current(self, version: MachineVersion) -> bool:
        return version.number == version.machine.current

    @admin.display(description="diagram")
    def diagram(self, version: MachineVersion) -> SafeString:
        return format_html(
            '<div class="sb-frame" tabindex="0" role="region" aria-label="Diagram, scrollable">{}</div>',
            drawing(version),
        )

    @admin.display(description="definition")
    def document(self, version: MachineVersion) -> SafeString:
        text = json.dumps(version.definition, indent=2, ensure_ascii=False)
        return format_html('<pre class="sb-document">{}</pre>', text)
