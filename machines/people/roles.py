"""Creates the product's groups with their permissions. They are created once; administrators change them freely
afterwards.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.apps import AppConfig

from .permissions import RIGHTS, ROLES

MIGRATION = ("machines", "0007_roles")
"""With it the roles come."""


def after_migrate(sender: AppConfig, using: str, plan: list[Any] | None = None, **others: Any) -> None:
    """Make the roles with their migration, in an emptied database, and where not one of them is there.

    At any other time a role that is missing was deleted on purpose.
    """
    from django.contrib.auth.management import create_permissions
    from django.contrib.auth.models import Group

    ran = {(migration.app_label, migration.name) for migration, backwards in plan or () if not backwards}
    if plan is None or MIGRATION in ran or not Group.objects.using(using).filter(name__in=ROLES).exists():
        create_permissions(sender, verbosity=0, using=using)  # which another receiver may do after this one
        with leave_accounts_unrecorded():
            for role in ROLES:
                make(role, using)


def make(role: str, using: str = "default") -> Any:
    """Return the role's group. One that is there is left as it is."""
    from django.contrib.auth.models import Group, Permission

    group, created = Group.objects.using(using).get_or_create(name=role)
    if created:
        codenames = [RIGHTS[right].partition(".")[2] for right in ROLES[role]]
        held = Permission.objects.using(using).filter(content_type__app_label="machines", codename__in=codenames)
        group.permissions.set(held)
    return group


_unrecorded_accounts: ContextVar[bool] = ContextVar("unrecorded_accounts", default=False)


@contextmanager
def leave_accounts_unrecorded() -> Iterator[None]:
    """Keep changes of accounts in the block out of the audit: nobody asked for the product's own groups."""
    outer = _unrecorded_accounts.set(True)
    try:
        yield
    finally:
        _unrecorded_accounts.reset(outer)


def accounts_are_unrecorded() -> bool:
    return _unrecorded_accounts.get()
