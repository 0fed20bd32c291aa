"""What all parts of the reader share: its state, names, and the tree of states that targets are looked up in; and the
words and rules of XState that the writer knows, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from machines.engine import limits
from machines.engine.definitions.findings import Path, Report, quote
from machines.engine.definitions.place import Place
from machines.engine.definitions.scope import Branch, Tree
from machines.engine.expressions import read as parse_expression
from machines.formats import text

if TYPE_CHECKING:
    from machines.formats.javascript.scope import Function

NO_CODE = 'write an expression there, such as "failed < 3"'
_OF_XSTATE = ("xstate.done.", "xstate.error.", "xstate.after.")
_NOT_A_WORD = re.compile(r"[\s*\x00-\x1f\x7f-\x9f]+")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
DIALECT = "signalbox"  # the `queryLanguage` of texts whose expressions are ours
OURS = "signalbox"  # the key below `meta` with what only we understand
# These keys are kept below `meta`, because no other XState tool knows them.
MACHINE_KEYS = ("$schema", "errors", "machines", *text.MACHINE_SETTINGS)
STATE_KEYS = ("sla",)
TRANSITION_KEYS = ("allow",)
INVOKE_KEYS = ("queue", *text.INVOKE_SETTINGS)
VERBS = ("set", "unset", "append", "raise", "send", "cancel", "enqueue", "emit", "log", "if", "foreach", "block")
# Events with different names: those of XState 5, of XState 4, and ours.
DONE_ACTOR, DONE_INVOKE = "xstate.done.actor.", "done.invoke."
ERROR_ACTOR, ERROR_PLATFORM, ERROR_INVOKE = "xstate.error.actor.", "error.platform.", "error.invoke."
DONE_STATE_5, DONE_STATE = "xstate.done.state.", "done.state."
_ESCAPED = re.compile(r"\\(.)|(\.)", re.DOTALL)


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

    def leave_out(self, path: Path, message: str, hint: str = "") -> None:
        self.report.add("SB221", path, message, hint)

    def leave_out_unknown(self, place: Place, known: Collection[str]) -> None:
        """Report the keys that no part of the reader uses."""
        for key in place.value:
            if key not in known:
                self.leave_out(place.below(key), f"the key {quote(key)} has no meaning here")

    def restore(self, found: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
        """Restore what the writer stored below ``meta`` for lack of another place."""
        meta = found.get("meta")
        ours = meta.get(OURS) if self.ours and isinstance(meta, dict) else None
        if not isinstance(ours, dict):
            return found
        others = {key: value for key, value in meta.items() if key != OURS}
        rest = {key: value for key, value in found.items() if key != "meta"} | ({"meta": others} if others else {})
        return rest | {key: ours[key] for key in keys if key in ours}

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


def event_to_send(name: str, path: Path, reading: Reading) -> str:
    """Return an event name for raise, send and emit. Events that only XState or this engine creates are errors."""
    if limits.is_reserved_event(name) or name.startswith(_OF_XSTATE):
        message = f"the event {quote(name)} is the engine's own and cannot be raised, sent or emitted"
        reading.report.add("SB107", path, message, "write a name of your own")
    return event_name(name, path, reading)


def event_name(name: str, path: Path, reading: Reading) -> str:
    changed = _NOT_A_WORD.sub("_", name)[: limits.MAX_EVENT_NAME] or "_"
    return _note_change("event", name, changed, path, reading)


def descriptor(name: str, path: Path, reading: Reading) -> str:
    """Return a descriptor for ``on``. Patterns stay the same, and the engine's own events get the names used here."""
    for prefix, ours in ((DONE_ACTOR, DONE_INVOKE), (ERROR_ACTOR, ERROR_INVOKE), (ERROR_PLATFORM, ERROR_INVOKE)):
        if name.startswith(prefix):
            return ours + name.removeprefix(prefix)
    for prefix in (DONE_STATE_5, DONE_STATE):
        if name.startswith(prefix):
            return _name_done_state(name.removeprefix(prefix), reading)
    if name == "*":
        return name
    base = name.removesuffix(".*")
    return event_name(base, path, reading) + name[len(base) :]


def _name_done_state(id: str, reading: Reading) -> str:
    """Return the name of the event for the end of a state.

    XState uses the state's id, which includes the machine's; here it is the state's own name.
    """
    found = reading.states.find_by_id(id)
    return DONE_STATE + (found.word if found and found.parent else id)


