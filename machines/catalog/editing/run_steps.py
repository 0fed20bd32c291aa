"""Writes the run of a finding in words, as a list of steps for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from machines.engine.verification.findings import VerificationFinding


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
        return "wind the clock to the next timer"
    return f"wind the clock by {till} ms" if isinstance(till, int | float) else f"wind the clock by {till}"


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
