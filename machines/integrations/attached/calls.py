"""Calls a method of an attached model for a person in the room: on the row, under the method's own permission.

The row is locked and read, the method is called, the row is saved, all in one transaction. The step is recorded after
the commit, as that of any other call.
"""

import inspect
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.apps import apps
from django.contrib.auth import get_permission_codename, get_user_model
from django.core.exceptions import FieldError
from django.db import models, router, transaction
from django.urls import NoReverseMatch, reverse

from machines.connections import get_engine
from machines.engine import BadInput, Conflict, EngineUnavailable, Instance, UnknownInstance, errors
from machines.engine.definitions import FieldOutline
from machines.engine.records import Outcome
from machines.people.mirrors import MethodFailed, MethodRefused

from . import registry
from .definition import find_transition
from .libraries import ANY, ANY_OTHER, DeclaredTransition
from .recording import ARGUMENTS, acting_as
from .registry import Attachment

REASON = "description"
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
MAX_SAID = 300  # characters of an exception's text


def call_method(
    machine: str,
    id: str,
    event: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    user: Any,
    expect: int | None = None,
    reason: str = "",
) -> Instance:
    """Call the method of a row and save the row; return the instance after it.

    ``user``: a Django user, or the name of a program, which passes only methods without a permission. ``expect``: the
    revision of the instance that was looked at. Raises UnknownInstance, Conflict, MethodRefused, MethodFailed,
    BadInput, EngineUnavailable.
    """
    attachment = _find(machine)
    engine = get_engine()
    before = engine.get(machine, id)
    if expect is not None and before.revision != expect:
        raise Conflict(machine, id, expected=expect, actual=before.revision)
    using = router.db_for_write(attachment.model)
    failure: MethodFailed | None = None
    with transaction.atomic(using):
        row = _lock(attachment, id, using)
        value = attachment.value_of(row)
        declared = _demand(attachment, row, event, user)
        given = _build_arguments(attachment, event, dict(arguments or {}), user, reason)
        with acting_as(user, reason):
            try:
                attachment.library.call(row, event, given)
            except Exception as error:
                text = f"{_label(attachment, event)} raised {_describe(error)}"
                if declared.on_error is None or attachment.value_of(row) != declared.on_error:
                    raise MethodFailed(f"{text}. The row stays in {attachment.states.find(value)}") from error
                failure = MethodFailed(f"{text}. The row is in {attachment.states.find(declared.on_error)} now")
            row.save(using=using)
    if failure is not None:
        raise failure
    try:
        after = engine.get(machine, id)
    except EngineUnavailable as error:
        raise EngineUnavailable(f"{event} was called and the row is saved, the room shows it later: {error}") from error
    except UnknownInstance:  # the method deletes its row
        after = before
    if transaction.get_connection(using).in_atomic_block:  # recorded once the transaction around this one is committed
        after = replace(after, configuration=[attachment.state_of(row) or after.state])
    return replace(after, outcome=Outcome(transitions=[], before=before.configuration))


def find_refusals(machine: str, id: str, events: Collection[str], user: Any) -> dict[str, str]:
    """Return event -> why the user may not call its method on the row now; "" where they may. Reads the row."""
    attachment = registry.find(machine)
    if attachment is None:
        return {}
    try:
        row = _lock(attachment, id, router.db_for_read(attachment.model), lock=False)
    except UnknownInstance as error:
        return dict.fromkeys(events, error.message)
    return {event: _find_refusal(attachment, row, event, user)[0] for event in events}


def find_row_address(machine: str, id: str, user: Any) -> str:
    """Return the address of the row's page in Django's admin; "" where there is none, or none for this user."""
    attachment = registry.find(machine)
    if attachment is None or not apps.is_installed("django.contrib.admin"):
        return ""
    options = attachment.model._meta
    if not user.has_perm(f"{options.app_label}.{get_permission_codename('view', options)}"):
        return ""
    try:
        return reverse(f"admin:{options.app_label}_{options.model_name}_change", args=[id])
    except NoReverseMatch:  # the model is not registered
        return ""


def find_user(name: str) -> Any:
    """Return the active user of this name, for whom a worker calls methods. Raises MethodRefused."""
    users = get_user_model()
    user = users._default_manager.filter(**{users.USERNAME_FIELD: name}, is_active=True).first()
    if user is None:
        raise MethodRefused(f"there is no active user {name!r}, for whom it would be called")
    return user


