"""What is stored of a machine beside its versions: its growth, which version new instances get, its sensitive
fields."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Self

from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import require_ok
from machines.engine.errors import BadInput, EngineUnavailable, NotPermitted
from machines.engine.keys import Keys, Partition

FRESH = 2.0  # seconds for which a process trusts what it read


@dataclass(frozen=True, slots=True)
class Growth:
    """One growth: from and to how many partitions; ``run``, the number of the latest run of the command; ``over``, ms
    since the epoch: messages from before it are asked of the old partition first, 0 while instances still move."""

    before: int
    after: int
    run: int
    over: int

    @property
    def under_way(self) -> bool:
        return self.over == 0

    def __str__(self) -> str:
        return f"{self.before}:{self.after}:{self.run}:{self.over}"

    @classmethod
    def read(cls, text: str) -> Self:
        return cls(*(int(number) for number in text.split(":")))


def refuse_growing(machine: str, growth: Growth | None) -> None:
    """Raise BadInput for a machine whose instances move between partitions now."""
    if growth is not None and growth.under_way:
        raise BadInput(f"{machine} grows to {growth.after} partitions: finish that first, by `machine repartition`")


class GrowthReader:
    """Reads which machines grow, at most every two seconds. ``changed`` is called with each machine of which something
    new was read."""

    def __init__(self, caller: Caller, keys: Keys, changed: Callable[[str], object]) -> None:
        self._caller = caller
        self._keys = keys
        self._changed = changed
        self._known: dict[str, Growth] = {}
        self._until = 0.0

    def find(self, machine: str, *, refresh: bool = False) -> Growth | None:
        """Return the growth of a machine, None for one that never grew. ``refresh``: read it if the last reading is
        older than two seconds."""
        if refresh and time.monotonic() >= self._until:
            self.read()
        return self._known.get(machine) if isinstance(machine, str) else None

    def read(self) -> None:
        """Read all growths now. One round trip."""
        self._until = time.monotonic() + FRESH
        held: Mapping[Any, Any] = {}
        try:
            with contextlib.suppress(NotPermitted):  # an account for some machines only: as if none grew
                held = self._caller.command("HGETALL", self._keys.growth)
        except EngineUnavailable:
            if not self._caller.spread:
                raise
            return  # the node of a cluster that has it is away: what was read before stands, and calls are sent on
        found = {str(name): Growth.read(str(text)) for name, text in held.items()}
        before, self._known = self._known, found
        for name in before.keys() | found.keys():
            if before.get(name) != found.get(name):
                self._changed(name)


POLICY_FIELDS = ("turn", "current", "rollout", "pin", "withdrawn")


@dataclass(frozen=True, slots=True)
class RolloutStart:
    """How a version is published to a share of the new instances: ``share`` in hundredths of a percent, ``settings``
    (JSON) for the functions library."""

    share: int
    settings: str
    actor: str = ""
    reason: str = ""

    def as_words(self) -> tuple[Any, ...]:
        """Return the arguments of ``sb_publish``."""
        return ("rollout", self.share, self.settings, self.actor, self.reason)


@dataclass(frozen=True, slots=True)
class PolicyTexts:
    """The policy of a partition as its meta has it; "" for what there is none of."""

    turn: int
    current: str
    rollout: str
    pin: str
    withdrawn: str

    @classmethod
    def read(cls, row: Sequence[Any]) -> Self:
        """Read the answer of HMGET."""
        return cls(int(row[0] or 0), *(str(text or "") for text in row[1:]))


def make_policy_read(meta: str) -> tuple[str, tuple[str, ...]]:
    """Make the command that reads the policy of a partition, with the key that routes it."""
    return meta, ("HMGET", meta, *POLICY_FIELDS)


def read_policy(caller: Caller, partition: Partition) -> PolicyTexts:
    """Read the policy of a partition. One command."""
    return PolicyTexts.read(caller.command(*make_policy_read(partition.meta)[1]))


def copy_policy(caller: Caller, partitions: Sequence[Partition], complete: Callable[[Partition], None]) -> int:
    """Bring the policy of the first partition to the others; return how many were changed. ``complete`` publishes on a
    partition the versions that it lacks."""
    if len(partitions) == 1:
        return 0
    rows = caller.commands([make_policy_read(p.meta) for p in partitions])
    policy, *held = (PolicyTexts.read(row) for row in rows)
    changed = 0
    for partition, own in zip(partitions[1:], held, strict=True):
        if not policy.current or own == policy or not own.current or own.turn > policy.turn:
            continue
        complete(partition)
        reply = require_ok("sb_rollout_copy", caller.call("sb_rollout_copy", partition.root, *astuple(policy)))
        changed += int(reply[1])
    return changed


def restore_policy(caller: Caller, first: Partition, texts: Mapping[str, Any]) -> None:
    """Write the roll-out, pin and withdrawn versions of an export on the first partition. What names a version that is
    not published there is left out."""
    held = caller.command("HGETALL", first.meta)
    known = {str(name)[4:]: str(definition) for name, definition in held.items() if str(name).startswith("def:")}
    policy = PolicyTexts.read([held.get(name) for name in POLICY_FIELDS])
    words = _rename_definitions(texts, known)
    require_ok("sb_rollout_copy", caller.call("sb_rollout_copy", first.root, policy.turn + 1, policy.current, *words))


def _rename_definitions(texts: Mapping[str, Any], known: Mapping[str, str]) -> tuple[str, str, str]:
    """Return roll-out, pin and withdrawn versions with the definitions of this server: another release may compile the
    same source to another program."""

    def rename(definition: Any) -> str:
        return known.get(str(definition).partition(":")[0], "")

    share, _, rest = str(texts.get("rollout") or "").partition(" ")
    definition, _, text = rest.partition(" ")
    rollout = ""
    if found := _read_object(text):
        names = rename(definition), rename(found.get("base"))
        rollout = f"{share} {names[0]} {json.dumps(found | {'base': names[1]})}" if all(names) else ""
    pin = _read_object(texts.get("pin"))
    names = rename(pin.get("def")), rename(pin.get("next"))
    pinned = json.dumps(pin | {"def": names[0], "next": names[1]}) if all(names) else ""
    gone = {rename(name): by for name, by in _read_object(texts.get("withdrawn")).items() if rename(name)}
    return rollout, pinned, json.dumps(gone) if gone else ""


def _read_object(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class EncryptedField:
    """How a field is encrypted. ``types``: of its plain value; ``searchable``: equal values have one ciphertext."""

    types: tuple[str, ...]
    searchable: bool


@dataclass(frozen=True, slots=True)
class SensitiveFields:
    """Names of sensitive fields. ``data``: data fields; ``events``: payload fields by event; ``encrypted``: those of
    either that are stored encrypted. False where there is none."""

    data: frozenset[str] = frozenset()
    events: Mapping[str, frozenset[str]] = field(default_factory=dict)
    encrypted: Mapping[str, EncryptedField] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.data or self.events)

    @property
    def names(self) -> frozenset[str]:
        """Return every name, of data and of payload fields."""
        return self.data.union(*self.events.values())


def read_sensitive_fields(text: str | None) -> SensitiveFields:
    """Read what ``sb_publish`` stores, ``{"data": {field: 1}, "events": {event: {field: 1}}, "encrypted": {field:
    {"types": [...], "searchable": true}}}``; None: no field is sensitive."""
    held = json.loads(text) if text else {}
    events = {event: frozenset(fields) for event, fields in held.get("events", {}).items()}
    return SensitiveFields(frozenset(held.get("data", ())), events, read_encrypted_fields(held))


def list_field_changes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    """List the fields that two programs of a machine both declare, encrypted in one, and otherwise in the other."""
    declared, known = _read_declared(new), _read_declared(old)
    return sorted(name for name in declared.keys() & known.keys() if declared[name] != known[name])


def _read_declared(program: Mapping[str, Any]) -> dict[str, EncryptedField | None]:
    """Return how each data and payload field of a program is encrypted; None for a plain one."""
    marks = read_encrypted_fields(program.get("sensitive", {}))
    names = [spec["name"] for spec in program.get("data", ())]
    names += [name for fields in program.get("events", {}).values() for name in fields]
    return {
        name: replace(mark, types=tuple(sorted(mark.types))) if (mark := marks.get(name)) else None for name in names
    }


def read_encrypted_fields(held: Mapping[str, Any]) -> dict[str, EncryptedField]:
    """Read the encrypted fields of what is stored, or of a program's ``sensitive``."""
    marks = held.get("encrypted", {})
    return {name: EncryptedField(tuple(mark["types"]), bool(mark.get("searchable"))) for name, mark in marks.items()}
