"""Reads the replies of the functions library; ``lua/base/replies.lua`` builds them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

from machines.engine.errors import (
    UNREADABLE,
    BadInput,
    BadPayload,
    Conflict,
    EngineFault,
    EngineUnavailable,
    InstanceExists,
    LeaseLost,
    NeedsApproval,
    NotAllowed,
    NotPermitted,
    Refused,
    SignalboxError,
    Suspended,
    TooMuchWork,
    UnknownEvent,
    UnknownInstance,
    UnknownMachine,
    VersionRefused,
    refusal_listeners,
)
from machines.engine.records import Because, Candidate, Explanation, Instance, Live, Outcome, Step, Timer

from . import library, server_permissions
from .calls import OK, translate
from .library_loader import COMMAND


class Status(StrEnum):
    """The first word of every reply."""

    OK = "OK"
    REFUSED = "REFUSED"
    CONFLICT = "CONFLICT"
    NO_INSTANCE = "NOINSTANCE"
    NO_MACHINE = "NOMACHINE"
    BAD_PAYLOAD = "BADPAYLOAD"
    BAD_ARGUMENT = "BADARG"
    EXISTS = "EXISTS"
    LOST = "LOST"
    FAULT = "FAULT"
    SUSPENDED = "SUSPENDED"
    GONE = "GONE"
    FULL = "FULL"
    OVERFLOW = "OVERFLOW"
    NOT_ALLOWED = "NOTALLOWED"
    APPROVAL = "APPROVAL"
    MOVED = "MOVED"
    MOVING = "MOVING"
    VERSIONS = "VERSIONS"
    STALE = "STALE"


def require_ok(function: str, reply: Any, machine: str = "") -> list[Any]:
    """Return an OK reply. Raises what ``translate`` does for an error in its place, UnknownMachine where the partition
    has no ``machine``, BadInput for an argument, EngineFault for all else."""
    if isinstance(reply, Exception):
        translate(reply)
    if reply[0] != OK:
        if machine and reply[0] == Status.NO_MACHINE:
            raise UnknownMachine(machine)
        if reply[0] == Status.BAD_ARGUMENT:
            raise BadInput(str(reply[1]))
        raise EngineFault(f"{function} answered {': '.join(map(str, reply[:2]))}")
    answer: list[Any] = reply
    return answer


def read_whole(raw: Any) -> int:
    """Read a whole number that Lua wrote; past 10**14 it may have an exponent."""
    try:
        return int(raw)
    except ValueError:
        return int(float(raw))


class FieldTypes:
    """The decoders of one definition version's data fields: scalars are stored as they are, the rest as JSON."""

    __slots__ = ("_numbers", "_read", "_states", "finals", "names_of", "version")

    _READERS: Mapping[str, Callable[[str], Any]] = {
        "string": str,
        "integer": read_whole,
        "number": float,
        "boolean": lambda raw: raw == "true",
        "json": json.loads,
    }

    def __init__(self, program: Mapping[str, Any], version: int) -> None:
        self.version = version
        self.finals = frozenset(s["name"] for s in program["states"] if s.get("final") and not s.get("parent"))
        self._states = program["states"]
        self.names_of = [""] + [s["name"] for s in program["states"]]
        self._read = {spec["name"]: self._READERS[spec["type"]] for spec in program.get("data", ())}
        kinds = {"integer": int, "number": float}
        self._numbers = [(d["name"], kinds[d["type"]]) for d in program.get("data", ()) if d["type"] in kinds]

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the data fields."""
        return frozenset(self._read)

    def ends(self) -> list[str]:
        """List the final states in which an instance can have ended: those of the machine itself, and of its regions
        where all of it is parallel."""
        numbers = dict(enumerate(self._states, start=1))

        def around(state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
            return numbers.get(state["parent"]) if state and state.get("parent") else None

        def is_end(state: Mapping[str, Any]) -> bool:
            parent = around(state)
            if parent is None or parent.get("root"):
                return True
            top = around(parent)
            return bool(top and top.get("root") and top.get("kind") == "parallel")

        return [state["name"] for state in self._states if state.get("final") and is_end(state)]

    def leaves(self, name: str) -> list[str]:
        """List the leaf states at or below a state; empty when this version has no such state."""
        inside: set[int] = set()
        found = []
        for index, state in enumerate(self._states, start=1):  # a parent comes before what is below it
            if state["name"] == name or state.get("parent") in inside:
                inside.add(index)
                if "kind" not in state:
                    found.append(state["name"])
        return found

    def convert(self, values: dict[str, Any]) -> dict[str, Any]:
        """Convert data that came as one JSON object, where a number may be an integer field's or a float field's."""
        for name, kind in self._numbers:
            if name in values and type(values[name]) is not kind:
                values[name] = self._read[name](values[name])
        return values

    def data(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Decode the data of an instance, in declared order; absent fields are left out."""
        return {name: read(raw[name]) for name, read in self._read.items() if name in raw}


