"""Reads the inputs of a simulation: events as text, pairs of event and payload, or objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from machines.engine import arguments, limits
from machines.engine.definitions.durations import parse_duration
from machines.engine.errors import BadInput

KINDS: Mapping[str, frozenset[str]] = {
    "event": frozenset({"payload", "groups"}),
    "advance": frozenset(),
    "edit": frozenset(),
    "job": frozenset({"done", "failed", "kind", "attempts"}),
    "child": frozenset({"done", "failed", "event", "payload"}),
    "message": frozenset({"payload", "from"}),
}
"""Kind of input -> what it may have beside its kind."""
NEXT = "next"
MAX_INPUTS = 10_000
MAX_TEXT = 65536  # bytes of a payload


def read_inputs(events: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the inputs as ``sb_simulate`` takes them. Raises BadInput, and BadPayload for a value that is not JSON."""
    if isinstance(events, str | Mapping):
        raise build_input_error("events", "are a list; put the one event into it")
    found = [_read(f"events[{index}]", one) for index, one in enumerate(events)]
    if len(found) > MAX_INPUTS:
        raise build_input_error("events", f"are at most {MAX_INPUTS}, not {len(found)}")
    return found


def build_input_error(where: str, why: str) -> BadInput:
    """Build the error for an input that makes no sense. ``where``: its place in the list."""
    return BadInput(f"{where} {why}", code="SB637")


def _read(where: str, given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        given = {"event": given}
    elif isinstance(given, list | tuple) and len(given) == 2:
        given = {"event": given[0], "payload": given[1]}
    if not isinstance(given, Mapping):
        raise build_input_error(
            where, f"is an event, a pair of event and payload, or an object, not {arguments.show(given)}"
        )
    kind = next((kind for kind in ("job", "child", "message", "advance", "edit", "event") if kind in given), None)
    if kind is None:
        raise build_input_error(
            where, f"has one of {', '.join(KINDS)}; it has {', '.join(map(str, given)) or 'nothing'}"
        )
    if unknown := [str(name) for name in given if name != kind and name not in KINDS[kind]]:
        allowed = ", ".join(sorted(KINDS[kind])) or "nothing"
        raise build_input_error(where, f"has beside {kind} only {allowed}, not {', '.join(unknown)}")
    return {"event": _read_event, "advance": _read_advance}.get(kind, _read_other)(where, dict(given))


def _read_event(where: str, given: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(given["event"], str) or limits.check_event_name(given["event"]) is not None:
        raise build_input_error(where, f"is no name of an event: {arguments.show(given['event'])}")
    groups = given.get("groups")
    if groups is not None and not (isinstance(groups, list | tuple) and all(isinstance(one, str) for one in groups)):
        raise build_input_error(where, f"has groups that are no list of names: {arguments.show(groups)}")
    return _check_values(where, {name: part for name, part in given.items() if part is not None})


def _read_advance(where: str, given: dict[str, Any]) -> dict[str, Any]:
    wanted = given["advance"]
    ms = parse_duration(wanted) if isinstance(wanted, str) and wanted != NEXT else wanted
    if ms != NEXT and (isinstance(ms, bool) or not isinstance(ms, int) or not 0 <= ms <= limits.MAX_DELAY):
        raise build_input_error(
            where, f'advances by ms, a duration such as "5m", or "next", not {arguments.show(wanted)}'
        )
    return {"advance": ms}


def _read_other(where: str, given: dict[str, Any]) -> dict[str, Any]:
    for name in ("job", "child", "message"):
        if name in given and not isinstance(given[name], str):
            raise build_input_error(where, f"names its {name} by text, not {arguments.show(given[name])}")
    if "job" in given and ("done" in given) == ("failed" in given):
        raise build_input_error(where, "ends a job with either done or failed")
    if "child" in given and sum(name in given for name in ("done", "failed", "event")) != 1:
        raise build_input_error(where, "has of a child one of done, failed and event")
    if given.get("failed", "") is None or not isinstance(given.get("failed", ""), str):
        raise build_input_error(where, f"has a failure that is no text: {arguments.show(given['failed'])}")
    return _check_values(where, given)


def _check_values(where: str, given: dict[str, Any]) -> dict[str, Any]:
    if "edit" in given:
        arguments.encode_fields(f"{where}.edit", given["edit"], limits.MAX_DATA)
    for name in ("payload", "done", "from"):
        if name in given:
            arguments.encode_document(f"{where}.{name}", given[name], MAX_TEXT)
    return given
