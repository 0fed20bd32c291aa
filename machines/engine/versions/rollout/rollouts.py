"""The methods of the engine that choose the version of new instances: roll-outs, pins, withdrawn versions, figures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from machines.engine import arguments
from machines.engine.base import EngineBase
from machines.engine.errors import BadInput, LookupFailed, VersionRefused
from machines.engine.publishing.machine_meta import RolloutStart
from machines.engine.records import PartialList

from .figures import FigureReader
from .records import (
    HUNDREDTHS,
    Attempts,
    Guard,
    Rollout,
    VersionChoice,
    VersionFigures,
    VersionPin,
    Withdrawal,
    read_pin,
    read_withdrawn,
)

MAX_SAMPLE = 1000
GUARD = "guard"
GuardSettings = Mapping[str, Any] | bool | Guard | None


class PolicyOptions(TypedDict, total=False):
    """The options of a change of versions. ``expect``: the ``turn`` the caller saw; any other raises VersionRefused."""

    expect: int | None
    actor: str
    reason: str


class RolloutMethods(EngineBase):
    """Which version new instances get: a part of ``Engine``.

    A change is decided on the machine's first partition and copied to the others. Each raises UnknownMachine, and
    VersionRefused where a roll-out, a pin or a withdrawn version does not allow it. Instances that exist stay in their
    version.
    """

    _count_leased: Callable[[str], None]

    def version_choice(self, machine: str) -> VersionChoice:
        """Return which version new instances get, and the ``turn`` of it. One round trip."""
        return VersionChoice.read(machine, self._catalog.policy(machine))

    # Roll-outs

    def rollout(self, machine: str) -> Rollout | None:
        """Return the version that is rolled out, or whose roll-out was stopped; None when there is none."""
        return Rollout.read(machine, self._catalog.policy(machine))

    def rollouts(self, *, recent: bool = False) -> dict[str, Rollout]:
        """Return machine -> its roll-out, of all machines that have one. ``recent``: as of the latest change that this
        process can see without reading every machine; for pages and duties that ask again and again."""
        found = {name: Rollout.read(name, policy) for name, policy in self._catalog.policies(recent=recent).items()}
        return {name: rollout for name, rollout in found.items() if rollout is not None}

    def set_rollout(
        self,
        machine: str,
        percent: float,
        *,
        guard: GuardSettings = None,
        **options: Unpack[PolicyOptions],
    ) -> Rollout | None:
        """Raise or lower the percentage of new instances that get the version; a stopped roll-out goes on. An id that
        gets the version at a percentage gets it at each higher one. 100 finishes the roll-out. ``guard``: new settings,
        by default those it has."""
        if (share := read_percent(percent)) >= 100 * HUNDREDTHS:
            self.finish_rollout(machine, **options)
            return None
        if share == 0:
            return self.stop_rollout(machine, **options)
        held = self.rollout(machine)
        settings: dict[str, Any] = {}
        if held is not None:
            settings["marks"] = self._read_marks(machine, held.version, held.base)
        if guard is not None:
            settings["guard"] = _encode_guard(guard)
        self._change_policy(machine, "set", "", share, settings, **options)
        return self.rollout(machine)

    def start_rollout(
        self,
        machine: str,
        version: int,
        percent: float,
        *,
        guard: GuardSettings = None,
        **options: Unpack[PolicyOptions],
    ) -> Rollout | None:
        """Roll out a published version that is not the current one, in place of one that is rolled out now."""
        share = read_percent(percent)
        if share >= 100 * HUNDREDTHS:
            raise BadInput("a roll-out starts below 100 %; `finish_rollout` makes its version current", code="SB633")
        current = int(self._catalog.policy(machine).current.partition(":")[0])
        settings = {"guard": _encode_guard(guard), "marks": self._read_marks(machine, version, current)}
        self._change_policy(machine, "start", _encode_version(version), share, settings, **options)
        return self.rollout(machine)

    def stop_rollout(self, machine: str, **options: Unpack[PolicyOptions]) -> Rollout | None:
        """Give new instances the base version again. Those that have the new version keep it."""
        self._change_policy(machine, "stop", "", "", {}, **options)
        return self.rollout(machine)

    def finish_rollout(self, machine: str, **options: Unpack[PolicyOptions]) -> None:
        """Make the version that is rolled out the current one; the roll-out is over."""
        self._change_policy(machine, "finish", "", "", {}, **options)

    def guard_rollout(self, machine: str, *, actor: str = GUARD) -> Rollout | None:
        """Stop the roll-out of a machine if its guard says so; return it then, else None. Workers call this all the
        time."""
        held = self.rollout(machine)
        if held is None or not held.under_way or held.guard is None:
            return None
        attempts = self._read_attempts(machine)
        new, base = attempts.get(held.version, Attempts()), attempts.get(held.base, Attempts())
        reason = judge_rollout(held, new, base)
        if not reason:
            return None
        settings = {"guarded": True, "figures": {"new": new.as_dict(), "base": base.as_dict()}}
        try:
            self._change_policy(machine, "stop", "", "", settings, expect=held.turn, actor=actor, reason=reason)
        except VersionRefused:  # it was changed meanwhile: the next look compares anew
            return None
        return self.rollout(machine)

    def align_versions(self, machine: str) -> int:
        """Finish what a killed publisher has left: bring the first partition's current version and roll-out to the
        others; return how many were behind."""
        return self._catalog.align_partitions(machine)

    def unsettled_machines(self, among: Collection[str] | None = None) -> list[str]:
        """List the machines, or those ``among`` some, of which a partition follows the first one no longer. Two
        round trips, however many machines there are."""
        return self._catalog.unsettled_machines(among)

    # Pins and withdrawn versions

    def pin(self, machine: str, version: int | None, **options: Unpack[PolicyOptions]) -> VersionPin | None:
        """Make a version current and keep it so, whatever is published, until it is unpinned with None: then the
        version that was published last becomes current. No plan moves instances of a pinned version."""
        self._change_policy(machine, "pin", _encode_version(version), "", {}, **options)
        return self.get_pin(machine)

    def get_pin(self, machine: str) -> VersionPin | None:
        """Return the version to which a machine is pinned, or None."""
        return read_pin(self._catalog.policy(machine))

    def withdraw_version(
        self,
        machine: str,
        version: int,
        withdrawn: bool = True,
        *,
        instead: int | None = None,
        **options: Unpack[PolicyOptions],
    ) -> Withdrawal | None:
        """Withdraw a version: no new instance gets it, and no plan leads to it; its roll-out stops. With
        ``withdrawn=False`` take that back. ``instead``: the version that becomes current in place of a current one;
        ``expect``: the ``turn`` the caller saw."""
        action = "withdraw" if withdrawn else "allow"
        other = _encode_version(instead) if withdrawn else ""
        self._change_policy(machine, action, _encode_version(version), other, {}, **options)
        return self.withdrawn_versions(machine).get(version)

    def withdrawn_versions(self, machine: str) -> dict[int, Withdrawal]:
        """Return the withdrawn versions by their numbers."""
        return read_withdrawn(self._catalog.policy(machine))

    # Figures

    def version_figures(self, machine: str, *, sample: int = 100) -> PartialList[VersionFigures]:
        """Return the figures of each published version. ``sample``: the instances of each state, in each partition,
        whose time in the state is read; 0 for no times. The attribute ``missing`` of the result lists the roots of
        partitions that did not answer, whose figures are not in it."""
        if sample:
            arguments.check_count("sample", sample, MAX_SAMPLE)
        return FigureReader(self._caller, self._catalog).read(machine, sample, partial=True)

    # Internals

    def _read_attempts(self, machine: str) -> dict[int, Attempts]:
        figures = FigureReader(self._caller, self._catalog).read(machine)
        return {each.version: each.attempts for each in figures}

    def _read_marks(self, machine: str, new: int | None, base: int) -> dict[str, Any]:
        """Return the attempts of both versions until now."""
        found = self._read_attempts(machine)
        both = {"new": found.get(new, Attempts()) if new else Attempts(), "base": found.get(base, Attempts())}
        return {name: attempts.as_dict() for name, attempts in both.items()}

    def _start_words(
        self, machine: object, percent: float, guard: GuardSettings, actor: str, reason: str
    ) -> RolloutStart | None:
        """Return how a definition is published to a percentage of the new instances; None for all of them."""
        share = read_percent(percent)
        if share >= 100 * HUNDREDTHS:
            return None
        settings: dict[str, Any] = {"guard": _encode_guard(guard)}
        try:
            current = int(self._catalog.policy(str(machine)).current.partition(":")[0])
            settings["marks"] = self._read_marks(str(machine), None, current)
        except LookupFailed:
            pass  # the first version, which becomes current
        return RolloutStart(share, json.dumps(settings), arguments.check_actor(actor), arguments.check_reason(reason))

    def _change_policy(
        self,
        machine: str,
        action: str,
        version: str,
        other: object,
        settings: Mapping[str, Any],
        *,
        expect: int | None = None,
        actor: str = "",
        reason: str = "",
    ) -> None:
        words: Sequence[Any] = (
            action,
            version,
            other,
            json.dumps(settings) if settings else "",
            arguments.encode_whole("expect", expect),
            arguments.check_actor(actor),
            arguments.check_reason(reason),
        )
        self._catalog.change_policy(machine, words)
        self._count_leased(machine)


def read_percent(percent: object) -> int:
    """Return a percentage in hundredths. Raises BadInput."""
    fits = isinstance(percent, int | float) and not isinstance(percent, bool) and math.isfinite(percent)
    if not fits or not 0 <= percent <= 100:  # type: ignore[operator]
        raise BadInput(f"a percentage is a number from 0 to 100, not {percent!r}", code="SB633")
    return round(percent * HUNDREDTHS)  # type: ignore[operator]


def _encode_version(version: int | None) -> str:
    return arguments.encode_whole("version", version, least=1)


def _encode_guard(guard: GuardSettings) -> dict[str, Any]:
    """Return the settings as they are stored; an empty object for no guard."""
    found = Guard.read(guard)
    return {} if found is None else found.as_dict()


def judge_rollout(rollout: Rollout, new: Attempts, base: Attempts) -> str:
    """Return why the guard stops a roll-out, as a sentence with the figures; "" where it does not.

    ``new``, ``base``: all attempts of the versions until now. Of the new version those since the latest change of the
    percentage count; of the base, too, or all of them where those are fewer than the guard's minimum.
    """
    guard = rollout.guard
    if guard is None or not rollout.under_way:
        return ""
    recent = new.since(rollout.marks.get("new", Attempts()))
    before = base.since(rollout.marks.get("base", Attempts()))
    compared = before if before.tried >= guard.minimum else base
    if recent.tried < guard.minimum or compared.tried < guard.minimum:
        return ""
    kinds = (("refusals", recent.refused, compared.refused), ("dead", recent.dead, compared.dead))
    for name, bad, usual in kinds:
        if getattr(guard, name) and _is_worse(guard, bad, recent.tried, usual, compared.tried):
            what = "refusals" if name == "refusals" else "dead jobs"
            return (
                f"version {rollout.version} has {bad} {what} in {recent.tried} steps ({_percent(bad, recent.tried)}),"
                f" version {rollout.base} {usual} in {compared.tried} ({_percent(usual, compared.tried)}):"
                f" more than {guard.factor:g} times as many"
            )
    return ""


def _is_worse(guard: Guard, bad: int, tried: int, usual: int, compared: int) -> bool:
    """Tell whether a rate is too high. A base without any counts as if it had one, so that a single bad step of a
    version of few steps is no proof."""
    return bad >= guard.least and bad * compared > guard.factor * max(usual, 1) * tried


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2g} %"
