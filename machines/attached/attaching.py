"""Attaches a field of a model, and checks that it can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from django.db import models

from machines.access.mirror_names import MIRROR
from machines.engine import limits

from . import recording, registry
from .errors import NotAttachable
from .libraries import DjangoFsm
from .registry import Attachment

Model = TypeVar("Model", bound=type[models.Model])


@overload
def attach(model: Model, field: str, *, name: str = "") -> Attachment: ...
@overload
def attach(model: str, *, name: str = "") -> Callable[[Model], Model]: ...


def attach(model: Any, field: str = "", *, name: str = "") -> Any:
    """Mirror a field that django-fsm-2 drives: ``attach(Order, "state")``, or as a decorator of the model,
    ``@attach("state")``. Nothing of the model changes.

    ``name``: of the machine, after ``mirror.``; by default ``shop.order.state``. Raises NotAttachable.
    """
    if isinstance(model, str):

        def decorate(decorated: Any) -> Any:
            attach(decorated, model, name=name)
            return decorated

        return decorate
    made = _check(model, field, name)
    held = registry.find(made.machine)
    if held is not None and held.label != made.label:
        raise NotAttachable(
            f"{made.label} and {held.label} would both be the machine {made.machine!r}: give one a name="
        )
    if held is None:
        registry.put(made)
        recording.connect(made)
    return held or made


def detach(attachment: Attachment) -> None:
    """Follow the rows no longer; the machine and its instances stay."""
    registry.remove(attachment)
    recording.disconnect(attachment)


def _check(model: Any, field: str, name: str) -> Attachment:
    if not (isinstance(model, type) and issubclass(model, models.Model)) or model._meta.abstract:
        raise NotAttachable(f"attach takes a model that has a table, and the name of its field; not {model!r}")
    try:
        from django_fsm import FSMFieldMixin
    except ImportError:
        raise NotAttachable("attach reads the transitions of django-fsm-2, which is not installed") from None
    known = [one for one in model._meta.concrete_fields if isinstance(one, FSMFieldMixin)]
    if field not in {one.name for one in known}:
        names = ", ".join(one.name for one in known) or "none"
        raise NotAttachable(f"{model._meta.label} has no FSM field {field!r} of django-fsm-2; it has: {names}")
    machine = MIRROR + (name or f"{model._meta.label_lower}.{field}".lower())
    if (why := limits.check_machine_name(machine)) is not None:
        raise NotAttachable(f"the machine's name {machine!r} {why}: give another one with name=")
    return Attachment(model, field, machine, DjangoFsm(model, field))
