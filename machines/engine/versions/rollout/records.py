"""Records of roll-outs, pins, withdrawn versions and the figures of versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any, Self

from machines.engine.errors import BadInput
from machines.engine.publishing.machine_meta import PolicyTexts
from machines.engine.records import PlainRecord

HUNDREDTHS = 100  # of a percent, in which a share is stored


@dataclass(frozen=True, slots=True)
class Guard(PlainRecord):
    """When a roll-out stops by itself.

    The rates of the new version since the latest change of its percentage are compared with those of the base version:
    ``refusals`` and ``dead`` jobs per step that was tried. The roll-out stops when one is more than ``factor`` times
    the base's, after at least ``minimum`` steps of the new version were tried and ``least`` of them went wrong.
    """

    _: KW_ONLY
    factor: float = 3.0
    refusals: bool = True
    dead: bool = True
    minimum: int = 50
    least: int = 5

    @classmethod
    def read(cls, given: Mapping[str, Any] | bool | Guard | None) -> Guard | None:
        """Read what a caller gives: None and True for the defaults, False for no guard, or some of the settings.
        Raises BadInput."""
        if given is False:
            return None
        if isinstance(given, Guard):
            given = asdict(given)
        if given is None or given is True:
            return cls()
        if not isinstance(given, Mapping):
            raise BadInput(f"a guard is an object of settings, or False for none, not {given!r}", code="SB632")
        known = asdict(cls())
        for name, value in given.items():
            if name not in known:
                raise BadInput(f"a guard has no setting {name!r}; it has {', '.join(known)}", code="SB632")
            if not _fits(name, value):
                raise BadInput(f"the guard's {name} is {_KINDS[name]}, not {value!r}", code="SB632")
        return cls(**(known | dict(given)))

    @classmethod
    def restore(cls, stored: Mapping[str, Any]) -> Self:
        """Read settings that are stored; those of a later release are left out."""
        return cls(**{name: stored[name] for name in asdict(cls()) if name in stored})


_KINDS = {
    "factor": "a number from 1",
    "refusals": "true or false",
    "dead": "true or false",
    "minimum": "a whole number from 1",
    "least": "a whole number from 1",
}


def _fits(name: str, value: object) -> bool:
    if name in ("refusals", "dead"):
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if name == "factor":
        return isinstance(value, int | float) and 1 <= value <= 1_000_000
    return isinstance(value, int) and 1 <= value <= 1_000_000_000


@dataclass(frozen=True, slots=True)
class Attempts(PlainRecord):
    """What was tried in a version: ``tried`` steps, of them ``refused``; and jobs that ended ``dead``."""

    tried: int = 0
    refused: int = 0
    dead: int = 0

    def since(self, before: Attempts) -> Attempts:
        """Return what came after an earlier reading."""
        return Attempts(
            max(0, self.tried - before.tried),
            max(0, self.refused - before.refused),
            max(0, self.dead - before.dead),
        )

    @classmethod
    def read(cls, seen: Any) -> Self:
        """Read what ``as_dict`` returned."""
        return cls(**{name: int(seen.get(name, 0)) for name in ("tried", "refused", "dead")}) if seen else cls()


@dataclass(frozen=True, slots=True)
class Rollout(PlainRecord):
    """A version that a share of the new instances gets. ``base``: the version that all others get; ``since``,
    ``changed``: ms of its beginning, and of the latest change of its percentage, which ``actor`` and ``reason`` are of.

    ``stopped``: ms at which it was stopped, None while it goes on; ``by_guard``: whether the guard did that, and then
    ``figures`` has the attempts of both versions. ``marks``: the attempts of both versions at ``changed``. ``turn``:
    a number that each change of the machine's versions increments, for ``expect``.
    """

    machine: str
    version: int
    base: int
    percent: float
    _: KW_ONLY
    since: int
    changed: int
    actor: str = ""
    reason: str = ""
    guard: Guard | None = None
    stopped: int | None = None
    by_guard: bool = False
    figures: dict[str, Any] = field(default_factory=dict)
    marks: dict[str, Attempts] = field(default_factory=dict)
    turn: int = 0

    @property
    def under_way(self) -> bool:
        """Tell whether new instances get the version."""
        return self.stopped is None and self.percent > 0

    @classmethod
    def read(cls, machine: str, policy: PolicyTexts) -> Self | None:
        """Read the text of a partition's meta; None without a roll-out."""
        if not policy.rollout:
            return None
        share, definition, text = policy.rollout.split(" ", 2)
        row = json.loads(text)
        guard = row.get("guard")
        return cls(
            machine=machine,
            version=read_version(definition),
            base=read_version(row["base"]),
            percent=int(share) / HUNDREDTHS,
            since=int(row["since"]),
            changed=int(row["changed"]),
            actor=row.get("actor", ""),
            reason=row.get("reason", ""),
            guard=Guard.restore(guard) if isinstance(guard, dict) and guard else None,
            stopped=int(row["ended"]) if row.get("ended") else None,
            by_guard=bool(row.get("guarded")),
            figures=row.get("figures") or {},
            marks={name: Attempts.read(seen) for name, seen in (row.get("marks") or {}).items()},
            turn=policy.turn,
        )


