"""Which version new instances get: roll-outs, pins and withdrawn versions; and the figures of each version.

Changes take the right to publish on the machine; pinning one instance is a repair, and takes the right to operate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from machines.audit.entries import AuditRecord
from machines.catalog import publishing
from machines.connections import get_engine
from machines.engine import Instance
from machines.engine.records import PartialList
from machines.engine.versions import Rollout, VersionFigures, VersionPin, Withdrawal
from machines.services import rules
from machines.services.actor import Actor
from machines.services.limits import rate_limit
from machines.services.reading import redacting, seen_by


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """Which version new instances of a machine get. ``current``: all but those of the roll-out; ``pin``: it stays
    current whatever is published; ``withdrawn``: versions that none gets, by their numbers."""

    current: int
    rollout: Rollout | None
    pin: VersionPin | None
    withdrawn: dict[int, Withdrawal]


def get(actor: Actor, machine: str) -> VersionChoice:
    """Raises Forbidden, UnknownMachine."""
    actor.demand("view", machine)
    engine = get_engine()
    return VersionChoice(
        engine.live(machine).version,
        engine.rollout(machine),
        engine.pinned(machine),
        engine.withdrawn_versions(machine),
    )


def figures(actor: Actor, machine: str, *, sample: int = 100) -> PartialList[VersionFigures]:
    """Counts of each version: instances, created, refusals, dead jobs, time in state. They hold no data."""
    actor.demand("view", machine)
    return get_engine().version_figures(machine, sample=sample)


def start(
    actor: Actor, machine: str, version: int, percent: float, *, guard: Any = None, reason: str,
    expect: int | None = None,
) -> Rollout | None:  # fmt: skip
    """Give a published version to so many per cent of the new instances. ``guard``: when that stops by itself."""
    with _recorded(actor, "rollout.set", machine, f"v{version}", reason) as (deed, who):
        deed.note(percent=percent)
        return get_engine().start_rollout(machine, version, percent, guard=guard, expect=expect, **who)


def set_percent(
    actor: Actor, machine: str, percent: float, *, guard: Any = None, reason: str, expect: int | None = None
) -> Rollout | None:
    """Raise or lower the percentage; 100 finishes the roll-out, 0 stops it. ``expect``: the ``turn`` that was seen."""
    with _recorded(actor, "rollout.set", machine, "", reason) as (deed, who):
        deed.note(percent=percent)
        return get_engine().set_rollout(machine, percent, guard=guard, expect=expect, **who)


def stop(actor: Actor, machine: str, *, reason: str, expect: int | None = None) -> Rollout | None:
    """Give new instances the base version again."""
    with _recorded(actor, "rollout.stop", machine, "", reason) as (_, who):
        return get_engine().stop_rollout(machine, expect=expect, **who)


def finish(actor: Actor, machine: str, *, reason: str, expect: int | None = None) -> None:
    """Make the version that is rolled out the current one."""
    with _recorded(actor, "rollout.finish", machine, "", reason) as (_, who):
        get_engine().finish_rollout(machine, expect=expect, **who)


def pin(actor: Actor, machine: str, version: int | None, *, reason: str) -> VersionPin | None:
    """Keep a version current whatever is published; None takes that back."""
    with _recorded(actor, "version.pin", machine, "" if version is None else f"v{version}", reason) as (deed, who):
        deed.note(pinned=version is not None)
        return get_engine().pin(machine, version, **who)


def make_current(actor: Actor, machine: str, version: int, *, reason: str) -> None:
    """Make an older version current as its instances go back, and keep it so: a pin, since programs that publish at
    their start would make the newer one current again. Stops a roll-out first."""
    rollout = get_engine().rollout(machine)
    if rollout is not None and rollout.under_way:
        stop(actor, machine, reason=reason)
    pin(actor, machine, version, reason=reason)


def gives_others(machine: str, version: int) -> bool:
    """Tell whether new instances get other versions than this one."""
    engine = get_engine()
    rollout = engine.rollout(machine)
    return engine.live(machine).version != version or (rollout is not None and rollout.under_way)


def withdraw(
    actor: Actor, machine: str, version: int, *, withdrawn: bool = True, instead: int | None = None, reason: str
) -> Withdrawal | None:
    """Let no new instance have a version, and no plan lead to it; with ``withdrawn=False`` take that back. ``instead``:
    the version that becomes current in place of a current one."""
    with _recorded(actor, "version.withdraw", machine, f"v{version}", reason) as (deed, who):
        deed.note(withdrawn=withdrawn, **({} if instead is None else {"instead": instead}))
        return get_engine().withdraw_version(machine, version, withdrawn, instead=instead, **who)


def pin_instance(
    actor: Actor, machine: str, id: str, pinned: bool = True, *, reason: str, expect: int | None = None,
    key: str | None = None,
) -> Instance:  # fmt: skip
    """Keep an instance in its version: no plan moves it. With ``pinned=False`` take that back. Raises Forbidden,
    TooFast, and what repairs raise."""
    about = {"machine": machine, "instance": id, "target": "pin" if pinned else "unpin", "reason": reason}
    rate_limit.spend(actor, "version.pin", **about)
    with redacting(actor, machine), actor.records("version.pin", **about) as deed:
        actor.demand("operate", machine)
        who: dict[str, Any] = {"actor": actor.name, "reason": reason, "permit": rules.permit_of(actor)}
        after = get_engine().pin_instance(machine, id, pinned, expect=expect, key=key, **who)
        deed.note(pinned=pinned, version=after.version)
    return seen_by(actor, after)


@contextmanager
def _recorded(
    actor: Actor, action: str, machine: str, target: str, reason: str
) -> Iterator[tuple[AuditRecord, dict[str, str]]]:
    """Ask for the right, record the change, and bring the database up to date with what is current now."""
    with actor.records(action, machine=machine, target=target, reason=reason) as deed:
        actor.demand("publish", machine)
        yield deed, {"actor": actor.name, "reason": reason}
        publishing.adopt(machine)
