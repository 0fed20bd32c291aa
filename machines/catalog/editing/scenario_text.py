"""Writes a run of the simulator as a scenario file for ``machine test``.

The values are written as JSON, which is YAML as well, so a site needs no test kit for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from machines.engine import BadInput
from machines.engine.simulation.records import SimulatedStep
from machines.engine.simulation.simulator import START

from .runs import Run

REFUSED = ("refused", "failed", "bad payload", "not allowed")


def write_scenario(machine: str, run: Run, records: Sequence[SimulatedStep], name: str = "A run") -> str:
    """Write a run with its outcome. Raises BadInput (SB683) for steps that no scenario has: a scenario's children
    and senders are real instances."""
    by_input = {number: list(group) for number, group in groupby(records, key=lambda one: one.input)}
    moment = datetime.fromtimestamp(START / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    lines = [f"machine: {_show(machine)}", "", "scenarios:", f"  - name: {_show(name)}"]
    lines += [f"    given: {_show({'data': run.data, 'time': moment})}", "    steps:"]
    before = by_input.get(-1, [])[-1:]
    if not run.steps and before:
        lines.append(f"      - then: {_show(_describe(before[0]))}")
    for number, step in enumerate(run.steps):
        group = by_input.get(number, [])
        if not group:
            break
        lines.append(f"      - when: {_show(_convert(step, number, group, before))}")
        lines.append(f"        then: {_show(_describe(group[-1], group))}")
        before = group[-1:]
    return "\n".join(lines) + "\n"


def _convert(
    step: dict[str, Any], number: int, group: Sequence[SimulatedStep], before: Sequence[SimulatedStep]
) -> dict[str, Any]:
    if "event" in step and "child" not in step:
        return step
    if "advance" in step:
        begun = before[0].at if before else START
        return {"after": f"{group[-1].at - begun}ms"}
    if "job" in step:
        if "done" in step:
            return {"job": step["job"], "done": step["done"]}
        kind = {"kind": step["kind"]} if step.get("kind") else {}
        return {"job": step["job"], "failed": {"error": step["failed"], **kind} if kind else step["failed"]}
    what = "ends or sends for a child" if "child" in step else "is a message of another instance"
    raise BadInput(f"step {number + 1} {what}: a scenario has real instances for that", code="SB683")


def _describe(record: SimulatedStep, group: Iterable[SimulatedStep] = ()) -> dict[str, Any]:
    """Describe what holds after a step: the states, the fields that it wrote, the jobs, whether it has ended."""
    if record.outcome in REFUSED:
        return {"refused": True, "state": record.configuration}
    changes = {name: value for one in group for name, value in one.changes.items()}
    found: dict[str, Any] = {"state": record.configuration}
    if changes:
        found["data"] = changes
    return found | {"jobs": [job["src"] for job in record.jobs], "done": record.done}


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
