"""The outbox of bound rows in the admin: what transactions asked of instances, and the outcome."""

from __future__ import annotations

from django.contrib import admin

from machines.integrations.binding.models import OutboxEntry

from .permissions import ReadOnly


@admin.register(OutboxEntry)
class OutboxEntryAdmin(ReadOnly, admin.ModelAdmin):
    machine_field = "machine"
    list_display = ["made_at", "kind", "event", "machine", "instance", "state", "outcome", "tries", "actor"]
    list_filter = ["state", "kind", "outcome"]
    search_fields = ["machine__exact", "instance__exact", "event__exact", "actor__exact"]
    search_help_text = "exact machine, instance, event or actor"
    show_full_result_count = False
    list_per_page = 50
    ordering = ["-pk"]
    fields = [
        "made_at", "kind", "event", "field", "machine", "instance", "actor", "reason", "expect", "state", "outcome",
        "message", "revision", "tries", "tried_at", "due", "ended_at",
    ]  # fmt: skip
    readonly_fields = fields
    actions = None
