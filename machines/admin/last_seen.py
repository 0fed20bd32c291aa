"""When people were last seen, in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_permission_codename, get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest

from machines.people.models.last_seen import LastSeen

from .permissions import ReadOnly


@admin.register(LastSeen)
class LastSeenAdmin(ReadOnly, admin.ModelAdmin):
    """To the minute, and some seconds behind."""

    list_display = ["user", "at", "requests", "is_active"]
    list_select_related = ["user"]
    search_fields = [f"user__{get_user_model().USERNAME_FIELD}"]
    ordering = ["-at"]
    show_full_result_count = False
    fields = ["user", "at", "requests"]
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[LastSeen]:
        """Return all of them: a person is of no one machine."""
        return admin.ModelAdmin.get_queryset(self, request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        people = get_user_model()._meta
        return request.user.has_perm(f"{people.app_label}.{get_permission_codename('view', people)}")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    @admin.display(description="active", boolean=True)
    def is_active(self, row: LastSeen) -> bool:
        return row.user.is_active
