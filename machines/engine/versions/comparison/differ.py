"""Compares two versions of a machine. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from machines.engine.definitions import StateOutline
from machines.engine.versions.content import VersionContent
from machines.engine.versions.diff import CHANGES, COMPATIBLE, Change, DefinitionDiff

from .machine_changes import compare_data, compare_events, compare_keys, compare_queues
from .pairs import Pairs, render_state
from .state_changes import compare_states
from .trees import freeze

NO_EFFECT = "their order has no effect"
RANK = {"added": 3, "removed": 3, "renamed": 2, "changed": 1}


def compare_versions(machine: str, old: VersionContent, new: VersionContent) -> DefinitionDiff:
    """Return all differences. A version with the number 0 is a draft."""
    pairs = Pairs(old, new)
    changes = [
        *compare_keys(old, new),
        *compare_data(old, new),
        *compare_events(old, new),
        *compare_order(pairs),
        *compare_states(pairs),
        *compare_queues(old, new),
    ]
    if not changes and freeze(old.program) != freeze(new.program):
        reason = "the programs differ in a way that is not listed, their order perhaps; see the text"
        changes = [Change("machine", "changed", "", "", "", CHANGES, reason)]
    return DefinitionDiff(
        machine,
        old.number or None,
        new.number or None,
        changes,
        write_text(machine, old, new),
        _collect([change for change in changes if change.verb != "added"], "old_part", pairs.removed, "removed"),
        _collect([change for change in changes if change.verb != "removed"], "new_part", pairs.added, "added"),
    )


def compare_order(pairs: Pairs) -> Iterator[Change]:
    """Report states that stand in another order; it decides for regions alone."""
    tops = [[s.name for s in side.outline.states if s.parent is None] for side in (pairs.old, pairs.new)]
    if change := _compare_siblings(pairs, tops[0], tops[1], "states", False):
        yield change
    for pair in pairs.pairs:
        path, regions = render_state(pairs.new, pair.new, "states"), pair.new.type == "parallel"
        if change := _compare_siblings(pairs, pair.old.children, pair.new.children, path, regions):
            ends: dict[str, Any] = {"old_part": ("states", pair.old.name), "new_part": ("states", pair.new.name)}
            yield replace(change, match=pair.match, **ends)


def _compare_siblings(pairs: Pairs, old: Sequence[str], new: Sequence[str], path: str, regions: bool) -> Change | None:
    before = [name for child in old if (name := str(pairs.map(child))) in new]
    after = [child for child in new if child in before]
    if before == after:
        return None
    verdict, reason = (CHANGES, "events go to the regions in another order") if regions else (COMPATIBLE, NO_EFFECT)
    return Change("state", "changed", path, ", ".join(before), ", ".join(after), verdict, reason)


def _collect(
    changes: Iterable[Change], side: str, states: Iterable[StateOutline], verb: str
) -> dict[str, dict[str, str]]:
    """Return what is marked on a diagram of one side: the gravest verb of each part. Transitions of states that came or
    went do so, too."""
    found: dict[str, dict[str, str]] = {"states": {}, "transitions": {}, "queues": {}}
    for change in changes:
        part = getattr(change, side)
        if part is None:
            continue
        # A part of a state that came or went is a change of the state.
        said = change.verb if change.kind in ("state", "queue") or part[0] == "transitions" else "changed"
        if change.kind in ("guard", "action"):
            said = "changed"
        kind, name = part
        if RANK[said] > RANK.get(found[kind].get(name, ""), 0):
            found[kind][name] = said
    for state in states:
        found["transitions"] |= {transition.id: verb for transition in state.transitions}
    return found


def write_text(machine: str, old: VersionContent, new: VersionContent) -> str:
    """Return a unified diff of both definitions as JSON, in the order of each document; empty where they are equal."""
    before, after = (_write(version).splitlines(keepends=True) for version in (old, new))
    one, other = (f"{machine} v{version.number}" if version.number else f"{machine} draft" for version in (old, new))
    return "".join(difflib.unified_diff(before, after, one, other))


def _write(version: VersionContent) -> str:
    return json.dumps(version.compiled.source, indent=2, ensure_ascii=False) + "\n"
