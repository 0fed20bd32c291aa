"""Published versions in the admin: the document, its diagram, its publisher. Read-only."""

from __future__ import annotations

import json

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from machines.catalog.models.version import MachineVersion

from .context import SCRIPTS, STYLES, drawing
from .permissions import ReadOnly


@admin.register(MachineVersion)
class MachineVersionAdmin(ReadOnly, admin.ModelAdmin):
    machine_field = "machine__name"
    list_display = ["machine", "number", "is_current", "digest", "published_at", "published_by", "notes"]
    list_display_links = ["machine", "number"]
    list_filter = [("machine", admin.RelatedOnlyFieldListFilter)]
    list_select_related = ["machine", "published_by"]
    show_full_result_count = False
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
