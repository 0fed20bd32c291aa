"""Turns a machine of python-statemachine into a definition: conditions become data fields, callbacks messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from machines.engine import limits
from machines.engine.definitions.report import Path, Report, quote
from machines.formats.conditions import Complain, Conditions
from machines.formats.messages import event_name, handler_name, message_of

ENGINE_EVENTS = ("error.execution",)  # these have the names that SCXML uses


@dataclass(eq=False, slots=True)
class Row:
    """A state. ``initial``: the child that is entered with it. ``entry`` and ``exit`` are names of callbacks, ``work``
    of handlers."""

    key: str
    path: Path
    parent: Row | None = None
    children: list[Row] = field(default_factory=list)
    initial: Row | None = None
    is_parallel: bool = False
    is_final: bool = False
    history: str = ""
    description: str = ""
    entry: list[str] = field(default_factory=list)
    exit: list[str] = field(default_factory=list)
    work: list[str] = field(default_factory=list)

    def walk(self) -> Iterator[Row]:
        """Yield the state and all states in it."""
        waiting = [self]
        while waiting:
            at = waiting.pop()
            yield at
            waiting.extend(reversed(at.children))

    def is_inside(self, other: Row) -> bool:
        at: Row | None = self
        while at is not None and at is not other:
            at = at.parent
        return at is other


@dataclass(frozen=True, slots=True)
class Move:
    """A transition. ``event`` is empty for one taken at once; ``conditions`` are texts with their required values.

    ``is_internal``: no state is left or entered, except those inside.
    """

    path: Path
    event: str
    source: Row
    targets: list[Row]
    conditions: list[tuple[str, bool]]
    actions: list[str]
    is_internal: bool = False
    is_done: bool = False


@dataclass(slots=True)
class Table:
    name: str
    top: Row
    moves: list[Move]


class Builder:
    """Builds the definition of one table."""

    def __init__(self, table: Table, report: Report) -> None:
        self._table = table
        self._report = report
        self._conditions = Conditions()
        self._keys: dict[Row, str] = {}
        self._moves: dict[Row, list[Move]] = {}
        self._called: set[str] = set()

    def build(self, id: str) -> dict[str, Any]:
        top = self._table.top
        for row in top.walk():
            self._name(row)
        self._uses = Counter(self._keys[row] for row in top.walk())
        for move in self._table.moves:
            self._moves.setdefault(move.source, []).append(move)
        body = self._body(top)
        context = {"context": self._conditions.fields} if self._conditions.fields else {}
        return {"id": id, **context, **body}

    def _complain(self, path: Path) -> Complain:
        return lambda code, text, hint: self._report.add(code, path, text, hint)

    def _name(self, row: Row) -> None:
        taken = {self._keys[other] for other in row.parent.children if other in self._keys} if row.parent else set()
        name = "".join(one if one.isprintable() else " " for one in row.key).strip().replace(".", "_").lstrip("#")
        name = name[: limits.MAX_STATE_NAME - 8].strip() or "state"
        number, found = 2, name
        while found in taken:
            found, number = f"{name} {number}", number + 1
        if found != row.key and row.parent is not None:
            message = f"the state name {quote(row.key)} is not allowed here; it is now {quote(found)}"
            self._report.add("SB223", row.path, message)
        self._keys[row] = found

    def _target(self, row: Row) -> str:
        """Return a target by its key if the key is unique, else by all keys from the top."""
        if self._uses[self._keys[row]] == 1:
            return self._keys[row]
        keys = []
        at: Row | None = row
        while at is not None and at.parent is not None:
            keys.append(self._keys[at])
            at = at.parent
        return "#" + ".".join(reversed(keys)) if len(keys) > 1 else keys[0]

    def _state(self, row: Row) -> dict[str, Any]:
        if row.history:
            targets = [self._target(target) for move in self._moves.get(row, ()) for target in move.targets]
            kept: dict[str, Any] = {"type": "history"} | ({"history": "deep"} if row.history == "deep" else {})
            return kept | ({"target": targets[0] if len(targets) == 1 else targets} if targets else {})
        state: dict[str, Any] = {}
        if row.description:
            state["description"] = row.description
        if row.is_final and (self._moves.get(row) or row.children):
            message = f"the final state {quote(row.key)} has ways out or states inside; it is an ordinary one here"
            self._report.add("SB224", row.path, message)
        elif row.is_final:
            return {"type": "final"} | state | self._callbacks(row)
        return state | self._callbacks(row) | self._body(row)

    def _callbacks(self, row: Row) -> dict[str, Any]:
        found = {"entry": self._messages(row.entry, row.path), "exit": self._messages(row.exit, row.path)}
        return {key: value for key, value in found.items() if value}

    def _messages(self, names: list[str], path: Path) -> Any:
        """Return a message for each name. Only the first use of a name adds a finding."""
        made = []
        for name in names:
            complain = self._complain(path) if name not in self._called else _silent
            self._called.add(name)
            made.append(message_of(name, complain))
        return made[0] if len(made) == 1 else made

    def _body(self, row: Row) -> dict[str, Any]:
        """Return the states inside a state, and its transitions."""
        body: dict[str, Any] = {}
        if row.is_parallel and row.children:
            body["type"] = "parallel"
        elif row.children and row.initial is not None:
            body["initial"] = self._below(row, row.initial)
        elif row.children:
            body["initial"] = self._keys[row.children[0]]
        work = [{"src": handler_name(name, self._complain(row.path))} for name in row.work]
        if work:
            body["invoke"] = work[0] if len(work) == 1 else work
        for move in self._moves.get(row, ()):
            self._add(body, move)
        _shorten(body)
        if row.children:
            body["states"] = {self._keys[child]: self._state(child) for child in row.children}
        return body

    def _below(self, row: Row, initial: Row) -> str:
        keys = []
        at: Row | None = initial
        while at is not None and at is not row:
            keys.append(self._keys[at])
            at = at.parent
        return ".".join(reversed(keys))

    def _add(self, body: dict[str, Any], move: Move) -> None:
        transition: dict[str, Any] = {}
        targets = [self._target(target) for target in move.targets]
        if targets:
            transition["target"] = targets[0] if len(targets) == 1 else targets
            inside = any(target.is_inside(move.source) for target in move.targets)
            transition |= {"reenter": True} if inside and not move.is_internal else {}
        guard = self._guard(move)
        if guard:
            transition["guard"] = guard
        actions = self._messages(move.actions, move.path)
        if actions:
            transition["actions"] = actions
        written: Any = transition["target"] if list(transition) == ["target"] and len(targets) == 1 else transition
        if move.is_done:
            body.setdefault("onDone", []).append(written)
        elif move.event:
            known = move.event in ENGINE_EVENTS
            event = move.event if known else event_name(move.event, self._complain(move.path))
            body.setdefault("on", {}).setdefault(event, []).append(written)
        else:
            body.setdefault("always", []).append(written)

    def _guard(self, move: Move) -> str:
        parts = []
        for text, wanted in move.conditions:
            found = self._conditions.read(text, self._complain(move.path))
            simple = found.isidentifier()
            parts.append(found if wanted and (simple or len(move.conditions) == 1) else f"({found})" if wanted else "")
            if not wanted:
                parts[-1] = f"not {found}" if simple else f"not ({found})"
        return " and ".join(parts)


def _shorten(body: dict[str, Any]) -> None:
    """Replace each list of one transition by that transition."""
    for key, found in body.get("on", {}).items():
        body["on"][key] = found[0] if len(found) == 1 else found
    for key in ("always", "onDone"):
        if len(body.get(key, ())) == 1:
            body[key] = body[key][0]


def _silent(code: str, text: str, hint: str) -> None:
    """Ignore a finding that has been reported before."""