@dataclass(frozen=True, slots=True)
class VersionPin:
    """The version to which a machine is pinned; ``next`` becomes current when it is unpinned. ``since``: ms."""

    version: int
    next: int
    since: int
    actor: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A version that no new instance gets and no plan leads to. ``since``: ms."""

    version: int
    since: int
    actor: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """Which version new instances of a machine get. ``current``: all but those of the roll-out; ``pin``: it stays
    current whatever is published; ``withdrawn``: versions that none gets, by their numbers; ``turn``: a number that
    each change of this increments, for ``expect``."""

    turn: int
    current: int
    rollout: Rollout | None
    pin: VersionPin | None
    withdrawn: dict[int, Withdrawal]

    @property
    def versions(self) -> set[int]:
        """Return the versions that new instances get, or may get without a further publication: current, rolled out
        (also where that was stopped), and the one behind the pin."""
        rolled = (self.rollout.version, self.rollout.base) if self.rollout else ()
        return {self.current, *rolled, *((self.pin.version, self.pin.next) if self.pin else ())}

    @classmethod
    def read(cls, machine: str, policy: PolicyTexts) -> Self:
        """Read the texts of a partition's meta."""
        found = Rollout.read(machine, policy), read_pin(policy), read_withdrawn(policy)
        return cls(policy.turn, read_version(policy.current), *found)


@dataclass(frozen=True, slots=True)
class StateTime:
    """How long the instances of a version that are in a state have been there: the median in ms of the ``sampled``
    ones. ``exact``: all of the state were looked at; then ``sampled`` is their number."""

    sampled: int
    median: int
    exact: bool


@dataclass(frozen=True, slots=True)
class VersionFigures(PlainRecord):
    """Figures of one version. ``instances``: those that run it now. Since the first publication: ``created`` in this
    version; ``refusals`` of events and creations; ``dead`` jobs; ``failed`` steps of timers. ``steps``: transitions
    that were taken, ``flow`` by transition. ``times``: state -> time in it. ``role``: "current", "rollout", "withdrawn"
    or "".
    """

    version: int
    instances: int
    _: KW_ONLY
    created: int = 0
    refusals: int = 0
    dead: int = 0
    failed: int = 0
    steps: int = 0
    flow: dict[str, int] = field(default_factory=dict)
    times: dict[str, StateTime] = field(default_factory=dict)
    role: str = ""

    @property
    def attempts(self) -> Attempts:
        """Return what was tried: steps taken and refused."""
        return Attempts(self.steps + self.refusals, self.refusals, self.dead)


def read_version(definition: str) -> int:
    """Return the number in ``<version>:<digest>``."""
    return int(definition.partition(":")[0])


def read_pin(policy: PolicyTexts) -> VersionPin | None:
    """Read the pin of a machine."""
    if not policy.pin:
        return None
    row = json.loads(policy.pin)
    numbers = read_version(row["def"]), read_version(row["next"])
    return VersionPin(*numbers, int(row["since"]), row.get("actor", ""), row.get("reason", ""))


def read_withdrawn(policy: PolicyTexts) -> dict[int, Withdrawal]:
    """Read the withdrawn versions of a machine, by their numbers."""
    found = {}
    for definition, row in json.loads(policy.withdrawn or "{}").items():
        number = read_version(definition)
        found[number] = Withdrawal(number, int(row["since"]), row.get("actor", ""), row.get("reason", ""))
    return dict(sorted(found.items()))
