"""Machines that mirror rows of a table: known by their names, and called through the methods of their models.

``machines.integrations.attached`` registers the methods when Django is ready, so that nothing else imports it.
"""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from machines.engine import BadInput, Instance
from machines.engine.definitions import FieldOutline

MIRROR = "mirror."
"""Begins the names of such machines."""


class MethodRefused(BadInput):
    """A method of a model that may not be called on this row now; the message says why. Nothing has changed."""

    code = "SB494"


class MethodFailed(BadInput):
    """A method of a model that raised. What it has written is taken back, unless it declares a state for that."""

    code = "SB495"


class RowMethods(Protocol):
    """What ``machines.integrations.attached.calls`` does with the row of an instance."""

    def call_method(
        self,
        machine: str,
        id: str,
        event: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        user: Any,
        expect: int | None = None,
        reason: str = "",
    ) -> Instance: ...
    def find_refusals(self, machine: str, id: str, events: Collection[str], user: Any) -> dict[str, str]: ...
    def find_row_address(self, machine: str, id: str, user: Any) -> str: ...
    def find_user(self, name: str) -> Any: ...
    def list_parameters(self, machine: str, event: str) -> tuple[list[FieldOutline], bool] | None: ...


_with_model: set[str] = set()
_methods: list[RowMethods] = []


def is_mirror(machine: str) -> bool:
    return machine.startswith(MIRROR)


def is_mirror_without_model(machine: str) -> bool:
    """Tell whether this process cannot call the methods of a mirrored machine, since it does not have the model."""
    return is_mirror(machine) and machine not in _with_model


def note_model(machine: str) -> None:
    _with_model.add(machine)


def forget_model(machine: str) -> None:
    _with_model.discard(machine)


def register(methods: RowMethods) -> None:
    """Have mirrored machines called by these methods, in this process."""
    _methods[:] = [methods]


def row_methods() -> RowMethods:
    """Return the registered methods. Without the app ``machines`` of Django there are none: LookupError."""
    if not _methods:
        raise LookupError("rows are called in a process with the Django app 'machines' alone")
    return _methods[0]
