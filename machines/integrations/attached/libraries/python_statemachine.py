"""python-statemachine: a class of states and transitions, of which each row has an object."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.db import models

from ..columns import NotAttachable
from .library import DeclaredTransition, Library, Listener, MadeTransition, describe_unmet, pass_any, plain


def is_machine(thing: Any) -> bool:
    return isinstance(thing, type) and any(one.__module__ == "statemachine.statemachine" for one in thing.__mro__)


class PythonStateMachine(Library):
    """``machine``: the subclass of StateMachine."""

    name = "python-statemachine"

    def __init__(self, model: type[models.Model], field_name: str, machine: Any) -> None:
        super().__init__(model, field_name)
        self._machine = machine
        if not hasattr(machine, "_class_listeners"):
            raise NotAttachable("attach needs python-statemachine 3")
        for state in machine.states_map.values():
            if state.parallel or list(state.states):
                raise NotAttachable(
                    f"{machine.__name__}.{state.id} has states within it: a machine of flat states can be attached"
                )
            if any(one.is_eventless for one in state.transitions):
                raise NotAttachable(
                    f"{machine.__name__}.{state.id} has a transition without an event: name the event that takes it"
                )

    def list_transitions(self) -> list[DeclaredTransition]:
        return [
            _declare(event.id, one)
            for state in self._machine.states_map.values()
            for one in state.transitions
            for event in one.events
        ]

    def list_states(self) -> Iterator[tuple[Any, str]]:
        for state in self._machine.states_map.values():
            yield plain(state.value), "" if state.name == state.id.replace("_", " ").capitalize() else state.name

    def get_initial(self) -> Any:
        return self.field.get_default() or next(
            plain(one.value) for one in self._machine.states_map.values() if one.initial
        )

    def connect(self, listener: Listener) -> None:
        held = self._machine._class_listeners
        if not any(isinstance(one, _Listener) and one.field_name == self.field_name for one in held):
            self._machine._class_listeners = [*held, _Listener(self.model, self.field_name, listener)]

    def find_refusal(self, row: models.Model, declared: DeclaredTransition, user: Any) -> str:
        is_met = any(event.id == declared.event for event in self._machine_of(row).enabled_events())
        return "" if is_met else describe_unmet(declared)

    find_method = pass_any

    def call(self, row: models.Model, event: str, arguments: Mapping[str, Any]) -> None:
        self._machine_of(row).send(event, **arguments)

    def _machine_of(self, row: models.Model) -> Any:
        """Return the object that the row has already, by MachineMixin, or a new one."""
        held = getattr(row, getattr(row, "state_machine_attr", ""), None)
        return held if isinstance(held, self._machine) else self._machine(row, state_field=self.field_name)


class _Listener:
    """Hears each object of the class, since its attributes are callbacks of it."""

    def __init__(self, model: type[models.Model], field_name: str, listener: Listener) -> None:
        self._model = model
        self.field_name = field_name
        self._listener = listener

    def before_transition(self, event: Any, transition: Any, model: Any, event_data: Any) -> None:
        if not isinstance(model, self._model) or event is None:
            return
        target = None if transition.internal else plain(transition.target.value)
        given = event_data.trigger_data.kwargs
        name = str(event)
        self._listener(
            model, self.field_name, MadeTransition(name, plain(transition.source.value), target, given, begins=True)
        )


def _declare(event: str, one: Any) -> DeclaredTransition:
    return DeclaredTransition(
        event, plain(one.source.value), () if one.internal else (plain(one.target.value),), stays=bool(one.internal),
        conditions=tuple(str(each).replace("!", "not ") for each in one.cond), raw=one,
    )  # fmt: skip
