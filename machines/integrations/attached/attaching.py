"""Attaches a field of a model, and checks that it can be."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from django.db import models

from machines.engine import limits
from machines.people.mirrors import MIRROR

from . import recording, registry
from .columns import NotAttachable, check_columns
from .libraries import DjangoFsm, Library, python_statemachine, transitions, viewflow
from .registry import Attachment

Model = TypeVar("Model", bound=type[models.Model])
Sla = Mapping[str, str] | None


@overload
def attach(
    model: Model, field: str, *, machine: Any = None, name: str = "", sla: Sla = None, columns: Sequence[str] = ()
) -> Attachment: ...
@overload
def attach(
    model: str, *, machine: Any = None, name: str = "", sla: Sla = None, columns: Sequence[str] = ()
) -> Callable[[Model], Model]: ...


def attach(
    model: Any, field: str = "", *, machine: Any = None, name: str = "", sla: Sla = None, columns: Sequence[str] = ()
) -> Any:
    """Mirror a field that a state library drives: ``attach(Order, "state")`` for django-fsm-2, or as a decorator of the
    model, ``@attach("state")``. Nothing of the model changes.

    ``machine``: of other libraries: viewflow's flow class, a StateMachine of python-statemachine, a Machine of
    ``transitions``, or the name of the attribute in which each row has its own. ``name``: of the machine in the room,
    after ``mirror.``; by default ``shop.order.state``. ``sla``: state -> its service level, such as
    ``{"new": "2h"}``. ``columns``: names of eight fields at most, of the same row, that instances carry as data, so
    that people see them and search by them. Raises NotAttachable.
    """
    if isinstance(model, str):

        def decorate(decorated: Any) -> Any:
            attach(decorated, model, machine=machine, name=name, sla=sla, columns=columns)
            return decorated

        return decorate
    made = _check(model, field, machine, name, sla or {}, columns)
    held = registry.find(made.machine)
    if held is not None and held.label != made.label:
        raise NotAttachable(
            f"{made.label} and {held.label} would both be the machine {made.machine!r}: give one a name="
        )
    if held is None:
        recording.connect(made)
        registry.put(made)
    return held or made


def detach(attachment: Attachment) -> None:
    """Follow the rows no longer; the machine and its instances stay."""
    registry.remove(attachment)
    recording.disconnect(attachment)


def _check(
    model: Any, field: str, machine: Any, name: str, sla: Mapping[str, str], columns: Sequence[str]
) -> Attachment:
    if not (isinstance(model, type) and issubclass(model, models.Model)) or model._meta.abstract:
        raise NotAttachable(f"attach takes a model that has a table, and the name of its field; not {model!r}")
    called = MIRROR + (name or f"{model._meta.label_lower}.{field}".lower())
    if (why := limits.check_machine_name(called)) is not None:
        raise NotAttachable(f"the machine's name {called!r} {why}: give another one with name=")
    library = _find_library(model, field, machine)
    return Attachment(model, field, called, library, dict(sla), check_columns(model, columns))


def _find_library(model: type[models.Model], name: str, machine: Any) -> Library:
    fields = {one.name: one for one in model._meta.concrete_fields}
    if machine is None:
        return _find_library_of_field(model, name, fields)
    if name not in fields:
        raise NotAttachable(f"{model._meta.label} has no field {name!r}; it has: {', '.join(fields)}")
    if python_statemachine.is_machine(machine):
        return python_statemachine.PythonStateMachine(model, name, machine)
    if isinstance(machine, str) or transitions.is_machine(machine):
        return transitions.Transitions(model, name, machine)
    if (state := viewflow.find_state(machine)) is not None:
        flow = machine if isinstance(machine, type) else machine._owner
        return viewflow.Viewflow(model, name, state, flow)
    raise NotAttachable(
        f"machine={machine!r} is none that attach knows: a flow class of viewflow.fsm, a class of python-statemachine,"
        " a Machine of transitions, or the name of the attribute in which rows have theirs"
    )


def _find_library_of_field(model: type[models.Model], name: str, fields: dict[str, Any]) -> Library:
    """Find the library of a field that knows its transitions itself: django-fsm-2's, or that of viewflow."""
    found = {key: one for key, one in fields.items() if hasattr(one, "transitions") or hasattr(one, "transition")}
    if name not in found:
        names = ", ".join(found) or "none"
        raise NotAttachable(
            f"{model._meta.label} has no FSM field {name!r} of django-fsm-2; it has: {names}. For viewflow, transitions"
            " and python-statemachine give machine="
        )
    field = found[name]
    if hasattr(field, "transitions"):
        return DjangoFsm(model, name)
    return viewflow.Viewflow(model, name, field._state, None)
