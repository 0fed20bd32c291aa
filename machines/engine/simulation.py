"""Simulates instances that exist in memory only, stepped by the interpreter in Redis (``sb_simulate``)."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any

from machines.engine import arguments, limits
from machines.engine.base import EngineBase
from machines.engine.connection import waiting
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import (
    Status,
    build_error,
    build_refusal,
    read_explanation,
    read_fields,
    require_ok,
)
from machines.engine.definitions import CompiledDefinition, compile_definition
from machines.engine.definitions.durations import parse_duration
from machines.engine.errors import BadInput, BadPayload, DefinitionError, NotAllowed, Suspended
from machines.engine.instances.encryption import FieldEncryption, write_ciphertext
from machines.engine.publishing.machine_meta import SensitiveFields, read_encrypted_fields
from machines.engine.records import Explanation, InStates, Timer

START = 1_767_225_600_000  # ms: 1 January 2026
TOGETHER = 200  # inputs of one call
MAX_STEPS = 10_000


def encode_program(program: Mapping[str, Any]) -> str:
    """Return a program as ``sb_simulate`` takes it."""
    return json.dumps(program, ensure_ascii=False, separators=(",", ":"))


VALUES = ("payload", "done", "edit")
"""What of an input may hold values of encrypted fields."""


class Tokens:
    """The codec of what is tried in memory: the server gets tokens, and the values stay in this process. A ciphertext
    of another codec stands for itself."""

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._values: dict[bytes, bytes] = {}

    def encrypt(self, value: bytes, field: str) -> bytes:
        token = hashlib.blake2b(value, key=self._key, digest_size=16, person=field.encode()[:16]).digest()
        self._values[token] = value
        return token

    encrypt_deterministic = encrypt

    def decrypt(self, value: bytes, field: str) -> bytes:
        return self._values.get(value) or json.dumps(write_ciphertext(field, value)).encode()


class Simulator:
    """Simulates instances of one definition. ``root``: a key by which the calls are routed; ``encryption``:
    of the engine, where the records are to hold ciphertexts; by default tokens stand for values on the way alone."""

    def __init__(
        self, caller: Caller, root: str, program: Mapping[str, Any], encryption: FieldEncryption | None = None
    ) -> None:
        self._caller, self._root = caller, root
        marks = read_encrypted_fields(program.get("sensitive", {}))
        self._reveals = encryption is None and bool(marks)
        self._encryption = encryption or FieldEncryption(Tokens(), lambda machine: SensitiveFields())
        self._marks = marks if self._encryption.codec is not None else {}
        self._misfits: dict[int, tuple[Any, str]] = {}  # input -> its payload, and why it does not fit
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
        data = self._encryption.encrypt_by(self._marks, data or {})
        inputs = [self._encrypt(number, one) for number, one in enumerate(inputs)]
        begin: dict[str, Any] = {"id": arguments.check_instance(id), "now": now, "data": data}
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

    def _encrypt(self, number: int, given: dict[str, Any]) -> dict[str, Any]:
        """Return an input with its encrypted fields as ciphertexts. A payload that does not fit is refused by the
        step, without its values. Raises BadInput."""
        try:
            values = {name: given[name] for name in VALUES if name in given}
            return given | {name: self._encryption.encrypt_by(self._marks, value) for name, value in values.items()}
        except BadPayload as error:
            if "payload" not in given or "child" in given:
                raise build_input_error(f"events[{number}]", f"does not fit: {error}") from None
            self._misfits[number] = given["payload"], str(error)
            return given | {"payload": {str(error.field): False}}

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
        require_ok("sb_simulate", reply)
        return [json.loads(reply[1]), *reply[2:]]

    def _read(self, id: str, text: str, done: int) -> SimulatedStep:
        seen = json.loads(text)
        seen["input"] = int(seen["input"]) + done - 1
        if self._reveals:
            seen = self._encryption.decrypt(seen)
        if seen["input"] in self._misfits and seen["outcome"] == BAD_PAYLOAD:
            seen["payload"], seen["error"] = self._misfits[seen["input"]]
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


TAKEN, REFUSED, FAILED, IGNORED, WAITED = "taken", "refused", "failed", "ignored", "waited"
BAD_PAYLOAD, NOT_ALLOWED = "bad payload", "not allowed"


@dataclass(frozen=True, slots=True)
class SimulatedStep(InStates):
    """One step of a simulation, and the instance after it.

    ``input``: number of the input that led to it, from 0; -1 for the creation. ``event``: "(create)" for that, "" where
    only the clock moved. ``outcome``: one of "taken"; "refused" (no transition was enabled); "failed" (a guard or an
    action did; ``error`` says how; nothing changed); "ignored" (the end of a job, a child or a timer for which nobody
    listens); "waited" (no timer was due); "bad payload" (``error``); "not allowed" (``not_allowed``: the transition and
    its groups). ``at``: ms of the made-up clock. ``configuration``: the active leaf states. ``explanation``: as from
    ``explain``, with the guards and their values; None for the creation and where only the clock moved.

    What the step did: ``transitions``; ``changes``: data field -> its new value; ``armed`` and ``disarmed`` timers,
    ``requested`` and ``withdrawn`` jobs, ``started`` and ``ended`` children, ``messages`` to other instances, ``log``:
    entries of ``emit`` and ``log``. What there is then: ``timers``, ``jobs`` and ``children`` that run, ``next``: the
    events that are listened for, ``{"event", "verdict"}``, where "taken" needs no payload, "payload" depends on it,
    and "guard" is refused as the data is; ``done``: the instance has ended.
    """

    input: int
    event: str
    payload: Any
    outcome: str
    at: int
    _: KW_ONLY
    configuration: list[str]
    data: dict[str, Any]
    revision: int = 0
    transitions: list[str] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)
    armed: list[Timer] = field(default_factory=list)
    disarmed: list[Timer] = field(default_factory=list)
    requested: list[dict[str, Any]] = field(default_factory=list)
    withdrawn: list[dict[str, Any]] = field(default_factory=list)
    started: list[dict[str, str]] = field(default_factory=list)
    ended: list[dict[str, str]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    timers: list[Timer] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    children: list[dict[str, str]] = field(default_factory=list)
    next: list[dict[str, str]] = field(default_factory=list)
    done: bool = False
    explanation: Explanation | None = None
    error: str | None = None
    not_allowed: dict[str, Any] | None = None

    @property
    def taken(self) -> bool:
        """Tell whether the instance took a step."""
        return self.outcome == TAKEN

    def demand_taken(self, machine: str, id: str) -> None:
        """Raise what ``Engine.fire`` would have raised: Refused, UnknownEvent, NotAllowed, BadPayload."""
        if self.outcome == NOT_ALLOWED and self.not_allowed is not None:
            raise NotAllowed(machine, id, self.event, **self.not_allowed)
        if self.outcome == BAD_PAYLOAD:
            raise BadPayload(str(self.error))
        if self.outcome != TAKEN and self.explanation is not None:
            raise build_refusal(self.explanation)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        explanation = self.explanation.as_dict() if self.explanation else None
        return asdict(self) | {"state": self.state, "taken": self.taken, "explanation": explanation}


def read_record(machine: str, id: str, seen: Mapping[str, Any], text: str) -> SimulatedStep:
    """Read a record of ``lua/simulation/simulations.lua``: ``seen`` is its JSON, decoded. ``text``: its explanation."""
    lists = {name: list(seen.get(name) or ()) for name in _LISTS}
    lists |= {name: _read_timers(seen.get(name) or ()) for name in ("armed", "disarmed", "timers")}
    return SimulatedStep(
        input=int(seen["input"]),
        event=str(seen.get("event", "")),
        payload=seen.get("payload"),
        outcome=str(seen["outcome"]),
        at=int(seen["at"]),
        configuration=list(seen.get("configuration") or ()),
        data=seen["data"],
        revision=int(seen.get("version", 0)),
        changes=dict(seen.get("changes") or {}),
        done=bool(seen.get("done")),
        explanation=read_explanation(machine, id, text) if text else None,
        error=seen.get("error"),
        not_allowed=seen.get("not_allowed"),
        **lists,
    )


_LISTS = ("transitions", "requested", "withdrawn", "started", "ended", "messages", "log", "jobs", "children", "next")


def _read_timers(rows: Sequence[Mapping[str, Any]]) -> list[Timer]:
    found = [
        Timer(str(row["id"]), str(row["event"]), int(row["due"]), str(row["state"]), target=str(row["target"]))
        for row in rows
    ]
    return sorted(found, key=lambda timer: timer.due)


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


class SimulationMethods(EngineBase):
    """Simulation of definitions: a part of ``Engine``."""

    def simulate(
        self,
        definition: Mapping[str, Any] | CompiledDefinition | str,
        events: Iterable[Any],
        data: Mapping[str, Any] | None = None,
        *,
        id: str = "simulated",
        now: int = START,
        parent: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> list[SimulatedStep]:
        """Create an instance in memory and give it events, by the interpreter in Redis and without reading or writing a
        key; return a record for each step, the creation first.

        ``definition``: a definition, or the name of a published machine. ``events``: each is the name of an event, a
        pair of name and payload, or an object: ``{"event", "payload", "groups"}``; ``{"advance": ms, "5m" or "next"}``,
        which winds the clock and fires the timers that become due; ``{"edit": data}``, as the repair; ``{"job": invoke,
        "done": result}`` or ``{"job", "failed": error, "kind", "attempts"}``; ``{"child": invoke, "done"}``,
        ``{"child", "failed"}`` or ``{"child", "event", "payload"}``; ``{"message": event, "payload", "from":
        {"machine", "id"}}``. ``now``: ms at which the clock begins. ``parent``: ``{"machine", "id", "invoke"}`` of an
        instance that invoked this one. ``seconds``: how long it may take.

        An event that is refused is a record like any other. Raises DefinitionError, BadPayload for data that does not
        fit, BadInput for an input that makes no sense where it stands, UnknownMachine.
        """
        arguments.encode_whole("now", now)
        compiled, root = self._compile_given(definition)
        return Simulator(self._caller, root, compiled.program).run(events, data, id, now, parent, seconds)

    def preview_events(
        self,
        machine: str,
        id: str,
        events: Iterable[Any],
        data: Mapping[str, Any] | None = None,
        *,
        now: int | None = None,
    ) -> list[SimulatedStep]:
        """Give events, as ``simulate`` takes them, to a copy in memory of an instance as it is now; change nothing, and
        return a record for each step. With ``data``, to an instance that is created with it. Which jobs wait is not
        known to the copy.

        Raises UnknownInstance, Suspended, BadPayload for data that does not fit, BadInput.
        """
        moment = self._caller.read_clocks()[0] if now is None else now
        snapshot, version = None, None
        if data is None:
            raw = read_fields(self._require_ok(machine, id, self._caller.call("sb_get", self._root(machine, id), id)))
            if "_suspended" in raw:
                raise Suspended(machine, id, since=int(raw["_suspended"]))
            snapshot, version = {"raw": raw, "now": moment}, int(raw["_def"].partition(":")[0])
        compiled, root = self._compile_given(self._catalog.definition(arguments.check_machine(machine), version))
        simulator = Simulator(self._caller, root, compiled.program, self._encryption)
        return simulator.run(events, data, id, moment, snapshot=snapshot)

    def _compile_given(
        self, definition: Mapping[str, Any] | CompiledDefinition | str
    ) -> tuple[CompiledDefinition, str]:
        if isinstance(definition, str):
            definition = self._catalog.definition(arguments.check_machine(definition), None)
        compiled: CompiledDefinition = waiting.compute(compile_definition, definition)
        if compiled.has_errors:
            raise DefinitionError(list(compiled.findings))
        return compiled, self.keys.partition(str(compiled.program["machine"])).root
