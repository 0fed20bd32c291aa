"""Reads classes of python-statemachine.

Describing a class runs its module, so it happens in a separate process, and only on explicit request. No page does it,
and no text is read as a class.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding, Path, Report, make_finding, quote
from machines.formats.conditions import Complain, Conditions, event_name, handler_name, machine_name, message_of
from machines.formats.text import shorten_transitions, single

FORMAT = "python-statemachine"
HINT = f"they are code: machine import module:Class --format {FORMAT} --run-code"
SECONDS = 60  # importing a module may take so long
_SCRIPT = FilePath(__file__).with_name("class_description.py")
ENGINE_EVENTS = ("error.execution",)  # these have the names that SCXML uses
_DONE = "done.state."
_OPERATORS = {"^": "and", "v": "or"}  # the library accepts both spellings
_PREFIXES = (_DONE, "done.invoke.", "error.")


def run(target: str, *, python: str = sys.executable) -> tuple[Any, list[Finding]]:
    """Return the definition of a class ``module:Class`` in the working folder. Runs the code of its module."""
    try:
        done = subprocess.run(
            [python, str(_SCRIPT), target], capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return None, [make_finding("SB136", "", f"the module did not answer within {SECONDS} s")]
    except OSError as error:
        return None, [make_finding("SB136", "", f"the interpreter cannot be run: {error.strerror}")]
    if len(done.stdout) > limits.MAX_DEFINITION:
        return None, [make_finding("SB111", "", f"the description is larger than {limits.MAX_DEFINITION} bytes")]
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    try:
        described = json.loads(lines[-1]) if lines else None
    except ValueError:
        described = None
    if not isinstance(described, dict):
        return None, [make_finding("SB136", "", f"the process ended with {done.returncode} and said nothing")]
    return read(described)


def read(described: dict[str, Any]) -> tuple[Any, list[Finding]]:
    """Return the definition of the class that ``class_description`` described."""
    if "error" in described:
        hint = "the interpreter that runs the command needs python-statemachine and the module"
        return None, [make_finding("SB136", "", f"the class cannot be imported: {described['error']}", hint)]
    report = Report()
    report.document = {}
    top, moves = _read_table(described, report)
    if len(described["states"]) > limits.MAX_STATES:
        report.add("SB111", (), f"more than {limits.MAX_STATES} states")
        return None, report.findings()
    definition = Builder(top, moves, report).build(machine_name(described["name"]) or "machine")
    if described["doc"]:
        definition = {"id": definition["id"], "description": described["doc"], **definition}
    return definition, report.findings()


def _read_table(described: dict[str, Any], report: Report) -> tuple[Row, list[Move]]:
    """Return the state around all others, and the transitions."""
    top = Row("", ())
    rows: list[Row] = []
    for state in described["states"]:
        parent = top if state["parent"] is None else rows[state["parent"]]
        row = Row(state["id"], (described["name"], state["id"]), parent)
        groups = state["callbacks"]
        row.entry, row.exit, row.work = (_names(groups, group) for group in ("ENTER", "EXIT", "INVOKE"))
        row.is_final, row.is_parallel, row.history = state["final"], state["parallel"], state["history"]
        plain = state["id"].replace("_", " ").lower()
        row.description = state["name"] if state["name"].replace("_", " ").lower() != plain else ""
        _leave_out(groups, ("ENTER", "EXIT", "INVOKE"), row, report)
        parent.children.append(row)
        rows.append(row)
        if state["initial"] and not parent.is_parallel and not row.history:
            parent.initial = parent.initial or row
    return top, [move for one in described["transitions"] for move in _moves(one, rows, report)]


def _names(groups: dict[str, Any], *kinds: str) -> list[str]:
    return [name for kind in kinds for name, _ in groups.get(kind, ())]


def _moves(one: dict[str, Any], rows: list[Row], report: Report) -> list[Move]:
    """Return a row for each event of a transition. A transition into a compound state sets its initial state."""
    source, groups = rows[one["source"]], one["callbacks"]
    targets = [rows[number] for number in one["targets"]]
    if one["initial"]:
        source.initial = source.initial or (targets[0] if targets else None)
        return []
    _leave_out(groups, ("BEFORE", "ON", "AFTER", "COND", "VALIDATOR"), source, report)
    conditions = [
        (" ".join(_OPERATORS.get(word, word) for word in text.split()), wanted)
        for text, wanted in groups.get("COND", ())
    ]
    conditions += [(name, True) for name in _names(groups, "VALIDATOR")]
    actions = _names(groups, "BEFORE", "ON", "AFTER")
    written = one["event"].split()
    events = [name for name in written if not any(_add_dots(name, prefix) in written for prefix in _PREFIXES)] or [""]
    stays = one["internal"] and targets == [source]
    return [
        Move(
            source.path,
            "" if event.startswith(_DONE) else event,
            source,
            [] if stays else targets,
            conditions,
            actions,
            is_internal=one["internal"],
            is_done=event.startswith(_DONE),
        )
        for event in events
    ]


def _add_dots(name: str, prefix: str) -> str:
    """Return the dotted event name of an attribute: ``done_state_x`` is also the event ``done.state.x``."""
    alias = prefix.replace(".", "_")
    return prefix + name.removeprefix(alias) if name.startswith(alias) else ""


def _leave_out(groups: dict[str, Any], known: tuple[str, ...], row: Row, report: Report) -> None:
    for kind in groups:
        if kind not in known:
            names = ", ".join(_names(groups, kind))
            report.add("SB221", row.path, f"callbacks of the kind {kind.lower()} have no meaning here: {names}")


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


class Builder:
    """Builds the definition of one class."""

    def __init__(self, top: Row, moves: list[Move], report: Report) -> None:
        self._top = top
        self._report = report
        self._conditions = Conditions()
        self._keys: dict[Row, str] = {}
        self._moves: dict[Row, list[Move]] = {}
        for move in moves:
            self._moves.setdefault(move.source, []).append(move)
        self._called: set[str] = set()

    def build(self, id: str) -> dict[str, Any]:
        for row in self._top.walk():
            self._name(row)
        self._uses = Counter(self._keys[row] for row in self._top.walk())
        body = self._body(self._top)
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
        path = self._path(row, self._top)
        return f"#{path}" if "." in path else path

    def _state(self, row: Row) -> dict[str, Any]:
        if row.history:
            targets = [self._target(target) for move in self._moves.get(row, ()) for target in move.targets]
            kept: dict[str, Any] = {"type": "history"} | ({"history": "deep"} if row.history == "deep" else {})
            return kept | ({"target": single(targets)} if targets else {})
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
        return single(made)

    def _body(self, row: Row) -> dict[str, Any]:
        """Return the states inside a state, and its transitions."""
        body: dict[str, Any] = {}
        if row.is_parallel and row.children:
            body["type"] = "parallel"
        elif row.children and row.initial is not None:
            body["initial"] = self._path(row.initial, row)
        elif row.children:
            body["initial"] = self._keys[row.children[0]]
        work = [{"src": handler_name(name, self._complain(row.path))} for name in row.work]
        if work:
            body["invoke"] = single(work)
        for move in self._moves.get(row, ()):
            self._add(body, move)
        shorten_transitions(body)
        if row.children:
            body["states"] = {self._keys[child]: self._state(child) for child in row.children}
        return body

    def _path(self, row: Row, around: Row) -> str:
        """Return the keys from below a state down to one inside it."""
        keys = []
        at: Row | None = row
        while at is not None and at is not around:
            keys.append(self._keys[at])
            at = at.parent
        return ".".join(reversed(keys))

    def _add(self, body: dict[str, Any], move: Move) -> None:
        transition: dict[str, Any] = {}
        targets = [self._target(target) for target in move.targets]
        if targets:
            transition["target"] = single(targets)
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


def _silent(code: str, text: str, hint: str) -> None:
    """Ignore a finding that has been reported before."""
