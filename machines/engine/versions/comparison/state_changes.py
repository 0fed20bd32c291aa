"""Compares the states of two versions: those that came, went or changed, with their actions and invokes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from machines.engine.definitions import InvokeOutline, StateOutline, render
from machines.engine.definitions.durations import format_duration
from machines.engine.versions.content import VersionContent
from machines.engine.versions.diff import CHANGES, COMPATIBLE, NEEDS_MAPPING, Change

from .pairs import Pair, Pairs, freeze, locate_state, render_state, show
from .transition_changes import compare_transitions


def compare_states(pairs: Pairs) -> Iterator[Change]:
    """Compare all states, in the order of the new version; those that went come first."""
    for state in pairs.removed:
        yield _remove(pairs, state)
    matched = {pair.new.name: pair for pair in pairs.pairs}
    for state in pairs.new.outline.states:
        pair = matched.get(state.name)
        if pair is None:
            yield _add(pairs, state)
        else:
            yield from _compare(pair, pairs)


def _remove(pairs: Pairs, state: StateOutline) -> Change:
    verdict, reason = NEEDS_MAPPING, "instances in it have no place"
    if state.type == "final":
        reason = "finished instances in it have no place"
    elif state.type == "history":
        verdict, reason = CHANGES, "what it remembers is forgotten"
    elif not state.is_leaf:
        verdict, reason = CHANGES, "its transitions and actions no longer run; its leaves are listed by themselves"
    path, part = render_state(pairs.old, state), ("states", state.name)
    return Change("state", "removed", path, _describe(state), "", verdict, reason, old_part=part)


def _add(pairs: Pairs, state: StateOutline) -> Change:
    inside = any(pairs.new.outline.root != around.name for around in pairs.new.outline.lineage(state.name)[1:])
    region = inside and _is_region(pairs.new, state)
    verdict = CHANGES if region else COMPATIBLE
    reason = "instances in the state around it get this region" if region else "no instance stands in it"
    path, part = render_state(pairs.new, state), ("states", state.name)
    return Change("state", "added", path, "", _describe(state), verdict, reason, new_part=part)


def _is_region(version: VersionContent, state: StateOutline) -> bool:
    parent = version.outline.state(state.parent) if state.parent else None
    return parent is not None and parent.type == "parallel" and state.type != "history"


def _describe(state: StateOutline) -> str:
    kind = f"{state.history} history" if state.type == "history" else state.type
    return f"{state.name} ({kind})"


def _compare(pair: Pair, pairs: Pairs) -> Iterator[Change]:
    invokes = _match_invokes(pair, pairs)
    yield from _compare_name(pair, pairs)
    yield from _compare_kind(pair, pairs)
    yield from _compare_terms(pair, pairs)
    yield from _compare_actions(pair, pairs)
    yield from _compare_invokes(pair, pairs, invokes)
    yield from compare_transitions(pair, pairs, {old.id: new.id for old, new in invokes})


def _make(pair: Pair, pairs: Pairs, below: tuple[str | int, ...], *texts: str, **parts: Any) -> Change:
    """Make a change of a state. ``texts``: kind, verb, before, after, verdict, reason."""
    kind, verb, before, after, verdict, reason = texts
    path = render((*locate_state(pairs.new, pair.new), *below))
    ends = {"old_part": ("states", pair.old.name), "new_part": ("states", pair.new.name), "match": pair.match} | parts
    return Change(kind, verb, path, before, after, verdict, reason, **ends)


def _compare_name(pair: Pair, pairs: Pairs) -> Iterator[Change]:
    if pair.old.name == pair.new.name:
        return
    verdict, reason = NEEDS_MAPPING, f"it looks like the same state: {pair.why}"
    if pair.match == "path":
        verdict, reason = COMPATIBLE, "a plan finds it by its path; conditions and searches by the old name do not"
    elif pair.old.name == pairs.old.outline.root:
        verdict, reason = COMPATIBLE, "it is the machine itself"
    elif not pair.old.is_leaf:
        verdict, reason = CHANGES, f"conditions and searches by the old name no longer find it: {pair.why}"
    yield _make(pair, pairs, (), "state", "renamed", pair.old.name, pair.new.name, verdict, reason)


def _compare_kind(pair: Pair, pairs: Pairs) -> Iterator[Change]:
    old, new = pair.old, pair.new
    if (old.type, old.history) != (new.type, new.history):
        verdict, reason = CHANGES, "it is another kind of state"
        if (old.type == "final") != (new.type == "final"):
            verdict, reason = NEEDS_MAPPING, "instances in it would end, or live again"
        elif old.is_leaf:
            verdict, reason = COMPATIBLE, "instances in it enter the states inside by default"
        before, after = _describe(old), _describe(new)
        yield _make(pair, pairs, ("type",), "state", "changed", before, after, verdict, reason)
    roots = pairs.old.outline.root, pairs.new.outline.root
    around = [state.parent if state.parent not in roots else None for state in (old, new)]
    if pairs.map(around[0]) != around[1]:
        before, after = (f"in {name}" if name else "at the top" for name in around)
        reason = "the transitions of other states around it apply, and their actions run"
        yield _make(pair, pairs, (), "state", "changed", before, after, CHANGES, reason)


def _compare_terms(pair: Pair, pairs: Pairs) -> Iterator[Change]:
    """Compare what a state says beside its actions, invokes and transitions."""
    old, new = pair.old, pair.new
    entered = tuple(str(pairs.map(name)) for name in old.initial)
    ours, theirs = (
        version.programs[state.name] for version, state in ((pairs.old, old), (pairs.new, new))
    )  # fmt: skip
    if old.type == new.type != "parallel" and not (
        _starts_as_parent(pairs.old, old) and _starts_as_parent(pairs.new, new)
    ):
        starts = [freeze((part.get("initial") or part.get("default") or {}).get("actions")) for part in (ours, theirs)]
        if entered != new.initial or starts[0] != starts[1]:
            before, after, reason = ", ".join(old.initial), ", ".join(new.initial), "it is entered in another way"
            yield _make(pair, pairs, ("initial",), "state", "changed", before, after, CHANGES, reason)
    if freeze(ours.get("donedata")) != freeze(theirs.get("donedata")):
        reason = "its end gives other data"
        yield _make(pair, pairs, ("output",), "state", "changed", old.output, new.output, CHANGES, reason)
    if old.sla != new.sla:
        before, after = (format_duration(state.sla) if state.sla else "" for state in (old, new))
        reason = "instances are late at another time"
        yield _make(pair, pairs, ("sla",), "state", "changed", before, after, CHANGES, reason)
    for key, before, after in (
        ("description", old.description, new.description),
        ("tags", ", ".join(old.tags), ", ".join(new.tags)),
    ):
        if before != after:
            reason = "it is for people and searches"
            yield _make(pair, pairs, (key,), "state", "changed", before, after, COMPATIBLE, reason)


def _starts_as_parent(version: VersionContent, state: StateOutline) -> bool:
    """Tell whether a history state has the default of the state around it."""
    parent = version.outline.state(state.parent) if state.parent else None
    return state.type == "history" and parent is not None and parent.initial == state.initial


def _compare_actions(pair: Pair, pairs: Pairs) -> Iterator[Change]:
    ours, theirs = pairs.old.programs[pair.old.name], pairs.new.programs[pair.new.name]
    for key, old, new in (("entry", pair.old.entry, pair.new.entry), ("exit", pair.old.exit, pair.new.exit)):
        if freeze(ours.get(key)) != freeze(theirs.get(key)):
            verb = "added" if not old else "removed" if not new else "changed"
            word = "enter" if key == "entry" else "leave"
            reason = f"steps that {word} the state do something else; a move itself runs no actions"
            yield _make(pair, pairs, (key,), "action", verb, "; ".join(old), "; ".join(new), CHANGES, reason)


Matched = list[tuple[InvokeOutline, InvokeOutline]]


def _match_invokes(pair: Pair, pairs: Pairs) -> Matched:
    """Match the invokes of a state by id, then by what does the work."""
    found: Matched = []
    left = list(pair.new.invokes)
    for same in (lambda a, b: a.id == b.id, lambda a, b: _get_work(a) == _get_work(b)):
        taken = [old for old, _ in found]
        for old in [one for one in pair.old.invokes if one not in taken]:
            new = next((one for one in left if same(old, one)), None)
            if new is not None:
                found.append((old, new))
                left.remove(new)
    return found


def _get_work(invoke: InvokeOutline) -> tuple[str, str]:
    return invoke.src, invoke.machine


def _show_invoke(invoke: InvokeOutline) -> str:
    work = f"machine {invoke.machine}" if invoke.machine else f"{invoke.src} on {invoke.queue}"
    return f"{invoke.id}: {work}{f' with {invoke.input}' if invoke.input else ''}"


def _compare_invokes(pair: Pair, pairs: Pairs, matched: Matched) -> Iterator[Change]:
    olds, news = [old for old, _ in matched], [new for _, new in matched]
    for old in pair.old.invokes:
        if old not in olds:
            reason = "open jobs of it are withdrawn, children of it are stopped"
            yield _make(pair, pairs, ("invoke",), "invoke", "removed", _show_invoke(old), "", CHANGES, reason)
    codes = [
        {one["id"]: one for one in version.programs[state.name].get("invoke", ())}
        for version, state in ((pairs.old, pair.old), (pairs.new, pair.new))
    ]
    for old, new in matched:
        before, after = _show_invoke(old), _show_invoke(new)
        match = {"match": "id" if old.id == new.id else "shape"}
        if _get_work(old) != _get_work(new):
            reason = "other work is done: open jobs are withdrawn and new ones put on the queue"
            yield _make(pair, pairs, ("invoke",), "invoke", "changed", before, after, CHANGES, reason, **match)
            continue
        if old.id != new.id:
            verdict, reason = COMPATIBLE, "open jobs are kept under the new id"
            if old.machine:
                verdict, reason = CHANGES, "children under the old id are stopped, and others begin"
            yield _make(pair, pairs, ("invoke",), "invoke", "renamed", old.id, new.id, verdict, reason, **match)
        ours, theirs = ({k: v for k, v in codes[n][one.id].items() if k != "id"} for n, one in ((0, old), (1, new)))
        if freeze(ours) != freeze(theirs):
            named = sorted(key for key in {*ours, *theirs} if freeze(ours.get(key)) != freeze(theirs.get(key)))
            before, after = ("; ".join(f"{key}: {_show(part.get(key))}" for key in named) for part in (ours, theirs))
            reason = "new jobs are made with it; open jobs stay as they are"
            yield _make(pair, pairs, ("invoke",), "invoke", "changed", before, after, CHANGES, reason, **match)
    for new in pair.new.invokes:
        if new not in news:
            reason = "instances that stand here get a job or a child of it"
            yield _make(pair, pairs, ("invoke",), "invoke", "added", "", _show_invoke(new), CHANGES, reason)


def _show(value: Any) -> str:
    text = show(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