def machine_name(name: str, path: Path, reading: Reading) -> str:
    return _make_name(name, "machine", path, reading, limits.check_machine_name)


def handler_name(name: str, path: Path, reading: Reading) -> str:
    return _make_name(name, "handler", path, reading, limits.check_handler_name)


def field_name(name: str, path: Path, reading: Reading) -> str:
    return _note_change("data field", name, text.field_name(name, "field"), path, reading)


def _make_name(name: str, what: str, path: Path, reading: Reading, check: Callable[[object], str | None]) -> str:
    changed = name if check(name) is None else _NOT_A_NAME.sub("-", name).strip("-.")[: limits.MAX_NAME]
    if check(changed) is not None:
        changed = f"_{changed}"[: limits.MAX_NAME]
    return _note_change(what, name, changed, path, reading)


def _note_change(what: str, name: str, changed: str, path: Path, reading: Reading) -> str:
    if changed != name:
        message = f"the {what} name {quote(name)} is not allowed here; it is now {quote(changed)}"
        reading.report.add("SB223", path, message)
    return changed


def unbrace(text: str) -> str | None:
    """Return the expression between double braces; None for any other text."""
    trimmed = text.strip()
    if len(trimmed) >= 4 and trimmed.startswith("{{") and trimmed.endswith("}}"):
        return trimmed[2:-2].strip()
    return None


def one_or_many(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def as_list(found: Any) -> list[Any]:
    return [] if found is None else one_or_many(found)


def fields_read(value: Any) -> set[str]:
    """Return the data fields that a value depends on. In the value, each text is an expression."""
    if isinstance(value, str):
        return {use.name for use in parse_expression(value).uses if use.kind == "data"}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {name for item in items for name in fields_read(item)}


def covering(event: str) -> list[str]:
    """Return the other descriptors that match this event: shorter names, patterns, and ``*``."""
    base = event.removesuffix(".*")
    ends = [place for place, character in enumerate(base) if character == "."]
    shorter = [base[:end] for end in ends]
    return [*shorter, *(f"{one}.*" for one in [*shorter, base] if f"{one}.*" != event), "*"] if base else []


class States:
    """The states of a config. ``machine`` is the config's own id."""

    def __init__(self, machine: str, config: dict[str, Any]) -> None:
        self._tree = Tree(machine, config)
        self._machine = machine
        self._ids = {branch.explicit: branch for branch in self._tree.branches if branch.explicit}
        self.top = self._tree.top
        self.names = frozenset(branch.name for branch in self._tree.branches)

    def resolve(self, source: Branch, target: str) -> Branch | None:
        """Find the state of ``#id``, ``#id.child``, ``.child``, or of a sibling of the source."""
        if target.startswith("#"):
            return self.find_by_id(target[1:])
        if target.startswith("."):
            return _descend(source, target[1:])
        return _descend(source.parent or source, target)

    def find_by_id(self, id: str) -> Branch | None:
        """Find a state by an explicit id, or by the default id: the machine's id and the keys down to the state."""
        if id in self._ids:
            return self._ids[id]
        if id == self._machine:
            return self.top
        for end in reversed([place for place, character in enumerate(id) if character == "."]):
            start = self._ids.get(id[:end]) or (self.top if id[:end] == self._machine else None)
            if start is not None:
                return _descend(start, id[end + 1 :])
        return None


def is_around(branch: Branch, other: Branch | None) -> bool:
    """Return whether the other one is this state or is inside it."""
    return other is not None and (other is branch or other.is_inside(branch))


def _descend(branch: Branch | None, path: str) -> Branch | None:
    if branch is None or not path:
        return branch
    found = branch.descend(path)
    if found is not None or "\\" not in path:
        return found
    at: Branch | None = branch
    for key in split(path):
        at = at.children.get(key) if at else None
    return at


def split(path: str) -> list[str]:
    """Split a path into keys. A dot ends a key, and a backslash escapes the next character."""
    keys, start = [""], 0
    for match in _ESCAPED.finditer(path):
        keys[-1] += path[start : match.start()] + (match[1] or "")
        if match[2]:
            keys.append("")
        start = match.end()
    keys[-1] += path[start:]
    return keys
