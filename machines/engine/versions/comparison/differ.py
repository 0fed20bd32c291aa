"""Compares two versions of a machine; here what they declare beside their states. Pure."""

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from machines.engine.definitions import FieldOutline, StateOutline, render
from machines.engine.definitions.fields import describe_types
from machines.engine.definitions.outline import LimitOutline
from machines.engine.versions.content import VersionContent
from machines.engine.versions.planning.document import can_fail
from machines.engine.versions.records import CHANGES, COMPATIBLE, NEEDS_MAPPING, Change, DefinitionDiff

from .pairs import Pairs, freeze, freeze_source, render_state, show
from .state_changes import compare_states

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


LISTED = frozenset(["id", "context", "events", "states", "queues", "$schema", "version"])  # compared by themselves
STATE_KEYS = frozenset(["type", "on", "always", "after", "entry", "exit", "invoke"])  # of the machine as a state
HARMLESS = {
    "description": "it is for people",
    "meta": "it is for tools",
    "partitions": "a machine keeps its partitions",
    "history": "it is the number of steps that are kept",
    "index": "workers fill new indexes",
    "retain": "it is how long finished instances are kept",
    "schedules": "they act on instances from outside",
}


def compare_data(old: VersionContent, new: VersionContent) -> Iterator[Change]:
    """Compare the data fields; one that went and one that came with the same type and initial value may be the same."""
    removed = [field for name, field in old.fields.items() if name not in new.fields]
    added = [field for name, field in new.fields.items() if name not in old.fields]
    for field in removed:
        same = [one for one in added if (one.types, one.initial) == (field.types, field.initial)]
        peers = [one for one in removed if (one.types, one.initial) == (field.types, field.initial)]
        if len(same) == 1 and len(peers) == 1:
            other = same[0]
            added.remove(other)
            given = f"data={{{show_name(other)}: {show_name(field)}}}"
            reason = f"it looks like the same field; a plan takes it over with {given}"
            yield Change("data", "renamed", _locate(other.name), field.name, other.name, NEEDS_MAPPING, reason, "shape")
        else:
            reason = "its values are dropped, or kept beside the data; an expression of a plan can read them"
            yield Change("data", "removed", _locate(field.name), describe_field(field), "", NEEDS_MAPPING, reason)
    for name, field in new.fields.items():
        if name in old.fields:
            yield from _compare_field(old.fields[name], field)
        elif field in added:
            reason = "instances get its initial value"
            yield Change("data", "added", _locate(name), "", describe_field(field), COMPATIBLE, reason)


def _locate(name: str) -> str:
    return render(("context", name))


def show_name(field: FieldOutline) -> str:
    return f'"{field.name}"'


def describe_field(field: FieldOutline) -> str:
    initial = "" if field.initial is None else f", at first {show(field.initial)}"
    return f"{describe_types(field.types)}{initial}"


def _compare_field(old: FieldOutline, new: FieldOutline) -> Iterator[Change]:
    path = _locate(new.name)
    before, after = describe_field(old), describe_field(new)
    if old.types != new.types:
        fails = can_fail(old, new)
        verdict = NEEDS_MAPPING if fails else COMPATIBLE
        reason = "some values cannot be converted: give an expression" if fails else "each value is converted"
        yield Change("data", "changed", path, before, after, verdict, reason, "id")
    elif freeze_source(old.initial) != freeze_source(new.initial):
        yield Change("data", "changed", path, before, after, COMPATIBLE, "it is for new instances", "id")
    if old.sensitive != new.sensitive:
        before, after = ("sensitive" if field.sensitive else "not sensitive" for field in (old, new))
        reason = "a field is redacted where one version marks it as sensitive"
        yield Change("data", "changed", path, before, after, COMPATIBLE, reason, "id")
    for key in ("description", "required"):
        one, other = getattr(old, key), getattr(new, key)
        if one != other:
            yield Change(
                "data", "changed", f"{path}.{key}", show(one), show(other), COMPATIBLE, "it is for people", "id"
            )


def compare_queues(old: VersionContent, new: VersionContent) -> Iterator[Change]:
    """Compare the queues that are used, and their limits."""
    for queue in old.outline.queues:
        if queue not in new.outline.queues:
            reason = "no new jobs are put on it; those on it stay"
            part = ("queues", queue)
            yield Change("queue", "removed", render(("queues", queue)), queue, "", CHANGES, reason, old_part=part)
    for queue in new.outline.queues:
        if queue not in old.outline.queues:
            reason, part = "a worker has to serve it", ("queues", queue)
            yield Change("queue", "added", render(("queues", queue)), "", queue, CHANGES, reason, new_part=part)
            continue
        before, after = (_describe_limit(version, queue) for version in (old, new))
        if before != after:
            parts = {"old_part": ("queues", queue), "new_part": ("queues", queue)}
            reason = "the limits of the current version hold for all jobs on it"
            path = render(("queues", queue))
            yield Change("queue", "changed", path, before, after, CHANGES, reason, "id", **parts)


def _describe_limit(version: VersionContent, queue: str) -> str:
    limit = version.outline.limits.get(queue)
    groups = limit and limit.groups
    parts = [*_list_limits(limit), *(f"{part} of each group" for part in _list_limits(groups))]
    return ", ".join(parts) or "no limit"


def _list_limits(limit: LimitOutline | None) -> list[str]:
    if limit is None:
        return []
    return list(filter(None, [f"{limit.concurrency} at a time" if limit.concurrency is not None else "", limit.rate]))


def compare_events(old: VersionContent, new: VersionContent) -> Iterator[Change]:
    """Compare the declared events and their payloads."""
    ours, theirs = (_get_object(version, "events") for version in (old, new))
    for name in dict.fromkeys([*ours, *theirs]):
        if freeze_source(ours.get(name)) == freeze_source(theirs.get(name)) and (name in ours) == (name in theirs):
            continue
        verb = "added" if name not in ours else "removed" if name not in theirs else "changed"
        payloads = [freeze_source(version.program.get("events", {}).get(name)) for version in (old, new)]
        same = payloads[0] == payloads[1] and verb == "changed"
        verdict = COMPATIBLE if same or verb == "added" else CHANGES
        reason = "it is for people" if same else "payloads are checked in another way"
        before, after = show(ours.get(name)), show(theirs.get(name))
        match = "id" if verb == "changed" else ""
        yield Change("machine", verb, render(("events", name)), before, after, verdict, reason, match)


def compare_keys(old: VersionContent, new: VersionContent) -> Iterator[Change]:
    """Compare the other keys of the machine."""
    has_root = old.outline.root is not None or new.outline.root is not None
    ours, theirs = old.compiled.source, new.compiled.source
    for key in dict.fromkeys([*ours, *theirs]):
        if key in LISTED or (has_root and key in STATE_KEYS | {"initial"}):
            continue
        if freeze_source(ours.get(key)) == freeze_source(theirs.get(key)):
            continue
        verb = "added" if key not in ours else "removed" if key not in theirs else "changed"
        verdict, reason = (COMPATIBLE, HARMLESS[key]) if key in HARMLESS else (CHANGES, "it applies to every instance")
        if key == "initial":
            verdict, reason = COMPATIBLE, "it is for new instances"
        before, after = (_shorten(show(source.get(key))) for source in (ours, theirs))
        match = "id" if verb == "changed" else ""
        yield Change("machine", verb, render((key,)), before, after, verdict, reason, match)


def _get_object(version: VersionContent, key: str) -> dict[str, Any]:
    found = version.compiled.source.get(key)
    return found if isinstance(found, dict) else {}


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"
