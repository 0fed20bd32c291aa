"""What the mirror asks of a state library: its declarations, its transitions as they happen, and a call of one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from django.db import models

ANY = "*"
ANY_OTHER = "+"
"""Sources: each state, and each but the first target."""


@dataclass(frozen=True)
class DeclaredTransition:
    """One transition as a library declares it. States are values of the column.

    ``targets``: where it may lead, the state after an error too; none, and not ``stays``: it computes its target and
    names no states. ``conditions``, ``permission``: as words. ``raw``: the library's own object.
    """

    event: str
    source: Any
    targets: tuple[Any, ...] = ()
    stays: bool = False
    computes: bool = False
    conditions: tuple[str, ...] = ()
    permission: str = ""
    on_error: Any = None
    label: str = ""
    raw: Any = None


@dataclass(frozen=True)
class MadeTransition:
    """A transition that a row in memory has made. ``source``: the value before; ``target``: None where the state
    stays; ``arguments``: by name; ``begins``: it is not made yet, and counts if the row is saved in its target.
    ``actor``, ``reason``: who makes it and why, as far as that is known."""

    event: str
    source: Any
    target: Any
    arguments: Mapping[str, Any] = field(default_factory=dict)
    begins: bool = False
    actor: str = ""
    reason: str = ""


Listener = Callable[[models.Model, str, MadeTransition], None]
"""Is called with a row, the name of its field, and what happened."""


class Library(ABC):
    """A way in which the states of a field are declared. One object serves one field of one model.

    ``name``: as people know the library.
    """

    name: str

    def __init__(self, model: type[models.Model], field_name: str) -> None:
        self.model = model
        self.field_name = field_name

    @property
    def field(self) -> Any:
        return self.model._meta.get_field(self.field_name)

    @abstractmethod
    def list_transitions(self) -> list[DeclaredTransition]:
        """List the declarations by event, in an order that is the same in each process."""

    def list_states(self) -> Iterable[tuple[Any, str]]:
        """Yield the values and labels of states that are declared apart from transitions and the field's choices."""
        return ()

    def get_initial(self) -> Any:
        """Return the value of a new row."""
        return self.field.get_default()

    @abstractmethod
    def connect(self, listener: Listener) -> None:
        """Call ``listener`` at each transition, before the row is saved. Calling it again changes nothing."""

    @abstractmethod
    def find_refusal(self, row: models.Model, declared: DeclaredTransition, user: Any) -> str:
        """Tell why a user may not call a transition of a row in its source state; "" if permission and conditions let
        them."""

    def find_method(self, event: str) -> Callable[..., Any]:
        """Return the method of an event, as a row has it, to read its parameters."""
        return partial(getattr(self.model, event), None)

    @abstractmethod
    def call(self, row: models.Model, event: str, arguments: Mapping[str, Any]) -> None:
        """Call the model's own method, and do not save the row. Raises what the method raises."""


def pass_any(library: Library, event: str) -> Callable[..., Any]:
    """Return the method of an event whose machine passes on any arguments."""
    return lambda **arguments: None


def describe_unmet(declared: DeclaredTransition) -> str:
    """Tell why a machine does not take a transition whose conditions it asks itself."""
    return f"the condition {' and '.join(declared.conditions) or 'of the machine'} is not met"


def plain(value: Any) -> Any:
    """Return what a column holds for a state: of a member of an enumeration its value."""
    return getattr(value, "value", value)


def name_of(function: Any) -> str:
    return str(getattr(function, "__name__", None) or getattr(function, "name", None) or type(function).__name__)


def holds(user: Any, permission: str | None, row: models.Model) -> bool:
    """Return whether a user holds a permission, for all rows or for this one; any user holds an empty one."""
    if not permission or user.has_perm(permission):
        return True
    try:
        return bool(user.has_perm(permission, row))
    except Exception:  # a backend for single rows refuses to be asked for a permission of another app
        return False


def group(declared: Iterable[DeclaredTransition]) -> dict[str, dict[Any, DeclaredTransition]]:
    """Return event -> source -> its transition, events in the order of their names."""
    found: dict[str, dict[Any, DeclaredTransition]] = {}
    for one in sorted(declared, key=lambda one: one.event):
        sources = found.setdefault(one.event, {})
        sources[one.source] = _merge(sources[one.source], one) if one.source in sources else one
    return found


def _merge(first: DeclaredTransition, other: DeclaredTransition) -> DeclaredTransition:
    """Make one of two transitions of an event from one state, of which conditions choose."""
    return replace(
        first, targets=tuple(dict.fromkeys((*first.targets, *other.targets))), stays=first.stays or other.stays,
        computes=first.computes or other.computes,
        conditions=tuple(dict.fromkeys((*first.conditions, *other.conditions))),
    )  # fmt: skip
