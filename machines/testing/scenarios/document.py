"""What a scenario file holds, and scenarios as text: as such a file, and as a module of tests.

``line`` is a line of the file, from 1; 0 for what no file holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from machines.catalog.editing.places import Places
from machines.formats.yaml import Dumper
from machines.testing.assertions import format_moment

Kind = Literal["event", "after", "job"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a scenario file. ``path``: the keys that lead to it, ``scenarios[0].steps[1].then``."""

    code: str
    line: int
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f" {self.path}" if self.path else ""
        return f"{self.code}{where}: {self.message}" + (f"; {self.hint}" if self.hint else "")


@dataclass(frozen=True, slots=True)
class ScenarioBegin:
    """How a scenario begins. ``time``: ms since the epoch, None for the present; ``events``: what is done before the
    first step, each of which must succeed."""

    data: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    time: int | None = None
    events: tuple[When, ...] = ()


@dataclass(frozen=True, slots=True)
class When:
    """One thing that happens.

    ``kind``: "event" (``name``, ``payload``, ``actor``, and ``groups`` for a person who is a member of these alone),
    "after" (``delay`` ms pass) or "job" (the job of the invoke or handler ``name`` ends as ``outcome``: "done" with
    ``result``, or "failed" with ``error``). ``machine``: another machine that the event goes to, or whose job it is;
    ``retry``: the failed attempt is one of several.
    """

    kind: Kind
    name: str = ""
    payload: dict[str, Any] | None = None
    machine: str = ""
    actor: str = ""
    groups: tuple[str, ...] | None = None
    delay: int = 0
    outcome: str = ""
    result: Any = None
    error: str = ""
    error_kind: str = ""
    retry: bool = False

    def __str__(self) -> str:
        to = f" of {self.machine}" if self.machine and self.kind == "job" else ""
        to = f" to {self.machine}" if self.machine and self.kind == "event" else to
        if self.kind == "after":
            return f"after {format_delay(self.delay)}"
        return f"{self.kind} {self.name}{f' {self.outcome}' if self.outcome else ''}{to}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """How an event is refused. ``why`` is a part of the explanation; ``code`` that of the error. Empty: any."""

    why: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was sent. ``to``: the machine, empty for one that was emitted; ``payload``: some of its fields."""

    event: str
    to: str = ""
    payload: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Then:
    """What holds after a step. None, or an empty tuple of states: not asserted."""

    states: tuple[str, ...] = ()
    data: dict[str, Any] | None = None
    refused: Refusal | None = None
    jobs: tuple[str, ...] | None = None
    messages: tuple[Message, ...] | None = None
    transitions: tuple[str, ...] | None = None
    done: bool | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What happens, and what then holds; one of both may be None."""

    when: When | None
    then: Then | None
    line: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run of one instance."""

    name: str
    machine: str
    given: ScenarioBegin
    steps: tuple[Step, ...]
    description: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """The scenarios of a file. ``places``: of its values, for what is found later."""

    machine: str
    scenarios: tuple[Scenario, ...]
    path: Path | None = None
    places: Places = field(default_factory=lambda: Places(""), compare=False)


def format_delay(ms: int) -> str:
    """Format ms in the largest units that say it exactly: ``1d 30s``."""
    parts = []
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        if ms >= length:
            parts.append(f"{ms // length}{unit}")
            ms %= length
    return " ".join(parts) or "0s"


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


def _flow(value: Any) -> str:
    """Write a value on one line."""
    text = yaml.dump(value, Dumper=Dumper, default_flow_style=True, width=1 << 30, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
