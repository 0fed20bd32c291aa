"""Names the states of a field: what its column holds, and what the machine calls it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils import translation

from machines.engine import limits

EMPTY = "(empty)"
_UNFIT = re.compile(r"[.#\x00-\x1f]+")


@dataclass
class StateNames:
    """``names``: value of the column -> name of the state, in the order of the declarations; ``labels``: name -> words
    of the field's choices."""

    names: dict[Any, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    def add(self, value: Any, label: str = "") -> None:
        value = getattr(value, "value", value)
        if value is None or value in self.names:
            return
        wanted = label if isinstance(value, int) and label else str(value)
        name = _fit(wanted) or _fit(str(value)) or EMPTY
        if name in self.names.values():
            name = f"{name[: limits.MAX_STATE_NAME - 12]} {len(self.names)}"
        self.names[value] = name
        if label and label != name:
            self.labels[name] = label

    def find(self, value: Any) -> str | None:
        return self.names.get(getattr(value, "value", value))


def _fit(text: str) -> str:
    return _UNFIT.sub("_", text).strip()[: limits.MAX_STATE_NAME].strip()


def list_transitions(model: type[Any], field: Any) -> dict[str, dict[Any, Any]]:
    """Return method -> source -> its transition, as django-fsm-2 has collected them, in the order of their names."""
    declared = field.transitions.get(model) or {}
    return {name: method._django_fsm.transitions for name, method in sorted(declared.items())}


def list_targets(transition: Any) -> Iterator[Any]:
    """Yield the values that a transition may lead to; of one that computes its target those that it declares."""
    target = transition.target
    if hasattr(target, "get_state"):
        yield from target.allowed_states or ()
    elif target is not None:
        yield target
    if transition.on_error is not None:
        yield transition.on_error


def read_states(model: type[Any], field: Any) -> StateNames:
    """Collect the values that the default, the choices and the transitions name."""
    found = StateNames()
    with translation.override(None):  # the same names in each process
        choices = [(value, str(label)) for value, label in _flatten(field.choices or ())]
        labels = dict(choices)
        default = field.get_default()
        for value in (default, *labels):
            _add(found, value, labels)
        for sources in list_transitions(model, field).values():
            for source in sorted(sources, key=str):  # a set of sources has another order in each process
                transition = sources[source]
                _add(found, None if source in ("*", "+") else source, labels)
                for target in list_targets(transition):
                    _add(found, target, labels)
    return found


def _add(found: StateNames, value: Any, labels: dict[Any, str]) -> None:
    if isinstance(value, list | tuple):
        for one in value:
            _add(found, one, labels)
    else:
        found.add(value, labels.get(getattr(value, "value", value), ""))


def _flatten(choices: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for value, label in choices:
        if isinstance(label, list | tuple):
            yield from _flatten(label)
        elif value not in (None, ""):
            yield value, label
