"""The roles come with the product, once: what an administrator makes of them stays."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command

from machines.people import roles
from machines.people.permissions import RIGHTS, ROLES

pytestmark = pytest.mark.django_db


def held() -> dict[str, set[str]]:
    groups = Group.objects.filter(name__in=ROLES).prefetch_related("permissions")
    return {
        group.name: {f"machines.{permission.codename}" for permission in group.permissions.all()} for group in groups
    }


def test_migrating_makes_each_role_with_its_rights() -> None:
    assert held() == {role: {RIGHTS[right] for right in rights} for role, rights in ROLES.items()}


def test_what_an_administrator_changed_stays() -> None:
    Group.objects.get(name="operator").permissions.add(Permission.objects.get(codename="operate_machine"))
    Group.objects.get(name="publisher").delete()
    changed = held()
    call_command("migrate", verbosity=0)
    assert held() == changed
    assert "publisher" not in changed


@pytest.mark.parametrize("permissions", ["there", "not made yet"])
def test_an_emptied_database_has_them_again(permissions: str) -> None:
    Group.objects.all().delete()
    if permissions != "there":
        Permission.objects.filter(content_type__app_label="machines").delete()
    roles.after_migrate(apps.get_app_config("machines"), "default")
    assert held() == {role: {RIGHTS[right] for right in rights} for role, rights in ROLES.items()}
