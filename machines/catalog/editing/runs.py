"""Writes and reads runs of the simulator: as text for a form, and as the link that opens one.

A run is what ``Engine.simulate`` takes: the inputs, and the data that the instance is given. It comes from a link or a
form, so it is checked like any input before the engine sees it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from machines.engine import BadInput, SignalboxError
from machines.engine.simulation.inputs import read_inputs

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
