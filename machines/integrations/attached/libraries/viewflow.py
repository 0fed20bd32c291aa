"""viewflow.fsm: transitions are methods of a flow class around a row, or of the model with viewflow's FSMField."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from django.db import models

from ..columns import NotAttachable
from .library import ANY, DeclaredTransition, Library, Listener, MadeTransition, name_of, plain

_MARK = "_is_of_signalbox"


def find_state(flow: Any) -> Any:
    """Return the one State of a flow class, or of ``Flow.state``; None for anything else."""
    if _is_of_viewflow(flow) and hasattr(flow, "on_success"):
        return flow
    if not isinstance(flow, type):
        return None
    members = inspect.getmembers_static(flow)
    states = {name: one for name, one in members if _is_of_viewflow(one) and hasattr(one, "on_success")}
    if len(states) > 1:
        raise NotAttachable(
            f"{flow.__name__} has several states, {', '.join(states)}: give one of them,"
            f" as machine={flow.__name__}.{min(states)}"
        )
    return next(iter(states.values()), None)


def _is_of_viewflow(thing: Any) -> bool:
    return type(thing).__module__.startswith("viewflow.fsm")


class Viewflow(Library):
    """``flow``: the class with the transitions; None where they are methods of the model."""

    name = "viewflow.fsm"

    def __init__(self, model: type[models.Model], field_name: str, state: Any, flow: type | None) -> None:
        super().__init__(model, field_name)
        self._state = state
        self._flow = flow

    def list_transitions(self) -> list[DeclaredTransition]:
        return [self._declare(name, one) for name, method in self._methods() for one in method.get_transitions()]

    def _methods(self) -> Iterator[tuple[str, Any]]:
        for name, method in inspect.getmembers(self._flow or self.model):
            if _is_of_viewflow(method) and hasattr(method, "get_transitions") and hasattr(method, "slug"):
                yield name, method

    def _declare(self, name: str, raw: Any) -> DeclaredTransition:
        targets = [one for one in map(plain, raw.declared_targets()) if not _is_marker(one)]
        stays = _is_marker(raw.target)
        permission = raw.permission
        return DeclaredTransition(
            event=name, source=ANY if _is_marker(raw.source) else plain(raw.source), targets=tuple(targets),
            stays=stays, computes=not targets and not stays, conditions=tuple(name_of(one) for one in raw.conditions),
            permission="" if permission is None else "(nobody)" if _is_marker(permission) else name_of(permission),
            label=str(raw.label), raw=raw,
        )  # fmt: skip

    def connect(self, listener: Listener) -> None:
        former = self._state._on_success
        if hasattr(former, _MARK):
            return

        def hear(flow: Any, method: Any, source: Any, target: Any, **given: Any) -> Any:
            row = self._row_of(flow)
            if row is not None:
                goal = None if _is_marker(target) else plain(target)
                listener(row, self.field_name, MadeTransition(method._func.__name__, plain(source), goal, given))
            return former(flow, method, source, target, **given) if former else None

        setattr(hear, _MARK, True)
        self._state.on_success()(hear)

    def _row_of(self, flow: Any) -> models.Model | None:
        """Return the row that a flow is about: the one of its attributes that is one."""
        if isinstance(flow, self.model):
            return flow
        rows = [one for one in vars(flow).values() if isinstance(one, self.model)]
        return rows[0] if len(rows) == 1 else None

    def find_refusal(self, row: models.Model, declared: DeclaredTransition, user: Any) -> str:
        flow = self._flow_of(row)
        if not declared.raw.has_perm(flow, user):
            return f"the permission {declared.permission} is missing"
        unmet = declared.raw.get_unmet_condition(flow)
        if unmet is None:
            return ""
        said = getattr(unmet[1], "message", "")
        return f"the condition {name_of(unmet[0])} is not met" + (f": {said}" if said else "")

    def find_method(self, event: str) -> Callable[..., Any]:
        return partial(getattr(self._flow or self.model, event)._func, None)

    def call(self, row: models.Model, event: str, arguments: Mapping[str, Any]) -> None:
        getattr(self._flow_of(row), event)(**arguments)

    def _flow_of(self, row: models.Model) -> Any:
        return row if self._flow is None else self._flow(row)


def _is_marker(value: Any) -> bool:
    return type(value).__name__ == "MARKER"
