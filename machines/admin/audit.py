"""The audit in the admin: view and search. Nobody adds, changes or deletes an entry, superusers included."""

from __future__ import annotations

import json

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from machines.audit.models import AuditEntry
from machines.people import permissions

from .context import STYLES
from .permissions import ReadOnly

SHOWN = 48  # characters of a text in the list


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly, admin.ModelAdmin):
    machine_field = "machine"
    list_display = ["when", "actor", "action", "outcome", "on", "target", "why", "source"]
    list_filter = ["outcome", "action", ("at", admin.DateFieldListFilter)]
    search_fields = ["actor__exact", "machine__exact", "instance__exact", "target__exact", "request__exact"]
    search_help_text = "exact person, machine, instance, target or request"
    show_full_result_count = False
    list_per_page = 50
    ordering = ["-at", "-id"]
    fields = [
        "when", "actor", "actor_id", "action", "machine", "queue", "instance", "target", "reason", "source", "request",
        "outcome", "facts",
    ]  # fmt: skip
    readonly_fields = fields
    actions = None

    class Media:
        css = {"all": STYLES}

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return permissions.anywhere(request.user, "audit")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    @admin.display(description="when", ordering="at")
    def when(self, entry: AuditEntry) -> str:
        """Return the time to the second, in the reader's time zone."""
        return f"{timezone.localtime(entry.at):%Y-%m-%d %H:%M:%S %Z}"

    @admin.display(description="on")
    def on(self, entry: AuditEntry) -> str:
        return Truncator(entry.subject).chars(SHOWN)

    @admin.display(description="reason")
    def why(self, entry: AuditEntry) -> str:
        return Truncator(entry.reason).chars(SHOWN)

    @admin.display(description="detail")
    def facts(self, entry: AuditEntry) -> SafeString:
        text = json.dumps(entry.facts, indent=2, ensure_ascii=False)
        return format_html('<pre class="sb-document">{}</pre>', text)
