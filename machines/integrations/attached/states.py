"""Names the states of a field: what its column holds, and what the machine calls it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.utils import translation

from machines.engine import limits

from .libraries import ANY, ANY_OTHER, Library

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


def read_states(library: Library) -> StateNames:
    """Collect the values that the field's default and choices, and the library's states and transitions name."""
    found = StateNames()
    with translation.override(None):  # the same names in each process
        labels = {value: str(label) for value, label in _flatten(library.field.choices or ())}
        for value, label in library.list_states():
            labels.setdefault(getattr(value, "value", value), label)
        for value in (library.get_initial(), *labels):
            _add(found, value, labels)
        for one in library.list_transitions():
            for value in (None if one.source in (ANY, ANY_OTHER) else one.source, *one.targets):
                _add(found, value, labels)
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