def has_messages(reply: Sequence[Any]) -> bool:
    """Tell whether the step put messages into the outbox. A short reply, a text, says that it did not."""
    return not isinstance(reply, str) and len(reply) > 4 and reply[0] == Status.OK and str(reply[4]) == "1"


decode = json.JSONDecoder().raw_decode  # without a look for white space around what a function wrote


def read_fields(reply: Sequence[Any]) -> dict[str, Any]:
    """Return the raw instance hash that an OK reply carries as JSON."""
    found: dict[str, Any] = decode(reply[3])[0]
    return found


def read_revision(reply: Sequence[Any]) -> int:
    """Return the revision of an OK reply, which carries it alone or in the hash: a step with a key has the hash."""
    text = reply[3]
    return int(read_fields(reply)["_version"] if text[:1] == "{" else text)


def read_pairs(found: Any) -> dict[str, Any]:
    """Read names and values: in RESP3 a hash is a map and a sorted set a list of pairs, in RESP2 both are flat."""
    if isinstance(found, dict):
        return found
    if found and isinstance(found[0], list | tuple):
        return dict(found)
    return dict(zip(found[::2], found[1::2], strict=True))


def read_instance(
    machine: str, id: str, raw: Mapping[str, Any], types: FieldTypes, outcome: Outcome | None = None
) -> Instance:
    state = str(raw["_state"])
    seldom = _NO_FIELDS if _SELDOM_FIELDS.isdisjoint(raw) else _read_seldom_fields(raw, types)
    return Instance(
        id,
        machine,
        state.split("\n"),
        types.data(raw),
        revision=int(raw["_version"]),
        version=types.version,
        entered=read_whole(raw["_entered"]),
        created=read_whole(raw["_created"]),
        done="_done" in raw or state in types.finals,
        jobs=str(raw["_jobs"]).split() if raw.get("_jobs") else [],
        outcome=outcome,
        actor=str(raw.get("_actor", "")),
        **seldom,
    )


_NO_FIELDS: dict[str, Any] = {}
_SELDOM_FIELDS = frozenset(["_timers", "_children", "_parent", "_suspended", "_pin"])


def _read_seldom_fields(raw: Mapping[str, Any], types: FieldTypes) -> dict[str, Any]:
    """Decode what only some instances have: timers, children, a parent, a suspension."""
    children = json.loads(raw["_children"]) if raw.get("_children") else {}
    return {
        "timers": [_read_timer(row, types) for row in json.loads(raw.get("_timers") or "[]")],
        "children": {invoke: {"machine": c["machine"], "id": c["id"]} for invoke, c in sorted(children.items())},
        "parent": _read_parent(raw["_parent"]) if raw.get("_parent") else None,
        "suspended": read_whole(raw["_suspended"]) if raw.get("_suspended") else None,
        "pinned": "_pin" in raw,
    }


