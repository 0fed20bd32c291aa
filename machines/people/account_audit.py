"""Audits changes of accounts: users, groups, permissions, API tokens, wherever the change was made.

It listens to Django's signals, so that the admin, pages, the API, management commands, a shell and other apps are all
heard. In a project that has accounts of its own, rows of users and groups are audited only with ``AUDIT_ACCOUNTS``;
who holds which right always is. ``QuerySet.update``, ``bulk_create``, ``bulk_update`` and plain SQL send none, and
leave no entry. An entry is written in the same transaction as the change, and names the person behind the current
request, or the system account and ``command line`` where there is no request. It holds names and flags, and never a
password, its hash or a secret.
"""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import is_password_usable
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete, pre_save

from machines.audit.entries import record, recording, source_of
from machines.audit.request_context import current_request
from machines.conf import conf

from .actor import Actor
from .models import MachineGroupGrant, MachineUserGrant, Token
from .roles import accounts_are_unrecorded

STRANGER = "(unknown)"  # behind a request that nobody has logged in for
MOST = 100  # names that one entry lists; beside them it says how many there are
GRANTS = (MachineUserGrant, MachineGroupGrant)
NOUNS: tuple[tuple[str, tuple[type[Model], ...]], ...] = (("group", (Group,)), ("token", (Token,)), ("grant", GRANTS))
FACTS = ("email", "first_name", "last_name", "is_active", "is_staff", "is_superuser")
PLAIN = {*FACTS, "name", "handle", "rights", "machines", "expires", "revoked"}
"""Fields whose values are written, beside user names; of others, which may hold anything, only that they changed."""
UNTOLD = {"id", "last_login", "last_used", "uses"}


def connect() -> None:
    """Begin to listen. Called once, when all models are there."""
    watched = (get_user_model(), Group, Token, *GRANTS)
    handlers = ((pre_save, _remember), (post_save, _record_save), (pre_delete, _foresee), (post_delete, _record_delete))
    for model in apps.get_models():
        if issubclass(model, watched):  # a proxy sends signals of its own
            for signal, handler in handlers:
                signal.connect(handler, sender=model, dispatch_uid=f"machines.people.account_audit.{handler.__name__}")
    for through in _list_links():
        m2m_changed.connect(_record_link, sender=through, dispatch_uid="machines.people.account_audit")


# One row


def _is_of_interest(instance: Any) -> bool:
    """Tell whether rows of the kind are audited: accounts are the project's own, and a shop has many."""
    return isinstance(instance, (Token, *GRANTS)) or bool(conf.AUDIT_ACCOUNTS)


def _remember(sender: type[Model], instance: Any, using: str, update_fields: Any, **signal: Any) -> None:
    """Remember what the row holds before it is saved. A login writes its moment, which is of no interest."""
    if accounts_are_unrecorded() or instance.pk is None or not _is_of_interest(instance):
        return
    if update_fields is None or set(update_fields) - UNTOLD:
        instance._audit_before = sender._base_manager.using(using).filter(pk=instance.pk).first()


def _record_save(sender: type[Model], instance: Any, created: bool, update_fields: Any, **signal: Any) -> None:
    before = instance.__dict__.pop("_audit_before", None)
    if not _is_of_interest(instance):
        return
    if created:
        _write(_name_action(instance, "make"), instance, _list_facts(instance))
    elif before is not None:
        changed = _compare(before, instance, update_fields)
        if shown := {name: change for name, change in changed.items() if name != "password"}:
            _write(_name_action(instance, "change"), before, {"changed": shown})
        if "password" in changed:
            _write("user.password", instance, {"password": _is_password_renewal(before.password, instance)})


def _foresee(sender: type[Model], instance: Any, **signal: Any) -> None:
    """Remember what goes with the row."""
    if not accounts_are_unrecorded() and _is_of_interest(instance):
        instance._audit_lost = _list_facts(instance) | _list_permissions(instance)


def _record_delete(sender: type[Model], instance: Any, **signal: Any) -> None:
    if not _is_of_interest(instance):
        return
    _write(_name_action(instance, "delete"), instance, instance.__dict__.pop("_audit_lost", {}))


def _name_action(instance: Any, verb: str) -> str:
    return next((f"{noun}.{verb}" for noun, models in NOUNS if isinstance(instance, models)), f"user.{verb}")


def _is_password_renewal(before: str, instance: Any) -> str:
    """Tell whether only the hash of the password changed: a login may renew it."""
    if not is_password_usable(instance.password):
        return "none: nobody can log in with one"
    renewed = instance._password is None and is_password_usable(before)
    return "its hash written anew" if renewed else "set"


def _list_facts(instance: Any) -> dict[str, Any]:
    """Return what an entry says of a row that came or went; what is empty or false is left out."""
    try:
        if isinstance(instance, Token):
            return {"owner": instance.owner.get_username(), **instance.facts}
        if isinstance(instance, GRANTS):
            return {"right": _name_permission(instance.permission), "holder": _name_holder(instance)}
    except ObjectDoesNotExist:  # ``loaddata`` may bring a row before the one it belongs to
        return {}
    return {name: value for name in FACTS if (value := getattr(instance, name, None))}


