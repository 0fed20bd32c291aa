"""The library ``transitions``: a Machine of strings, shared by all rows or made by each.

A callback of a transition gets the arguments of its trigger alone, and is named: as a method of the model. So the model
gets one for each transition.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.db import models

from ..columns import NotAttachable
from .library import DeclaredTransition, Library, Listener, MadeTransition, describe_unmet, name_of, pass_any, plain

HEARS = "_signalbox_hears_"


def is_machine(thing: Any) -> bool:
    return any(one.__module__.startswith("transitions.") and one.__name__ == "Machine" for one in type(thing).__mro__)


class Transitions(Library):
    """``machine``: the Machine of all rows, or the name of the attribute in which each row has its own."""

    name = "transitions"

    def __init__(self, model: type[models.Model], field_name: str, machine: Any) -> None:
        super().__init__(model, field_name)
        self._given = machine
        if not isinstance(machine, str):
            self._check(machine)

    @property
    def _machine(self) -> Any:
        if not isinstance(self._given, str):
            return self._given
        machine = getattr(self.model(), self._given, None)
        if not is_machine(machine):
            raise NotAttachable(
                f"a new {self.model._meta.label} has no Machine of transitions in its attribute {self._given!r}"
            )
        self._check(machine)
        return machine

    def _check(self, machine: Any) -> None:
        if any(one.__module__.startswith("transitions.extensions.nesting") for one in type(machine).__mro__):
            raise NotAttachable("machines of transitions with nested states cannot be attached; a flat Machine can be")
        if machine.model_attribute != self.field_name:
            raise NotAttachable(
                f"the Machine keeps the state in {machine.model_attribute!r}:"
                f" give it model_attribute={self.field_name!r}"
            )

    def list_transitions(self) -> list[DeclaredTransition]:
        return [_declare(event, one) for event, one in _walk(self._machine)]

    def list_states(self) -> Iterator[tuple[Any, str]]:
        for state in self._machine.states.values():
            yield plain(state.value), ""

    def get_initial(self) -> Any:
        return self.field.get_default() or plain(self._machine.initial)

    def connect(self, listener: Listener) -> None:
        machine = self._machine
        for event, one in _walk(machine, automatic=True):
            source, target = plain(one.source), None if one.dest is None else plain(one.dest)
            setattr(self.model, _callback_name(event, one), _make_callback(self, listener, event, source, target))
        if not isinstance(self._given, str):
            follow(machine)

    def find_refusal(self, row: models.Model, declared: DeclaredTransition, user: Any) -> str:
        return "" if self._machine_of(row)._can_trigger(row, declared.event) else describe_unmet(declared)

    find_method = pass_any

    def call(self, row: models.Model, event: str, arguments: Mapping[str, Any]) -> None:
        self._machine_of(row).events[event].trigger(row, **arguments)

    def _machine_of(self, row: models.Model) -> Any:
        return getattr(row, self._given) if isinstance(self._given, str) else self._given


def follow(machine: Any) -> None:
    """Have a Machine tell of its transitions. Of a Machine that each row makes for itself, the model calls this.
    Rows of a model that is not attached stay as they are."""
    for event, one in _walk(machine, automatic=True):
        name = _callback_name(event, one)
        if name not in one.before and all(hasattr(type(row), name) for row in machine.models):
            one.add_callback("before", name)


def _walk(machine: Any, *, automatic: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the transitions with their triggers, those to each state (``to_<state>``) only with ``automatic``."""
    made = {f"to_{name}" for name in machine.states} if machine.auto_transitions else set()
    for event in machine.events.values():
        if automatic or event.name not in made:
            for found in event.transitions.values():
                for one in found:
                    yield event.name, one


def _callback_name(event: str, one: Any) -> str:
    return f"{HEARS}{event}_{plain(one.source)}_{plain(one.dest)}"


def _make_callback(
    library: Transitions, listener: Listener, event: str, source: Any, target: Any
) -> Callable[..., None]:
    def hear(row: models.Model, *given: Any, **arguments: Any) -> None:
        named = getattr(given[0], "kwargs", arguments) if given else arguments  # an EventData, with send_event
        listener(row, library.field_name, MadeTransition(event, source, target, named, begins=True))

    return hear


def _declare(event: str, one: Any) -> DeclaredTransition:
    conditions = tuple(("" if each.target else "not ") + _word(each.func) for each in one.conditions)
    stays = one.dest is None
    targets = () if stays else (plain(one.dest),)
    return DeclaredTransition(event, plain(one.source), targets, stays=stays, conditions=conditions, raw=one)


def _word(function: Any) -> str:
    return function if isinstance(function, str) else name_of(function)
