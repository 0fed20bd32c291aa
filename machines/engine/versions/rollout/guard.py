"""Compares the attempts of a version that is rolled out with those of its base version."""

from __future__ import annotations

from .records import Attempts, Guard, Rollout


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
