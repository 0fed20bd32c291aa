"""Writes scenarios as a file of YAML, and as a module for pytest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

from machines.testing.report import format_moment

from .document import Scenario, Step, When, format_delay


def write_yaml(machine: str, scenarios: Iterable[Scenario], notes: Iterable[str] = ()) -> str:
    """Write scenarios as a file that the reader takes. ``notes``: comments at its head."""
    head = "".join(f"# {line}\n" for note in notes for line in note.splitlines())
    lines = [f"{head}machine: {_flow(machine)}", "", "scenarios:"]
    for scenario in scenarios:
        lines.append(f"  - name: {_flow(scenario.name)}")
        if scenario.description:
            lines.append(f"    description: {_flow(scenario.description)}")
        if given := _show_given(scenario):
            lines.append(f"    given: {_flow(given)}")
        lines.append("    steps:")
        for step in scenario.steps:
            dash = "      - "
            if step.when is not None:
                lines.append(f"{dash}when: {_flow(_show_when(step.when))}")
                dash = "        "
            if step.then is not None:
                lines.append(f"{dash}then: {_flow(_show_then(step))}")
        lines.append("")
    return "\n".join(lines)


def write_pytest(machine: str, scenarios: Iterable[Scenario], notes: Iterable[str] = ()) -> str:
    """Write scenarios as functions that use the fixture ``signalbox``."""
    head = "".join(f"# {line}\n" for note in notes for line in note.splitlines())
    lines = [f"{head}import datetime"]
    names: set[str] = set()
    for scenario in scenarios:
        name = base = "test_" + (re.sub(r"\W+", "_", scenario.name.lower()).strip("_") or "it")
        while name in names:
            name = f"{base}_{len(names)}"
        names.add(name)
        id = scenario.given.id or "1"
        where = f"{machine!r}, {id!r}"
        lines += ["", "", f"def {name}(signalbox):"]
        if scenario.given.time is not None:
            moment = format_moment(scenario.given.time)[:19]
            lines.append(f"    signalbox.start_clock(datetime.datetime.fromisoformat('{moment}+00:00'))")
        lines.append(f"    signalbox.create({where}, {scenario.given.data!r})")
        for when in scenario.given.events:
            lines += _call(when, machine, where, id)
        for step in scenario.steps:
            lines += _call(step.when, machine, where, id) if step.when is not None else []
            lines += _assert(step, where)
    text = "\n".join(lines) + "\n"
    return text if "datetime.datetime" in text else text.replace("import datetime\n\n\n", "", 1)


def _call(when: When, machine: str, where: str, id: str) -> list[str]:
    if when.kind == "after":
        return [f"    signalbox.advance({format_delay(when.delay)!r})"]
    if when.kind == "event":
        payload = f", {when.payload!r}" if when.payload else ""
        if when.machine in ("", machine):
            return [f"    signalbox.fire({where}, {when.name!r}{payload})", "    signalbox.advance(0)"]
        return [
            f"    (other,) = [one for one in signalbox.engine.find({when.machine!r}) if not one.done]",
            f"    signalbox.fire({when.machine!r}, other.id, {when.name!r}{payload})",
            "    signalbox.advance(0)",
        ]
    of = when.machine or machine
    own = f", instance={id!r}" if of == machine else ""
    if when.outcome == "done":
        call = f"    signalbox.complete_job({of!r}, {when.name!r}, {when.result!r}{own})"
    else:
        call = f"    signalbox.fail_job({of!r}, {when.name!r}, {when.error!r}{own})"
    return [call, "    signalbox.advance(0)"]


def _assert(step: Step, where: str) -> list[str]:
    then = step.then
    if then is None:
        return []
    lines = (
        [f"    signalbox.assert_state({where}, {', '.join(repr(state) for state in then.states)})"]
        if then.states
        else []
    )
    if then.data:
        present = {name: value for name, value in then.data.items() if value is not None}
        lines += [f"    signalbox.assert_data({where}, {present!r})"] if present else []
    return [*lines, *([f"    signalbox.assert_done({where})"] if then.done else [])]


def _show_given(scenario: Scenario) -> dict[str, Any]:
    given = scenario.given
    shown: dict[str, Any] = {}
    if given.data:
        shown["data"] = given.data
    if given.id:
        shown["id"] = given.id
    if given.time is not None:
        shown["time"] = format_moment(given.time)[:19]
    if given.events:
        shown["events"] = [_show_when(when) for when in given.events]
    return shown


def _show_when(when: When) -> dict[str, Any]:
    if when.kind == "after":
        return {"after": format_delay(when.delay)}
    shown: dict[str, Any] = {when.kind: when.name}
    if when.machine:
        shown["to" if when.kind == "event" else "of"] = when.machine
    if when.kind == "job":
        return shown | ({"done": when.result} if when.outcome == "done" else {"failed": when.error})
    if when.payload is not None:
        shown["payload"] = when.payload
    if when.actor:
        shown["actor"] = when.actor
    return shown | ({"groups": list(when.groups)} if when.groups is not None else {})


def _show_then(step: Step) -> dict[str, Any]:
    then, shown = step.then, dict[str, Any]()
    if then is None:
        return shown
    if then.states:
        shown["state"] = then.states[0] if len(then.states) == 1 else list(then.states)
    for key in ("data", "jobs", "transitions"):
        value = getattr(then, key)
        if value is not None:
            shown[key] = value if isinstance(value, dict) else list(value)
    return shown | ({"done": then.done} if then.done is not None else {})


class _Dumper(yaml.SafeDumper):
    """Writes texts in quotes where the reader, or another one, would take them for something else."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    plain = re.fullmatch(r"[A-Za-z][\w .>/-]*[\w]|[A-Za-z]", text) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
_Dumper.add_representer(str, _represent_text)


def _flow(value: Any) -> str:
    """Write a value on one line."""
    text = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...").replace("\n", " ")
