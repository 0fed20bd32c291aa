"""The state that all parts of the reader share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from machines.engine.definitions.place import Place
from machines.engine.definitions.report import Path, Report, quote

from .names import field_name
from .target_tree import Branch, States

if TYPE_CHECKING:
    from machines.formats.javascript.scope import Function

NO_CODE = 'write an expression there, such as "failed < 3"'


@dataclass(slots=True)
class Reading:
    """``ours``: expressions are in our language. ``fields``: the data fields, by their names in the config.

    ``given``: the data fields for the names of ``input``; ``first``: the expressions that set fields at the start.
    ``constants`` and ``functions`` are those of the script around the config.

    ``longer``: event -> the events of the document that begin with it and a dot. ``lookups``: how often names were
    resolved.
    """

    report: Report
    states: States
    machine: str = ""
    four: bool = False
    ours: bool = False
    fields: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, frozenset[str]] = field(default_factory=dict)
    undeclared: list[str] = field(default_factory=list)
    implementations: Place | None = None
    longer: dict[str, list[str]] = field(default_factory=dict)
    lookups: int = 0
    given: dict[str, str] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, Function] | None = None

    def absolute(self, branch: Branch) -> str:
        """Return a target that means this state wherever it is used."""
        return f"#{branch.name if branch.parent else self.machine}"

    def code_missing(self, place: Place, what: str, name: str) -> None:
        self.report.add("SB140", place.path, f"{what} {quote(name)} has no expression in this text", NO_CODE)

    def cannot(self, place: Place, message: str, hint: str = "") -> None:
        self.report.add("SB141", place.path, message, hint)

    def left_out(self, path: Path, message: str, hint: str = "") -> None:
        self.report.add("SB221", path, message, hint)

    def leave_out_unknown(self, place: Place, known: Collection[str]) -> None:
        """Report the keys that no part of the reader uses."""
        for key in place.value:
            if key not in known:
                self.left_out(place.below(key), f"the key {quote(key)} has no meaning here")

    def input_field(self, name: str, place: Place) -> str:
        """Return the data field that replaces an input. It is set when an instance is created."""
        if name not in self.given:
            taken = name in self.fields
            self.given[name] = field_name(f"input_{name}" if taken else name, place.path, self)
            self.fields.setdefault(name, self.given[name])
            self.undeclared.append(self.given[name])
        return self.given[name]

    def field(self, name: str, place: Place) -> str:
        """Return the data field's name in the definition.

        XState needs no declaration, so a field that is not declared is added with any type.
        """
        if name not in self.fields:
            self.fields[name] = field_name(name, place.path, self)
            self.undeclared.append(self.fields[name])
            message = f'the data field {quote(name)} is used and not in "context"; it is declared with any type'
            self.report.add("SB224", place.path, message, 'declare it in "context" with an example')
        return self.fields[name]


@dataclass(frozen=True, slots=True)
class Scope:
    """The place of an expression: its state, and what it can read from the event.

    ``output``: our expression for ``event.output``, if the event has one. ``failing``: whether the event reports failed
    work. ``params``: the parameters of a named guard or action, as expressions by name, or as one. ``loops``: where an
    assignment collects the actions that must run before it; None where no actions are possible.
    """

    reading: Reading
    state: Branch
    output: str = ""
    failing: bool = False
    params: Any = None
    depth: int = 0
    loops: list[list[dict[str, Any]]] | None = field(default=None, compare=False)

    def finishing(self, output: str) -> Scope:
        """Return the scope for an event that reports the end of work."""
        return replace(self, output=output)
