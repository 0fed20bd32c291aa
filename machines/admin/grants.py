"""Rights on one machine, given and taken back on the machine's own page of the admin.

Who may change users there may make anything of them, so that is the permission it takes; for groups likewise. The
audit says who gave what to whom.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import ForeignKey
from django.forms import ModelChoiceField
from django.http import HttpRequest

from machines.models import Machine, MachineGroupGrant, MachineUserGrant


class Grants(admin.TabularInline):
    extra = 1
    holder_permission = ""

    def formfield_for_foreignkey(
        self, db_field: ForeignKey, request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField | None:
        """Of the permissions there are, those a machine has."""
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if db_field.name == "permission" and field is not None:
            own = field.queryset.filter(
                content_type__app_label=Machine._meta.app_label, content_type__model=Machine._meta.model_name
            )
            field.queryset = own
            field.label_from_instance = lambda permission: permission.name
        return field

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return request.user.has_perm(self.holder_permission)

    has_add_permission = has_change_permission = has_delete_permission = has_view_permission


class UserGrants(Grants):
    model = MachineUserGrant
    holder_permission = "auth.change_user"
    autocomplete_fields = ["user"]
    fields = ["user", "permission"]
    verbose_name = "user permission on this machine"
    verbose_name_plural = "user permissions on this machine"


class GroupGrants(Grants):
    model = MachineGroupGrant
    holder_permission = "auth.change_group"
    autocomplete_fields = ["group"]
    fields = ["group", "permission"]
    verbose_name = "group permission on this machine"
    verbose_name_plural = "group permissions on this machine"


def may_grant(request: HttpRequest) -> bool:
    return any(request.user.has_perm(grants.holder_permission) for grants in (UserGrants, GroupGrants))
