"""Which version new instances get, as the partitions of a machine hold it: the first one decides, the others copy.

Each change on the first partition increments ``turn``. A partition takes a copy unless it has one of a later turn, so
publishers that race or are killed leave partitions that differ for a while only: the next call that looks copies again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, Self

from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status, refuse
from machines.engine.keys import Partition

FIELDS = ("turn", "current", "rollout", "pin", "withdrawn")


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


def read_policy(caller: Caller, partition: Partition) -> PolicyTexts:
    """Read the policy of a partition. One command."""
    return PolicyTexts.read(caller.command("HMGET", partition.meta, *FIELDS))


def copy_policy(caller: Caller, partitions: Sequence[Partition], complete: Callable[[Partition], None]) -> int:
    """Bring the policy of the first partition to the others; return how many were changed. ``complete`` publishes on a
    partition the versions that it lacks."""
    if len(partitions) == 1:
        return 0
    rows = caller.commands([(p.meta, ("HMGET", p.meta, *FIELDS)) for p in partitions])
    policy, *held = (PolicyTexts.read(row) for row in rows)
    changed = 0
    for partition, own in zip(partitions[1:], held, strict=True):
        if not policy.current or own == policy or not own.current or own.turn > policy.turn:
            continue
        complete(partition)
        reply = caller.call("sb_rollout_copy", partition.root, *astuple(policy))
        if reply[0] != Status.OK:
            refuse("sb_rollout_copy", reply)
        changed += int(reply[1])
    return changed


def restore_policy(caller: Caller, first: Partition, texts: Mapping[str, Any]) -> None:
    """Write the roll-out, pin and withdrawn versions of an export on the first partition. What names a version that is
    not published there is left out."""
    held = caller.command("HGETALL", first.meta)
    known = {str(field)[4:]: str(definition) for field, definition in held.items() if str(field).startswith("def:")}
    policy = PolicyTexts.read([held.get(field) for field in FIELDS])
    words = _rename_definitions(texts, known)
    reply = caller.call("sb_rollout_copy", first.root, policy.turn + 1, policy.current, *words)
    if reply[0] != Status.OK:
        refuse("sb_rollout_copy", reply)


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