def list_parameters(machine: str, event: str) -> tuple[list[FieldOutline], bool] | None:
    """List what a person can give to a method, and whether it takes any other names, too. None for an unknown one."""
    attachment = registry.find(machine)
    if attachment is None or event not in attachment.transitions:
        return None
    fields, is_open = [], False
    for name, parameter in _read_parameters(attachment, event):
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
        elif name not in (*ARGUMENTS, REASON):
            required = parameter.default is parameter.empty
            fields.append(FieldOutline(name, _types_of(parameter), required=required))
    return fields, is_open


def _find(machine: str) -> Attachment:
    attachment = registry.find(machine)
    if attachment is None:
        raise BadInput(f"{machine} mirrors a model that this process does not have: call the method where the model is")
    return attachment


def _lock(attachment: Attachment, id: str, using: str, *, lock: bool = True) -> models.Model:
    rows: Any = attachment.model._base_manager.using(using)  # type: ignore[attr-defined]
    try:
        return (rows.select_for_update() if lock else rows).get(pk=attachment.model._meta.pk.to_python(id))  # type: ignore[no-any-return, union-attr]
    except attachment.model.DoesNotExist:  # type: ignore[attr-defined]
        raise UnknownInstance(attachment.machine, id) from None
    except (ValueError, TypeError, FieldError, errors.SignalboxError) as error:
        raise UnknownInstance(attachment.machine, id) from error


def _demand(attachment: Attachment, row: models.Model, event: str, user: Any) -> DeclaredTransition:
    refusal, declared = _find_refusal(attachment, row, event, user)
    if refusal or declared is None:
        raise MethodRefused(f"{_label(attachment, event)} cannot be called: {refusal}")
    return declared


def _find_refusal(
    attachment: Attachment, row: models.Model, event: str, user: Any
) -> tuple[str, DeclaredTransition | None]:
    if event not in attachment.transitions:
        return f"{attachment.label} declares no such transition", None
    value = attachment.value_of(row)
    declared = find_transition(attachment.transitions[event], value)
    if declared is None:
        held = attachment.states.find(value) or repr(value)
        return f"the row is in {held}, and {event} starts from {_describe_sources(attachment, event)}", None
    if declared.permission and isinstance(user, str):
        return f"the permission {declared.permission} is asked for, and {user} is no user", declared
    try:
        return attachment.library.find_refusal(row, declared, user), declared
    except Exception as error:  # code of the project
        return f"a condition or the permission raised {_describe(error)}", declared


def _build_arguments(
    attachment: Attachment, event: str, given: dict[str, Any], user: Any, reason: str
) -> dict[str, Any]:
    """Add who and why, where the method asks for them. Raises BadInput."""
    parameters = dict(_read_parameters(attachment, event))
    for name in ARGUMENTS:
        if name in given:
            raise BadInput(f"{name} is who calls {_label(attachment, event)}, and cannot be given")
        if name in parameters:
            given[name] = user
    if REASON in parameters and reason:
        given.setdefault(REASON, reason)
    try:
        inspect.Signature([p.replace(kind=_name_parameter(p)) for p in parameters.values()]).bind(**given)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{_label(attachment, event)}: {error}") from None
    return given


def _name_parameter(parameter: inspect.Parameter) -> Any:
    return parameter.kind if parameter.kind is parameter.VAR_KEYWORD else parameter.KEYWORD_ONLY


def _read_parameters(attachment: Attachment, event: str) -> Iterator[tuple[str, inspect.Parameter]]:
    """Yield the parameters that can be given by name."""
    try:
        signature = inspect.signature(attachment.library.find_method(event))
    except (TypeError, ValueError):
        return
    for name, parameter in signature.parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            yield name, parameter


def _types_of(parameter: inspect.Parameter) -> tuple[str, ...]:
    kind = parameter.annotation
    if isinstance(kind, str):
        kind = next((one for one in TYPES if one.__name__ == kind), None)
    if kind not in TYPES and type(parameter.default) in TYPES:
        kind = type(parameter.default)
    return (TYPES[kind],) if kind in TYPES else ("any",)


def _describe_sources(attachment: Attachment, event: str) -> str:
    sources = attachment.transitions[event]
    names = [attachment.states.find(one) for one in sources if one not in (ANY, ANY_OTHER)]
    return " or ".join(str(one) for one in names) or "any other state"


def _label(attachment: Attachment, event: str) -> str:
    return f"{event}() of {attachment.model._meta.label}"


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_SAID]
