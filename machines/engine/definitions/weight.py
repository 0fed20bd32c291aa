"""The size of a program: a state is compiled as a whole by the first step that comes to it, and a program is read as a
whole by the first call that names it."""

from __future__ import annotations

from typing import Any

from .. import limits
from .model import Machine
from .program import program_of
from .report import Report


def review(machine: Machine, report: Report) -> None:
    """Adds SB111 where a state, or the machine, has more parts than are allowed."""
    if report.has_errors:
        return
    total = 0
    report.program = program_of(machine)
    for state, compiled in zip(machine.states.values(), report.program["states"], strict=True):
        parts = _parts(compiled)
        total += parts
        if parts > limits.MAX_STATE_PARTS:
            what = "the machine's own transitions and actions have" if state.root else "the state has"
            report.add("SB111", state.path, f"{what} {parts} parts; {limits.MAX_STATE_PARTS} are allowed")
    if total > limits.MAX_PARTS:
        report.add("SB111", (), f"the machine has {total} parts; {limits.MAX_PARTS} are allowed")


def _parts(node: Any) -> int:
    """How many lists and objects a piece of a program consists of: transitions, actions, and parts of expressions."""
    if isinstance(node, dict):
        return 1 + sum(_parts(item) for item in node.values() if isinstance(item, dict | list))
    return 1 + sum(_parts(item) for item in node if isinstance(item, dict | list))
