"""What a scenario file holds, and scenarios as text: as such a file, and as a module of tests.

``given``, ``when`` and ``then`` are mappings as the file has them: ``schema.json`` says what is in each. ``line`` is a
line of the file, from 1; 0 for what no file holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from machines.catalog.editing.places import Places
from machines.formats.yaml import Dumper
from machines.testing.clock import read_duration

FAILED = "failed by the scenario"
When = dict[str, Any]
Then = dict[str, Any]


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
class Step:
    """What happens, and what then holds; one of both may be None."""

    when: When | None
    then: Then | None
    line: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run of one instance. The ``events`` that are given are done before the first step; each must succeed."""

    name: str
    machine: str
    given: dict[str, Any]
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


def read_time(text: str) -> int:
    """Return a moment in ms; a time without a zone is UTC. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time; write it as 2026-11-23 12:00, in UTC") from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    ms = round(moment.timestamp() * 1000)
    if ms < 0:
        raise ValueError(f"{text!r} is before 1970")
    return ms


def expand(value: Any, key: str) -> dict[str, Any]:
    """Return the whole form of what may be a mapping, the text of its ``key`` alone, or true."""
    return {key: value} if isinstance(value, str) else {} if value is True else value


def list_names(value: Any) -> list[str]:
    """List one name, or several."""
    return [value] if isinstance(value, str) else list(value or ())


def find_target(when: When) -> str:
    """Return the other machine that an event goes to, or whose job it is; empty for the scenario's own."""
    return str(when.get("to") or when.get("of") or "")


def describe(when: When) -> str:
    """Describe what happens: ``event pay to billing``, ``job ship done``, ``after 2h``."""
    if "after" in when:
        return f"after {format_delay(read_duration(when['after']))}"
    if "event" in when:
        return f"event {when['event']}" + (f" to {when['to']}" if "to" in when else "")
    ending = "done" if "done" in when else "failed"
    return f"job {when['job']} {ending}" + (f" of {when['of']}" if "of" in when else "")


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
        for key in ("description", "given"):
            if value := getattr(scenario, key):
                lines.append(f"    {key}: {_flow(value)}")
        lines.append("    steps:")
        for step in scenario.steps:
            dash = "      - "
            for key, value in (("when", step.when), ("then", step.then)):
                if value is not None:
                    lines.append(f"{dash}{key}: {_flow(value)}")
                    dash = "        "
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
        given, id = scenario.given, scenario.given.get("id", "1")
        where = f"{machine!r}, {id!r}"
        lines += ["", "", f"def {name}(signalbox):"]
        if "time" in given:
            moment = datetime.fromtimestamp(read_time(given["time"]) / 1000, UTC)
            lines.append(f"    signalbox.start_clock(datetime.datetime.fromisoformat({moment.isoformat(' ')!r}))")
        lines.append(f"    signalbox.create({where}, {given.get('data', {})!r})")
        for when in given.get("events", ()):
            lines += _call(when, machine, where, id)
        for step in scenario.steps:
            lines += _call(step.when, machine, where, id) if step.when is not None else []
            lines += _assert(step.then, where) if step.then is not None else []
    text = "\n".join(lines) + "\n"
    return text if "datetime.datetime" in text else text.replace("import datetime\n\n\n", "", 1)


def _call(when: When, machine: str, where: str, id: str) -> list[str]:
    if "after" in when:
        return [f"    signalbox.advance({when['after']!r})"]
    to = find_target(when) or machine
    if "event" in when:
        payload = f", {when['payload']!r}" if when.get("payload") else ""
        if to == machine:
            return [f"    signalbox.fire({where}, {when['event']!r}{payload})", "    signalbox.advance(0)"]
        return [
            f"    (other,) = [one for one in signalbox.engine.find({to!r}) if not one.done]",
            f"    signalbox.fire({to!r}, other.id, {when['event']!r}{payload})",
            "    signalbox.advance(0)",
        ]
    own = f", instance={id!r}" if to == machine else ""
    if "done" in when:
        call = f"    signalbox.complete_job({to!r}, {when['job']!r}, {when['done']!r}{own})"
    else:
        error = expand(when["failed"], "error").get("error", FAILED)
        call = f"    signalbox.fail_job({to!r}, {when['job']!r}, {error!r}{own})"
    return [call, "    signalbox.advance(0)"]


def _assert(then: Then, where: str) -> list[str]:
    states = list_names(then.get("state"))
    data = {name: value for name, value in then.get("data", {}).items() if value is not None}
    lines = [f"    signalbox.assert_state({where}, {', '.join(map(repr, states))})"] if states else []
    lines += [f"    signalbox.assert_data({where}, {data!r})"] if data else []
    return lines + ([f"    signalbox.assert_done({where})"] if then.get("done") else [])


def _flow(value: Any) -> str:
    """Write a value on one line."""
    text = yaml.dump(value, Dumper=Dumper, default_flow_style=True, width=1 << 30, allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
