"""Simulates one instance by calls of ``sb_simulate``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from machines.engine import arguments, limits
from machines.engine.connection import waiting
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status, build_error, refuse
from machines.engine.definitions import CompiledDefinition, compile_definition
from machines.engine.errors import BadInput, DefinitionError

from .inputs import build_input_error, read_inputs
from .records import SimulatedStep, read_record

START = 1_767_225_600_000  # ms: 1 January 2026
TOGETHER = 200  # inputs of one call
MAX_STEPS = 10_000


def read_definition(definition: Any) -> CompiledDefinition:
    """Compile a definition. Raises DefinitionError, with all findings, for one with errors."""
    compiled: CompiledDefinition = waiting.compute(compile_definition, definition)
    if compiled.has_errors:
        raise DefinitionError(list(compiled.findings))
    return compiled


def encode_program(program: Mapping[str, Any]) -> str:
    """Return a program as ``sb_simulate`` takes it."""
    return json.dumps(program, ensure_ascii=False, separators=(",", ":"))


class Simulator:
    """Simulates instances of one definition. ``root``: a key by which the calls are routed."""

    def __init__(self, caller: Caller, root: str, program: Mapping[str, Any]) -> None:
        self._caller, self._root = caller, root
        self._machine, self._text = str(program["machine"]), encode_program(program)

    def run(
        self,
        events: Iterable[Any],
        data: Mapping[str, Any] | None,
        id: str,
        now: int,
        parent: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        snapshot: Mapping[str, Any] | None = None,
    ) -> list[SimulatedStep]:
        """Create an instance, or take that of a ``snapshot``, and give it the inputs. ``seconds``: that it may take.
        Raises BadInput, BadPayload."""
        inputs = read_inputs(events)
        arguments.encode_fields("data", data, limits.MAX_DATA)
        begin: dict[str, Any] = {"id": arguments.check_instance(id), "now": now, "data": dict(data or {})}
        if parent is not None:
            begin["parent"] = _check_parent(parent)
        found: list[SimulatedStep] = []
        until = None if seconds is None else time.monotonic() + seconds
        for record in self._walk(begin, inputs, snapshot):
            if until is not None and time.monotonic() > until:
                raise _refuse_length(f"takes more than {seconds:g} s: make it shorter")
            if len(found) == MAX_STEPS:
                raise _refuse_length(f"has more than {MAX_STEPS} steps: advance the clock by less")
            found.append(record)
        return found

    def _walk(
        self, begin: Mapping[str, Any], inputs: list[dict[str, Any]], snapshot: Mapping[str, Any] | None
    ) -> Iterator[SimulatedStep]:
        done, script = 0, begin
        while snapshot is None or done < len(inputs):
            chosen = inputs[done : done + TOGETHER]
            script = {"id": begin["id"], "now": begin["now"], "snapshot": snapshot} if snapshot else begin
            head, *texts = self._call({**script, "inputs": chosen}, done)
            for text in texts:
                yield self._read(str(begin["id"]), text, done)
            snapshot, done = head.get("snapshot"), done + int(head["done"])
            if snapshot is None:
                return

    def _call(self, script: Mapping[str, Any], done: int) -> list[Any]:
        text = json.dumps(script, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        reply = self._caller.compute("sb_simulate", self._root, self._text, text)
        if reply[0] == Status.BAD_PAYLOAD:
            raise build_error(self._machine, str(script["id"]), reply)
        if reply[0] == Status.BAD_ARGUMENT and (at := _find_input(str(reply[1]))) is not None:
            raise build_input_error(f"events[{done + at - 1}]:", str(reply[1]).partition(": ")[2])
        if reply[0] != Status.OK:
            refuse("sb_simulate", reply)
        return [json.loads(reply[1]), *reply[2:]]

    def _read(self, id: str, text: str, done: int) -> SimulatedStep:
        seen = json.loads(text)
        seen["input"] = int(seen["input"]) + done - 1
        explanation = seen.get("explanation")
        return read_record(self._machine, id, seen, json.dumps(explanation) if explanation else "")


def _refuse_length(why: str) -> BadInput:
    return BadInput(f"the run {why}", code="SB638")


def _find_input(message: str) -> int | None:
    """Return the number of the input that a refusal is about, from 1; None for any other refusal."""
    head, _, _ = message.partition(": ")
    name, _, number = head.partition(" ")
    return int(number) if name == "input" and number.isdigit() else None


def _check_parent(parent: Any) -> dict[str, Any]:
    if not isinstance(parent, Mapping) or set(parent) != {"machine", "id", "invoke"}:
        raise BadInput(f"a parent has machine, id and invoke, not {arguments.show(parent)}", code="SB639")
    return {name: str(parent[name]) for name in ("machine", "id", "invoke")} | {"depth": 1}
