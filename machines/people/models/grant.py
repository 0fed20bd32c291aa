"""Permissions on one machine: django-guardian's rows with a foreign key to the machine."""

from __future__ import annotations

from django.db import models
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase


class MachineUserGrant(UserObjectPermissionBase):
    """A user holds a permission on one machine."""

    content_object = models.ForeignKey("machines.Machine", on_delete=models.CASCADE, related_name="user_grants")

    class Meta(UserObjectPermissionBase.Meta):
        default_permissions = ()


class MachineGroupGrant(GroupObjectPermissionBase):
    """Everyone in a group holds a permission on one machine."""

    content_object = models.ForeignKey("machines.Machine", on_delete=models.CASCADE, related_name="group_grants")

    class Meta(GroupObjectPermissionBase.Meta):
        default_permissions = ()
