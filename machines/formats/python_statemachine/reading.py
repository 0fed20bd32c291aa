"""Reads classes of python-statemachine.

Describing a class runs its module, so it happens in a separate process, and only on explicit request. No page does it,
and no text is read as a class.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding, make_finding
from machines.engine.definitions.report import Report
from machines.formats.messages import machine_name

from .definition import Builder, Move, Row, Table

FORMAT = "python-statemachine"
HINT = f"they are code: machine import module:Class --format {FORMAT} --run-code"
SECONDS = 60  # importing a module may take so long
_SCRIPT = Path(__file__).with_name("class_description.py")
_DONE = "done.state."
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
    table = _table(described, report)
    if len(described["states"]) > limits.MAX_STATES:
        report.add("SB111", (), f"more than {limits.MAX_STATES} states")
        return None, report.findings()
    definition = Builder(table, report).build(machine_name(described["name"]) or "machine")
    if described["doc"]:
        definition = {"id": definition["id"], "description": described["doc"], **definition}
    return definition, report.findings()


def _table(described: dict[str, Any], report: Report) -> Table:
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
    moves = [move for one in described["transitions"] for move in _moves(one, rows, report)]
    return Table(described["name"], top, moves)


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
    conditions = [(_spell_out(text), wanted) for text, wanted in groups.get("COND", ())]
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


def _spell_out(text: str) -> str:
    """Replace the operators ``^`` and ``v``, which the library also accepts, by ``and`` and ``or``."""
    words = {"^": "and", "v": "or"}
    return " ".join(words.get(word, word) for word in text.split())


def _leave_out(groups: dict[str, Any], known: tuple[str, ...], row: Row, report: Report) -> None:
    for kind in groups:
        if kind not in known:
            names = ", ".join(_names(groups, kind))
            report.add("SB221", row.path, f"callbacks of the kind {kind.lower()} have no meaning here: {names}")
