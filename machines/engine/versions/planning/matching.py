"""Finds the counterparts of states in another version: the same name, the same path, and those that are similar."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from machines.engine.definitions import StateOutline
from machines.engine.versions.content import VersionContent

Suggestion = tuple[str, str, float, str]  # old state, new state, score from 0 to 1, why
LEAST_SCORE = 0.35
MOST_SUGGESTIONS = 3  # for one state
MOST_COMPARISONS = 60_000  # pairs of states: more would take seconds
TAKEN = 0.6  # factor for a state that is the counterpart of another one already
WEIGHTS = {"name": 0.35, "out": 0.2, "targets": 0.1, "in": 0.1, "invokes": 0.15, "position": 0.1}


def find_same(old: VersionContent, new: VersionContent, state: StateOutline) -> tuple[str, str] | None:
    """Return the state of ``new`` with the same name, else with the same path, and which of both. History states and
    other states are never counterparts."""
    by_name = new.outline.state(state.name)
    if by_name is not None and _is_history(by_name) == _is_history(state):
        moved = by_name.path != state.path and state.path and by_name.path
        return by_name.name, f"same name; was {state.path}, is {by_name.path}" if moved else "same name"
    by_path = new.find_path(state.path)
    if by_path is not None and _is_history(by_path) == _is_history(state) and old.outline.state(by_path.name) is None:
        return by_path.name, f"same path: {by_path.path}"
    return None


def match_states(old: VersionContent, new: VersionContent) -> dict[str, str]:
    """Return state of ``old`` -> its counterpart in ``new`` by name or path, for all kinds of states."""
    found = ((state.name, find_same(old, new, state)) for state in old.outline.states)
    return {name: same[0] for name, same in found if same is not None}


def _is_history(state: StateOutline) -> bool:
    return state.type == "history"


@dataclass(frozen=True, slots=True)
class Features:
    """What states are compared by. ``position``: 0 for the first among its siblings, 1 for the last."""

    name: str
    pairs: frozenset[str]
    out: frozenset[str]
    targets: frozenset[str]
    entries: frozenset[str]
    invokes: frozenset[str]
    parent: str
    position: float
    final: bool


def describe_states(version: VersionContent, names: Collection[str]) -> list[Features]:
    """Describe states for a comparison by similarity."""
    entries: dict[str, set[str]] = {}
    for state in version.outline.states:
        for transition in state.transitions:
            for target in transition.targets:
                entries.setdefault(target, set()).update(transition.events or (transition.cause,))
    return [_describe(version, state, entries) for state in version.outline.states if state.name in names]


def _describe(version: VersionContent, state: StateOutline, entries: dict[str, set[str]]) -> Features:
    parent = version.outline.state(state.parent) if state.parent else None
    siblings = parent.children if parent else [one.name for one in version.outline.states if one.parent is None]
    words = {event for t in state.transitions for event in t.events if t.cause == "on"}
    words |= {f"after {t.delay}" for t in state.transitions if t.delay}
    return Features(
        name=state.name,
        pairs=_split(state.name),
        out=frozenset(words),
        targets=frozenset(target for t in state.transitions for target in t.targets),
        entries=frozenset(one for one in entries.get(state.name, ()) if not one.startswith("after.")),
        invokes=frozenset(one.work for one in version.list_invokes(state.name)),
        parent=state.parent or "",
        position=list(siblings).index(state.name) / max(1, len(siblings) - 1),
        final=state.type == "final",
    )


def _split(name: str) -> frozenset[str]:
    """Return the pairs of neighbouring letters of a name, without case and signs."""
    plain = re.sub(r"[^a-z0-9]+", "", name.rpartition(".")[2].lower()) or name
    return frozenset(plain[at : at + 2] for at in range(max(1, len(plain) - 1)))


def suggest(
    old: VersionContent, new: VersionContent, wanted: Collection[str], taken: Collection[str], same: dict[str, str]
) -> list[Suggestion]:
    """List the leaves of ``new`` that are similar to the ``wanted`` leaves of ``old``, the best first for each.

    ``taken``: states of ``new`` that are counterparts already; ``same``: counterparts by name, for targets and parents.
    """
    ours, theirs = describe_states(old, set(wanted)), describe_states(new, set(new.outline.leaves))
    found: list[Suggestion] = []
    for one in ours[: max(1, MOST_COMPARISONS // max(1, len(theirs)))]:
        scored = [(other, *compare(one, other, same)) for other in theirs if one.final == other.final]
        rows = [(one.name, o.name, round(s * (TAKEN if o.name in taken else 1), 2), why) for o, s, why in scored]
        rows = sorted((row for row in rows if row[2] >= LEAST_SCORE), key=lambda row: -row[2])
        found += rows[:MOST_SUGGESTIONS]
    return found


def compare(one: Features, other: Features, same: dict[str, str]) -> tuple[float, str]:
    """Return how similar two states are, from 0 to 1, and why. What neither of them has does not count."""
    parts: dict[str, float | None] = {
        "name": _overlap(one.pairs, other.pairs),
        "out": _overlap(one.out, other.out),
        "targets": _overlap({same.get(target, target) for target in one.targets}, other.targets),
        "in": _overlap(one.entries, other.entries),
        "invokes": _overlap(one.invokes, other.invokes),
        "position": _compare_positions(one, other, same),
    }
    counted = {key: value for key, value in parts.items() if value is not None}
    score = sum(WEIGHTS[key] * value for key, value in counted.items()) / sum(WEIGHTS[key] for key in counted)
    return score, "; ".join(_explain(one, other, counted)) or "little in common"


def _overlap(one: Collection[str], other: Collection[str]) -> float | None:
    """Return twice the common part of two sets over their sizes; None where both are empty."""
    if not one and not other:
        return None
    return 2 * len(set(one) & set(other)) / (len(one) + len(other))


def _compare_positions(one: Features, other: Features, same: dict[str, str]) -> float:
    beside = same.get(one.parent, one.parent) == other.parent
    return (1.0 if beside else 0.3) * (1 - abs(one.position - other.position))


def _explain(one: Features, other: Features, parts: dict[str, float]) -> Iterable[str]:
    if parts["name"] >= 0.5:
        yield "similar name"
    if parts.get("out", 0) >= 0.5:
        yield f"takes the same events: {', '.join(sorted(one.out & other.out)[:4])}"
    if parts.get("targets", 0) >= 0.5:
        yield "leads to the same states"
    if parts.get("in", 0) >= 0.5:
        yield f"is entered by the same events: {', '.join(sorted(one.entries & other.entries)[:4])}"
    if parts.get("invokes", 0) >= 0.5:
        yield f"invokes the same: {', '.join(sorted(one.invokes & other.invokes)[:4])}"
    if parts["position"] >= 0.8:
        yield "stands in the same place"
