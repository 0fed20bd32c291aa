"""Reads what is given to an account: permissions and grants, by three queries whose SQL is kept.

Each request asks for them anew. Django builds the SQL of its two queries each time; the rows that it would read are put
where it keeps them, on the user object, so that ``has_perm`` and every backend answer as ever.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.utils.module_loading import import_string

from .prepared_queries import PreparedQuery

KINDS = {"_user_perm_cache": "user", "_group_perm_cache": "group__user"}
"""Where ``ModelBackend`` keeps the permissions of a user -> the condition on the rows it reads for them."""


def read_ahead(user: Any) -> None:
    """Read the permissions of an account as ``ModelBackend`` would. Leave all else to Django: superusers, accounts
    without permissions of that kind, other backends."""
    if not _is_plain(tuple(settings.AUTHENTICATION_BACKENDS)):
        return
    if user.is_anonymous or not user.is_active or user.is_superuser or not _is_usual(user.__class__):
        return
    for name, query in _list_permissions().items():
        if not hasattr(user, name):
            setattr(user, name, {f"{app}.{codename}" for app, codename in query.rows(user.pk)})


def list_grants(pk: Any) -> list[tuple[str, str]]:
    """List what the account, or a group it is in, was given on single machines: codename of the permission, machine."""
    return [(codename, machine) for codename, machine in _prepare_query().rows(pk)]


@lru_cache(maxsize=8)
def _is_plain(backends: tuple[str, ...]) -> bool:
    """Tell whether permissions are read by ``ModelBackend`` itself, and by no class that is made of it."""
    found = [backend for backend in map(import_string, backends) if issubclass(backend, ModelBackend)]
    return found == [ModelBackend]


@lru_cache(maxsize=8)
def _is_usual(model: type[Any]) -> bool:
    """Tell whether accounts of this model have permissions and groups as Django's own do."""
    from django.contrib.auth.models import Group, Permission

    found = {field.name: field for field in model._meta.many_to_many}
    return all(
        name in found and found[name].related_model is related and found[name].related_query_name() == "user"
        for name, related in (("user_permissions", Permission), ("groups", Group))
    )


@cache
def _list_permissions() -> dict[str, PreparedQuery]:
    from django.contrib.auth.models import Permission

    def prepare(condition: str) -> PreparedQuery:
        facts = ("content_type__app_label", "codename")
        return PreparedQuery(
            Permission, lambda pk: Permission.objects.filter(**{condition: pk}).order_by().values_list(*facts)
        )

    return {name: prepare(condition) for name, condition in KINDS.items()}


@cache
def _prepare_query() -> PreparedQuery:
    from .models.grant import MachineGroupGrant, MachineUserGrant

    facts = ("permission__codename", "content_object__name")

    def make(pk: int) -> Any:
        own, through = MachineUserGrant.objects.filter(user_id=pk), MachineGroupGrant.objects.filter(group__user=pk)
        return own.values_list(*facts).union(through.values_list(*facts))

    return PreparedQuery(MachineUserGrant, make)
