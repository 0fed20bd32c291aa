"""Checks permissions: which account may do what, on which machines.

A right is held globally, by a Django permission, or on single machines, by the same permission given on the row of a
``Machine`` (django-guardian, to a user or to a group). A right without ``view`` is worth nothing: an account that may
not see a machine may not move its instances either. A machine without a row goes by the global permissions alone.

Each request reads permissions and grants anew, by three queries whose SQL is kept. Django builds the SQL of its two
queries each time; the rows that it would read are put where it keeps them, on the user object, so that ``has_perm`` and
every backend answer as ever.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import islice
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.utils.module_loading import import_string

from machines.engine import Instance, SignalboxError
from machines.people.mirrors import is_mirror, is_mirror_without_model

from ..conf.database import PreparedQuery

Rows = TypeVar("Rows", bound=QuerySet)

RIGHTS = {
    "view": "machines.view_machine",
    "fire": "machines.fire_machine",
    "operate": "machines.operate_machine",
    "reveal": "machines.reveal_machine",
    "publish": "machines.publish_machine",
    "audit": "machines.view_auditentry",
}
"""right -> the Django permission that grants it."""

MEANINGS = {
    "view": "see machines, instances, queues and workers",
    "fire": "create instances and fire events",
    "operate": "force, suspend, resume and delete instances, and manage queues and workers",
    "reveal": "see sensitive fields",
    "publish": "publish definitions",
    "audit": "see the audit",
}
"""right -> what it lets a person do, in the words of a 403 page."""

ROLES = {
    "viewer": ("view",),
    "operator": ("view", "fire"),
    "supervisor": ("view", "fire", "operate", "reveal", "audit"),
    "publisher": ("view", "publish"),
}
"""role -> its rights; each role becomes a Django group of that name."""

OF_ROWS = frozenset(["fire", "operate"])
"""The rights on a machine that mirrors rows which need the model: an event is a call of its method. Nobody may publish
there, since the declarations of the model are the definition."""


class Forbidden(SignalboxError, PermissionDenied):
    """``right``: the name of the one that is missing; ``machine``: on which, "" where it is missing everywhere;
    ``within``: the definition that brings that machine along."""

    code = "SB434"
    shown = ("right", "machine")

    def __init__(self, right: str, machine: str = "", *, within: str = "") -> None:
        self.right = right
        self.machine = machine
        of = f"machine {machine!r}" + (f", which the definition of {within!r} brings along" if within else "")
        text = f"you may not {MEANINGS[right]}{f' ({of})' if machine else ''}"
        if is_refused_of_mirror(right, machine):
            text += ": it mirrors rows of a table, which decide, so call the method of the model"
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Scope:
    """The machines a right holds on: every one there is or will be (``all``), or those named."""

    all: bool
    names: frozenset[str] = frozenset()

    def __contains__(self, machine: object) -> bool:
        return self.all or machine in self.names

    def __bool__(self) -> bool:
        return self.all or bool(self.names)

    def __and__(self, other: Scope) -> Scope:
        if self.all or other.all:
            return other if self.all else self
        return Scope(False, self.names & other.names)

    def narrow(self, rows: Rows, field: str = "machine") -> Rows:
        """Keep the rows whose ``field`` names one of these machines."""
        return rows if self.all else rows.filter(**{f"{field}__in": self.names})


EVERYTHING = Scope(True)
NOTHING = Scope(False)


def allows(user: Any, right: str, machine: str = "") -> bool:
    """Tell whether the user holds the right on a machine, by its name, or globally; and ``view`` with it.

    Inactive users hold none, and nobody one that a mirror does not have. Costs one query of the machines' grants
    for each user object, whatever is asked after.
    """
    if is_refused_of_mirror(right, machine):
        return False
    return machine in scope_of(user, right) if machine else scope_of(user, right).all


def is_refused_of_mirror(right: str, machine: str) -> bool:
    """Tell whether the machine mirrors rows, and nobody holds this right on it in this process."""
    return (right == "publish" and is_mirror(machine)) or (right in OF_ROWS and is_mirror_without_model(machine))


def anywhere(user: Any, right: str) -> bool:
    """Tell whether the user holds the right on any machine."""
    return bool(scope_of(user, right))


def scope_of(user: Any, right: str = "view") -> Scope:
    """Return the machines on which the user holds the right, and ``view`` with it."""
    seen = _find_scope(user, "view")
    return seen if right == "view" else seen & _find_scope(user, right)


def rights_of(user: Any, machine: str = "") -> frozenset[str]:
    """Return every right the user holds on the machine, or globally: templates read it before they show an action."""
    return frozenset(right for right in RIGHTS if allows(user, right, machine))


def among(instance: Instance, scope: Scope) -> Instance:
    """Return the instance without who runs it, and what it runs, of machines out of scope."""
    if scope.all or not (instance.parent or instance.children):
        return instance
    parent = instance.parent if instance.parent and instance.parent["machine"] in scope else None
    children = {invoke: child for invoke, child in instance.children.items() if child["machine"] in scope}
    return replace(instance, parent=parent, children=children)


def demand(user: Any, right: str, machine: str = "") -> None:
    """Raise Forbidden where ``allows`` says no."""
    if not allows(user, right, machine):
        raise Forbidden(right, machine)


def _find_scope(user: Any, right: str) -> Scope:
    """Return where one permission is given, whatever others are; kept on the user object, as Django keeps
    permissions."""
    known: dict[str, Scope] | None = getattr(user, "_held_rights", None)
    if known is None:
        known = user._held_rights = {}
        read_ahead(user)
    if right not in known:
        known[right] = (
            EVERYTHING if user.has_perm(RIGHTS[right]) else Scope(False, _list_grants(user).get(right, frozenset()))
        )
    return known[right]


def _list_grants(user: Any) -> Mapping[str, frozenset[str]]:
    """Return right -> the machines it is given on, one by one; kept on the user object."""
    found = getattr(user, "_machine_grants", None)
    if found is None:
        found = user._machine_grants = _read_grants(user)
    return found


def _read_grants(user: Any) -> Mapping[str, frozenset[str]]:
    if user.pk is None or not user.is_active:
        return {}
    rights = {permission.partition(".")[2]: right for right, permission in RIGHTS.items()}
    held = defaultdict(set)
    for codename, machine in list_grants(user.pk):
        if codename in rights:
            held[rights[codename]].add(machine)
    return {right: frozenset(names) for right, names in held.items()}


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
    from django.contrib.auth.backends import ModelBackend  # has models: the server imports this module before they are

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
    from .models import MachineGroupGrant, MachineUserGrant

    facts = ("permission__codename", "content_object__name")

    def make(pk: int) -> Any:
        own, through = MachineUserGrant.objects.filter(user_id=pk), MachineGroupGrant.objects.filter(group__user=pk)
        return own.values_list(*facts).union(through.values_list(*facts))

    return PreparedQuery(MachineUserGrant, make)


def find_empty_groups(names: Collection[str], besides: str = "") -> list[str]:
    """Return those of these groups that do not exist, or that no active account is in, ``besides`` one."""
    if not names:
        return []
    members = get_user_model().objects.filter(is_active=True, groups__name__in=names)
    held = {name for name, pk in members.values_list("groups__name", "pk") if str(pk) != besides}
    return [name for name in names if name not in held]


def count_approvers(groups: Collection[str], machine: str, besides: str, most: int) -> int:
    """Count the active accounts, ``besides`` one, that are in each of the groups and may publish the machine, to
    ``most``; without groups all that are active."""
    people = get_user_model().objects.filter(is_active=True).exclude(pk=besides or None)
    if not groups:
        return int(people[:most].count())
    for name in groups:
        people = people.filter(groups__name=name)
    able = (user for user in people.iterator() if allows(user, "publish", machine))
    return sum(1 for _ in islice(able, most))