def _read_parent(text: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(text)
    return {word: found[word] for word in ("machine", "id", "invoke")}


def _read_timer(row: Sequence[Any], types: FieldTypes) -> Timer:
    id, due, event, state, sendid, _, target, *_ = row
    return Timer(
        id=id, event=event, due=read_whole(due), state=types.names_of[int(state)], sendid=sendid, target=target
    )


def read_outcome(reply: Sequence[Any]) -> Outcome:
    before = str(reply[5]).split("\n") if len(reply) > 5 else []
    return Outcome(str(reply[1]).split(), str(reply[2]) == "1", before)


def read_explanation(machine: str, id: str, text: str) -> Explanation:
    seen = json.loads(text)
    candidates = [Candidate(**{**c, "because": [Because(**b) for b in c["because"]]}) for c in seen["candidates"]]
    after = seen["outcome"]
    if after is not None:
        after["transitions"] = after["transitions"].split()
    return Explanation(
        machine=machine,
        id=id,
        event=seen["event"],
        taken=seen["taken"],
        revision=int(seen["version"]),
        configuration=seen["state"],
        candidates=candidates,
        why=seen["why"],
        error=seen["error"],
        outcome=after,
        known_events=seen["known"],
        work=seen.get("work", 0),
        exhausted=seen.get("exhausted", False),
        omitted=seen.get("omitted", 0),
    )


def build_refusal(why: Explanation) -> Refused:
    """Build the error for an explanation of an event that no transition took."""
    refusal = TooMuchWork(why) if why.exhausted else UnknownEvent(why) if why.why == "unknown event" else Refused(why)
    for listen in refusal_listeners:
        listen(refusal)
    return refusal


def build_error(machine: str, id: str, reply: Sequence[Any], *, expect: int | None = None) -> SignalboxError:
    """Build the error for a reply other than OK."""
    status = reply[0]
    if status == Status.REFUSED:
        return build_refusal(read_explanation(machine, id, reply[1]))
    if status == Status.SUSPENDED:
        return Suspended(machine, id, since=read_whole(reply[1]))
    if status == Status.NOT_ALLOWED:
        event, transition, target, groups = map(str, reply[1:])
        return NotAllowed(machine, id, event, transition=transition, target=target, groups=json.loads(groups))
    if status == Status.APPROVAL:
        action, name, *numbers, taken, approved = map(str, reply[1:])
        revision, version = map(int, numbers)
        return NeedsApproval(
            machine, name, action, revision=revision, version=version,
            transitions=taken.split(), approved=approved.split(),
        )  # fmt: skip
    if status == Status.CONFLICT:
        return Conflict(machine, id, expected=-1 if expect is None else expect, actual=int(reply[1]))
    if status == Status.NO_INSTANCE:
        return UnknownInstance(machine, id)
    if status == Status.NO_MACHINE:
        return UnknownMachine(machine)
    if status == Status.EXISTS:
        return InstanceExists(machine, id)
    if status == Status.BAD_PAYLOAD:
        return BadPayload(str(reply[1]), field=str(reply[2]) if len(reply) > 2 and reply[2] else None)
    if status == Status.BAD_ARGUMENT:
        return BadInput(str(reply[1]))
    if status == Status.VERSIONS:
        return build_version_refusal(machine, reply)
    return _build_fault(machine, id, reply[0], " ".join(map(str, reply[1:])))


def build_version_refusal(machine: str, reply: Sequence[Any]) -> SignalboxError:
    """Build the error of a reply VERSIONS."""
    code, why = str(reply[1]), str(reply[2])
    if code == UnknownMachine.code:
        return UnknownMachine(machine, version=int("0" + "".join(filter(str.isdigit, why))))
    return VersionRefused(machine, why, code=code if code in ("SB625", "SB627", "SB628", "SB629") else None)


def _build_fault(machine: str, id: str, status: str, text: str) -> SignalboxError:
    """Build the error of a function that met a lost lease, damaged data, an instance between two partitions, or a
    command that the account may not run."""
    if status == Status.LOST:
        return LeaseLost(id, why=text)
    if status in (Status.MOVED, Status.MOVING):
        return EngineUnavailable(
            f"{machine}/{id} is moving to another partition: send the call again", code="SB501", retry_safe=True
        )
    if server_permissions.is_denied(text):
        return NotPermitted([named] if (named := server_permissions.find_missing(text)) else [])
    return EngineFault(f"{machine}/{id}: {text}")


MIGRATE = "(migrate)"  # the event of a step that moved an instance to another version


def decode_entry(entry: str) -> list[Any]:
    """Decode one history entry: [revision, ms, event, state, transitions, actor, reason, payload, set, unset, job].
    Raises EngineFault (SB517) for one that the library of an older release answered as it is in Redis, or that is
    damaged."""
    try:
        found = json.loads(entry)
    except ValueError:
        found = None
    if not isinstance(found, list) or len(found) < 9:
        raise EngineFault(
            f"an entry of a history cannot be read: {entry!r:.60}. Either the key is damaged, or the functions library "
            f"of an older release is on the server: run `{COMMAND}` of release {library.RELEASE} or later. Nothing was "
            "changed",
            code=UNREADABLE,
        )
    return found


def check_entries(entries: Sequence[str]) -> None:
    """Raise EngineFault (SB517) where one is packed still: all others begin with a bracket."""
    for entry in entries:
        if entry[:1] != "[":
            decode_entry(entry)


def read_step(entry: str) -> Step:
    """Read one history entry, as ``decode_entry``."""
    revision, at, event, state, transitions, actor, reason, payload, changed, *unset = decode_entry(entry)
    changes = dict(changed or {})
    changes.update(dict.fromkeys(unset[0] if unset else ()))
    return Step(
        revision=int(revision),
        at=int(at),
        event=event,
        source=None,
        configuration=state if isinstance(state, list) else [state],
        transitions=transitions.split(),
        actor=actor or "",
        reason=reason or "",
        payload=payload or {},
        changes=changes,
    )


def read_steps(entries: Sequence[str], version: str | int = 0) -> list[Step]:
    """Read entries, oldest first; return steps, newest first, each with the configuration before it as its source.
    ``version``: the one that the instance had after the newest of them, as ``<version>:<digest>`` or a number.
    """
    read = [read_step(entry) for entry in entries]
    steps = [replace(s, source=b.configuration) for b, s in pairwise(read)][::-1] + read[:1]
    return name_versions(steps, int(str(version).partition(":")[0] or 0))


def name_versions(steps: Iterable[Step], version: int) -> list[Step]:
    """Give each step, newest first, the version that the instance had after it: a step ``(migrate)`` names the one
    before."""
    found = []
    for step in steps:
        is_move = step.event == MIGRATE
        found.append(replace(step, version=int(step.payload.get("to") or version) if is_move else version))
        if is_move:
            version = int(step.payload.get("from") or 0)
    return found


NUMBERS = ("total", "timers", "overdue", "mail", "compile_failures", "late")
COUNTERS = ("counts", "flow", "breaches", "unchecked", "refused", "versions")
"""Figures of ``Live`` that add up over partitions: numbers, and numbers by name."""


def read_live(machine: str, text: str) -> Live:
    return build_live(machine, json.loads(text))


def build_live(machine: str, seen: Mapping[str, Any]) -> Live:
    """Build the figures of a partition from the object that ``sb_live`` encodes."""
    figures: dict[str, Any] = {name: int(seen.get(name, 0)) for name in NUMBERS}
    figures |= {name: seen[name] for name in ("counts", "oldest", "flow", "queues", "breaches", "refused")}
    figures |= {name: dict(seen.get(name) or {}) for name in ("unchecked", "breached_since", "versions")}
    return Live(machine=machine, version=int(seen["version"]), now=int(seen["now"]), **figures)


def _earliest(first: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {**first, **{state: min(ms, first.get(state, ms)) for state, ms in other.items()}}


def merge_live(parts: Sequence[Live]) -> Live:
    """Merge the figures of a machine's partitions."""
    first, *rest = parts
    for part in rest:
        added: dict[str, Any] = {name: getattr(first, name) + getattr(part, name) for name in NUMBERS}
        added |= {name: _sum(getattr(first, name), getattr(part, name)) for name in COUNTERS}
        first = Live(
            machine=first.machine,
            version=max(first.version, part.version),
            oldest=_earliest(first.oldest, part.oldest),
            queues={q: _sum(first.queues.get(q, {}), part.queues.get(q, {})) for q in first.queues | part.queues},
            now=max(first.now, part.now),
            breached_since=_earliest(first.breached_since, part.breached_since),
            **added,
        )
    return first


def _sum(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + b.get(name, 0) for name in (*a, *(n for n in b if n not in a))}
