"""Writes and reads runs of the simulator: as text for a form, as the link that opens one, in words, and as a scenario
file for ``machine test``.

A run is what ``Engine.simulate`` takes: the inputs, and the data that the instance is given. It comes from a link or a
form, so it is checked like any input before the engine sees it. The values of a scenario file are written as JSON,
which is YAML as well, so a site needs no test kit for it.
"""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from urllib.parse import quote, urlencode

from machines.engine import BadInput, SignalboxError
from machines.engine.simulation import START, SimulatedStep, read_inputs
from machines.engine.verification.report import VerificationFinding

MAX_STEPS = 200  # inputs of one run: a page lists them all
MAX_TEXT = 65536  # bytes of a run as JSON
MAX_LINK = 6000  # characters of a run in a link; proxies take addresses of 8 KiB


@dataclass(frozen=True, slots=True)
class Run:
    """The inputs of a simulation, and the data that the instance is given at its creation."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    def write(self) -> str:
        """Return the run as JSON."""
        return json.dumps({"steps": self.steps, "data": self.data}, ensure_ascii=False, separators=(",", ":"))


def link(name: str, version: int | None, steps: Iterable[Any], data: Mapping[str, Any] | None = None) -> str:
    """Return the path, with its query, that opens a run in the simulator. ``version``: None for the current one;
    ``steps``: inputs as ``simulate`` takes them. Raises BadInput (SB682) for a run that fits in no link."""
    terms = {"version": str(version)} if version is not None else {}
    return f"/machines/{quote(name, safe='')}/try/?{urlencode(terms | {'run': encode(make(steps, data))})}"


def make(steps: Iterable[Any], data: Mapping[str, Any] | None = None) -> Run:
    """Check the parts of a run. Raises BadInput."""
    listed = list(steps)
    if len(listed) > MAX_STEPS:
        raise BadInput(f"a run has at most {MAX_STEPS} steps, not {len(listed)}", code="SB682")
    return Run(read_inputs(listed), dict(data or {}))


def encode(run: Run) -> str:
    """Return a run in the characters of an address. Raises BadInput (SB682) for one that is too long."""
    found = base64.urlsafe_b64encode(zlib.compress(run.write().encode(), 9)).decode().rstrip("=")
    if len(found) > MAX_LINK:
        raise BadInput(
            f"the run takes {len(found):,} characters, a link at most {MAX_LINK:,}: make it shorter", code="SB682"
        )
    return found


def decode(text: str) -> Run:
    """Read the run of a link. Raises BadInput: SB681 for what is no run, SB637 for a step that makes no sense."""
    if len(text) > MAX_LINK:
        raise _refuse(f"it has {len(text):,} characters, and at most {MAX_LINK:,} are read")
    try:
        packed = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        reader = zlib.decompressobj()
        found = reader.decompress(packed, MAX_TEXT + 1)
        if len(found) <= MAX_TEXT and (not reader.eof or reader.unused_data):
            raise _refuse("it is cut off, or something was added to it")
        return read(found.decode())
    except (UnicodeError, binascii.Error, zlib.error):
        raise _refuse("copy it whole, from its first to its last character") from None


def read(text: str) -> Run:
    """Read a run as ``Run.write`` writes it. Raises BadInput as ``decode`` does."""
    if len(text.encode(errors="replace")) > MAX_TEXT:
        raise _refuse(f"it has more than {MAX_TEXT:,} bytes")
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise _refuse("it is not valid JSON") from None
    if not isinstance(found, dict) or found.keys() - {"steps", "data"}:
        raise _refuse('it is an object with "steps" and "data"')
    steps, data = found.get("steps", []), found.get("data", {})
    if not isinstance(steps, list) or not isinstance(data, dict):
        raise _refuse('"steps" is a list, "data" an object')
    try:
        return make(steps, data)
    except SignalboxError as error:
        if isinstance(error, BadInput):
            raise
        raise _refuse(error.message) from None


def find_step(error: BadInput) -> int | None:
    """Return the number of the input, from 0, that makes no sense where it stands; None for any other error."""
    match = re.match(r"events\[(\d+)\]", error.message)
    return int(match[1]) if match else None


def _refuse(why: str) -> BadInput:
    return BadInput(f"the run cannot be read: {why}", code="SB681")


def _refuse_constant(word: str) -> None:
    raise ValueError(word)


def describe_run(finding: VerificationFinding) -> list[str]:
    """Return the run of a finding as a list of steps, the creation first."""
    creation = f"create with {_write(finding.data)}" if finding.data else "create"
    return [creation, *(describe_step(one) for one in finding.run)]


def describe_step(given: Any) -> str:
    """Return an input of ``simulate`` in words."""
    if isinstance(given, str):
        return f"fire {given}"
    if not isinstance(given, Mapping):
        name, payload = given
        return f"fire {name} {_write(payload)}"
    for key, describe in _STEPS.items():
        if key in given:
            return describe(given)
    return _write(given)


def _describe_event(given: Mapping[str, Any]) -> str:
    payload = f" {_write(given['payload'])}" if given.get("payload") else ""
    groups = given.get("groups")
    by = "" if groups is None else f", by somebody in {', '.join(groups)}" if groups else ", by somebody in no group"
    return f"fire {given['event']}{payload}{by}"


def _describe_clock(given: Mapping[str, Any]) -> str:
    till = given["advance"]
    if till == "next":
        return "advance the clock to the next timer"
    return f"advance the clock by {till} ms" if isinstance(till, int | float) else f"advance the clock by {till}"


def _describe_end(kind: str, given: Mapping[str, Any]) -> str:
    what = f"{kind} {given[kind]}"
    if "event" in given:
        payload = f" {_write(given['payload'])}" if given.get("payload") else ""
        return f"{what} sends {given['event']}{payload}"
    return f"{what} fails: {_write(given['failed'])}" if "failed" in given else f"{what} ends: {_write(given['done'])}"


def _describe_message(given: Mapping[str, Any]) -> str:
    payload = f" {_write(given['payload'])}" if given.get("payload") else ""
    return f"another instance sends {given['message']}{payload}"


_STEPS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "job": lambda given: _describe_end("job", given),
    "child": lambda given: _describe_end("child", given),
    "message": _describe_message,
    "advance": _describe_clock,
    "event": _describe_event,
}


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