def _list_permissions(instance: Any) -> dict[str, Any]:
    """Return the permissions that an account or group held."""
    if isinstance(instance, Group):
        members = [member.get_username() for member in instance.user_set.all()]
        return _list_texts("members", members) | _list_texts(
            "rights", map(_name_permission, instance.permissions.all())
        )
    groups = instance.groups.all() if hasattr(instance, "groups") else ()
    rights = instance.user_permissions.all() if hasattr(instance, "user_permissions") else ()
    return _list_texts("groups", map(str, groups)) | _list_texts("rights", map(_name_permission, rights))


def _compare(before: Any, after: Any, saved: Any) -> dict[str, Any]:
    """Return field -> before and after; of a field that may hold anything only that it changed. ``saved``: names of the
    fields that were, None for all."""
    found: dict[str, Any] = {}
    for field in after._meta.concrete_fields:
        if field.name in UNTOLD or (saved is not None and not {field.name, field.attname} & set(saved)):
            continue
        old, new = getattr(before, field.attname), getattr(after, field.attname)
        if old == new:
            continue
        if field.is_relation:
            sides = (("before", before), ("after", after))
            found[field.name] = {side: _describe(getattr(row, field.name)) for side, row in sides}
        elif field.name in PLAIN or field.name == getattr(after, "USERNAME_FIELD", ""):
            found[field.name] = {"before": old, "after": new}
        else:
            found[field.name] = "changed"
    return found


# Memberships and permissions


def _list_links() -> dict[type[Model], tuple[str, Any]]:
    """Return through which models rights and memberships are held -> the action that a change is, and the field."""
    user, found = get_user_model(), [("group.rights", Group, "permissions")]
    found += [("user.groups", user, "groups"), ("user.rights", user, "user_permissions")]
    fields = [(action, model._meta.get_field(name)) for action, model, name in found if hasattr(model, name)]
    return {field.remote_field.through: (action, field) for action, field in fields}


def _record_link(
    sender: type[Model], instance: Any, action: str, reverse: bool, model: Any, pk_set: Any, using: str, **signal: Any
) -> None:
    """Record a change of links. Each side can be changed from the other; the entry is of the user, or of the group."""
    if accounts_are_unrecorded():
        return
    name, field = _list_links()[sender]
    if action == "pre_clear":
        accessor = field.remote_field.get_accessor_name() if reverse else field.name
        instance._audit_cleared = list(getattr(instance, accessor).all())
    elif action == "post_clear":
        _tell_links(name, instance, instance.__dict__.pop("_audit_cleared", []), "removed", reverse)
    elif action in ("post_add", "post_remove") and pk_set:
        others = model._base_manager.using(using).filter(pk__in=pk_set)
        _tell_links(name, instance, others, "added" if action == "post_add" else "removed", reverse)


def _tell_links(action: str, instance: Any, others: Iterable[Any], word: str, reverse: bool) -> None:
    if reverse:
        for other in others:
            _write(action, other, {word: [_describe(instance)]})
    elif names := _list_texts(word, map(_describe, others)):
        _write(action, instance, names)


def _describe(other: Any) -> str:
    return _name_permission(other) if isinstance(other, Permission) else str(other)


# Writing


def _write(action: str, about: Any, detail: dict[str, Any]) -> None:
    """Write an entry, unless a service is about to write one of the same noun, which says more."""
    if accounts_are_unrecorded() or recording.get().partition(".")[0] == action.partition(".")[0]:
        return
    actor, source = _find_actor()
    try:
        machine = about.content_object.name if isinstance(about, GRANTS) else ""
        target = _name_target(about)
    except ObjectDoesNotExist:
        machine, target = "", f"{about._meta.model_name} {about.pk}"
    record(actor, action, machine=machine, target=target, detail=detail, source=source)


def _find_actor() -> tuple[Any, str]:
    """Return whose doing it is, and by which door."""
    request = current_request.get()
    if request is None:
        console = Actor.console()
        return console.user, console.source
    acting = getattr(request, "acting", None)
    if acting is not None:
        return acting.user, acting.source
    user = getattr(request, "user", None)
    return user if user is not None and user.is_authenticated else STRANGER, source_of(request)


def _name_target(about: Any) -> str:
    if isinstance(about, Token):
        return str(about.handle)
    if isinstance(about, GRANTS):
        return _name_holder(about)
    return str(about.name if isinstance(about, Group) else about.get_username())


def _name_holder(grant: Any) -> str:
    return f"user {grant.user.get_username()}" if isinstance(grant, MachineUserGrant) else f"group {grant.group.name}"


def _name_permission(permission: Any) -> str:
    return f"{permission.content_type.app_label}.{permission.codename}"


def _list_texts(name: str, texts: Iterable[str]) -> dict[str, Any]:
    found = sorted(texts)
    counted = {f"{name}_in_all": len(found)} if len(found) > MOST else {}
    return ({name: found[:MOST]} if found else {}) | counted
