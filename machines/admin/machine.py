"""Machines in the admin: their versions and their diagram, with a link to their instances."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from machines.catalog.models import Machine
from machines.catalog.publishing import find_unrecorded
from machines.engine import SignalboxError

from . import instances
from .permissions import SCRIPTS, STYLES, GroupGrants, ReadOnly, UserGrants, drawing, may, may_grant


@admin.register(Machine)
class MachineAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ["name", "current", "description", "created_at", "adopted"]
    search_fields = ["name", "description"]
    fields = ["name", "description", "current", "version_policy", "created_at", "adopted"]
    readonly_fields = fields
    change_form_template = "admin/machines/machine/change_form.html"
    change_list_template = "admin/machines/change_list.html"
    inlines = [UserGrants, GroupGrants]

    class Media:
        css = {"all": STYLES}
        js = SCRIPTS

    def has_change_permission(self, request: HttpRequest, obj: Machine | None = None) -> bool:
        """Allow what can be changed here: who has rights on the machine. The machine itself changes by publishing."""
        return self.has_view_permission(request) and may_grant(request)

    def save_model(self, request: HttpRequest, obj: Machine, form: object, change: bool) -> None:
        """Write nothing: the form holds no input, and a version may have been published meanwhile."""

    def get_urls(self) -> list[URLPattern]:
        guarded = self.admin_site.admin_view
        own = [
            path("<int:machine>/instances/", guarded(instances.show), name="machines_machine_instances"),
            path("<int:machine>/instance/", guarded(instances.show_instance), name="machines_machine_instance"),
        ]
        return own + super().get_urls()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Warn of machines that scripts have published and no worker has recorded yet."""
        if self.has_view_permission(request):
            _name_unrecorded(request)
        return super().changelist_view(request, extra_context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().change_view(request, object_id, form_url, (extra_context or {}) | _beside(request, object_id))


def _name_unrecorded(request: HttpRequest) -> None:
    try:
        new = [name for name in find_unrecorded() if may(request, "view", name)]
        if new:
            messages.info(request, f"Published by scripts, and recorded here by the next worker: {', '.join(new)}")
    except SignalboxError as error:
        messages.warning(request, f"Machines in Redis could not be looked up: {error.message} ({error.code})")


def _beside(request: HttpRequest, object_id: str) -> dict[str, Any]:
    """Return what stands beside the fields. Nothing when there is no such machine: the admin says so itself."""
    machine = Machine.objects.filter(pk=object_id).first() if object_id.isdecimal() else None
    if machine is None or not may(request, "view", machine.name):
        return {}
    version = machine.versions.filter(number=machine.current).first()
    return {
        "machine": machine,
        "drawing": drawing(version) if version else "",
        "versions": machine.versions.select_related("published_by").defer("drawing", "definition")[:20],
    }
