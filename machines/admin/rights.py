"""Who may do what in the admin: the rights of the site."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest

from machines import access
from machines.models import Machine


def may(request: HttpRequest, right: str, machine: str = "") -> bool:
    """``right`` as ``machines.access`` names it; of all machines where none is named."""
    return access.allows(request.user, right, machine)


def demand(request: HttpRequest, right: str, machine: str = "") -> None:
    """Raises machines.access.Forbidden, which is answered with a 403."""
    access.demand(request.user, right, machine)


def machine_of(request: HttpRequest, pk: int) -> Machine:
    """The machine with this number. One that may not be seen is forbidden, whether or not there is one."""
    found = Machine.objects.filter(pk=pk).first()
    demand(request, "view", found.name if found else "")
    if found is None:
        raise Http404(f"machine {pk} not found")
    return found


class ReadOnly:
    """For a ModelAdmin: seen with ``view``, never added, changed or deleted by the admin's own forms.

    ``machine_field`` leads from a row to the name of its machine: a list holds no others than those that may be seen,
    and a row that may not be is one that is not there.
    """

    machine_field = "name"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found, scope = super().get_queryset(request), access.scope_of(request.user)  # type: ignore[misc]
        return found if scope.all else found.filter(**{f"{self.machine_field}__in": scope.names})

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access.anywhere(request.user, "view")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return access.anywhere(request.user, "view")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False
