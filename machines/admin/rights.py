"""Who may do what in the admin: the permissions of the site. Without ``view`` the others are worth nothing."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest


def may(request: HttpRequest, right: str) -> bool:
    """``right`` is view, fire, operate or publish."""
    user = request.user
    return user.has_perm("machines.view_machine") and user.has_perm(f"machines.{right}_machine")


def demand(request: HttpRequest, right: str) -> None:
    if not may(request, right):
        raise PermissionDenied(f"this takes the permission machines.{right}_machine")


class ReadOnly:
    """For a ModelAdmin: seen with ``view``, never added, changed or deleted by the admin's own forms."""

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return may(request, "view")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return may(request, "view")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
