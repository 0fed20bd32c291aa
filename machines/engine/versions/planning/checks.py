"""Checks a plan against the versions that it is for. Each check returns findings; nothing is raised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from machines.engine.definitions import Finding, Outline, quote, render
from machines.engine.definitions.fields import describe_types as describe_declared
from machines.engine.definitions.findings import Report
from machines.engine.definitions.outline import is_match
from machines.engine.versions.content import MOST_CONFIGURATIONS, VersionContent

from . import values
from .document import make_plan_finding
from .mapping import find_regions_around
from .plan import SourcePlan

NAMES_SHOWN = 8


def check_targets(name: str, targets: tuple[str, ...], new: VersionContent, report: Report) -> Iterator[Finding]:
    """Check what a state was explicitly mapped to."""
    path = render(("states", name))
    known = True
    for target in targets:
        state = new.outline.state(target)
        if state is None:
            known = False
            hint = report.suggestions.hint(target, new.names)
            yield make_plan_finding("SB602", path, f"version {new.number} has no state {quote(target)}", hint)
        elif state.type == "history":
            known = False
            parent = quote(state.parent or "")
            message = f"{quote(target)} of version {new.number} is a history state: no instance rests in it"
            yield make_plan_finding("SB602", path, message, f"name the state around it, {parent}, or one inside")
    if known and targets:
        conflict = new.enter(targets).conflict
        if conflict:
            one, other = map(quote, conflict)
            message = f"{one} and {other} of version {new.number} cannot be active at once"
            yield make_plan_finding("SB603", path, message, "name one state for each region of a parallel state")


def check_source(source: SourcePlan, old: VersionContent, new: VersionContent, report: Report) -> Iterator[Finding]:
    """Check one part of a plan: its states, configurations, data and events."""
    yield from _check_unmapped(source, old, new)
    yield from _check_ends(source, old, new)
    yield from _check_configurations(source, old, new)
    yield from check_data(source.data, old, new, report)
    yield from _check_conversions(source, old, new)
    yield from _check_events(old, new)


def _check_unmapped(source: SourcePlan, old: VersionContent, new: VersionContent) -> Iterator[Finding]:
    best: dict[str, str] = {}
    for name, target, score, why in source.suggestions:
        best.setdefault(name, f"perhaps {quote(target)} ({score:.2f}: {why})")
    around = find_regions_around(old, new) if source.unmapped_states else {}
    for name in source.unmapped_states:
        near = f"map it to {quote(around[name])}, the state around it" if name in around else ""
        message = f"{quote(name)} of version {source.version} has no place in version {source.to}"
        yield make_plan_finding("SB607", render(("states", name)), message, near or best.get(name, ""))


def _check_ends(source: SourcePlan, old: VersionContent, new: VersionContent) -> Iterator[Finding]:
    """Report living states that map to final ones, and final states that map to living ones."""
    for name, targets in source.states.items():
        ended = [_is_final(new.outline, target) for target in targets]
        path, to = render(("states", name)), ", ".join(map(quote, targets))
        if _is_final(old.outline, name) and not all(ended):
            message = f"{quote(name)} of version {old.number} is final and {to} is not: finished instances are refused"
            yield make_plan_finding("SB608", path, message, "map it to a final state")
        elif not _is_final(old.outline, name) and all(ended):
            message = f"{to} is final and {quote(name)} of version {old.number} is not: these instances may end"
            yield make_plan_finding("SB608", path, message)


def _is_final(outline: Outline, name: str) -> bool:
    state = outline.state(name)
    return state is not None and state.type == "final"


def _check_configurations(source: SourcePlan, old: VersionContent, new: VersionContent) -> Iterator[Finding]:
    """Enter the places of all configurations of several leaves, and report those that exclude each other: as an error
    where no configuration of a parallel state has a place."""
    tried: dict[str, int] = {}
    failed: dict[str, list[tuple[tuple[str, ...], tuple[str, str]]]] = {}
    for leaves in old.configurations:
        if not all(leaf in source.states for leaf in leaves):
            continue
        around = _find_outermost_parallel(old.outline, leaves[0])
        tried[around] = tried.get(around, 0) + 1
        conflict = new.enter(dict.fromkeys(to for leaf in leaves for to in source.states[leaf])).conflict
        if conflict:
            failed.setdefault(around, []).append((leaves, conflict))
    cut = len(old.configurations) >= MOST_CONFIGURATIONS
    for around, found in failed.items():
        leaves, conflict = found[0]
        one, other = map(quote, conflict)
        every = len(found) == tried[around] and not cut
        which = "every configuration" if every else f"{len(found)} of {tried[around]} configurations"
        message = (
            f"{which} of {quote(around)} in version {old.number} would stand in states that exclude each other:"
            f" {', '.join(leaves)} in {one} and {other}"
        )
        hint = "map the states of its regions to one state, or to one in each region"
        yield make_plan_finding("SB603" if every else "SB608", render(("states", around)), message, hint)


def _find_outermost_parallel(outline: Outline, leaf: str) -> str:
    found = [state.name for state in outline.lineage(leaf) if state.type == "parallel"]
    return found[-1] if found else leaf


def check_data(data: Mapping[str, Any], old: VersionContent, new: VersionContent, report: Report) -> Iterator[Finding]:
    """Check the expressions: they are readable, name fields of the old version, and give what the new field holds."""
    for name, text in data.items():
        if name not in new.fields:
            continue
        path, value, wanted = render(("data", name)), values.compile_value(text), new.fields[name]
        faults = list(value.faults) or list(values.check_uses(value, old, report))
        if faults:
            yield from (make_plan_finding("SB605", path, message, hint) for message, hint in faults)
            continue
        types, wrong = values.infer_types(value, old)
        for message in wrong:
            yield make_plan_finding("SB605", path, f"{message}, in version {old.number}")
        verdict = values.judge_types(types, wanted)
        if verdict:
            said = f"{quote(name)} is {describe_declared(wanted.types)}, the value {values.describe_types(types)}"
            code, so = ("SB605", "") if verdict == "never" else ("SB608", ": an instance where it is not is refused")
            yield make_plan_finding(code, path, f"{said}, from version {old.number}{so}")


def _check_conversions(source: SourcePlan, old: VersionContent, new: VersionContent) -> Iterator[Finding]:
    for name, of in source.fields.items():
        before, after = old.fields[of], new.fields[name]
        if values.can_fail(before, after):
            one, other = describe_declared(before.types), describe_declared(after.types)
            message = (
                f"{quote(name)} is {one} in version {old.number} and {other} in version {new.number}:"
                " an instance whose value cannot be converted is refused"
            )
            hint = f"give an expression for it: data={{{quote(name)}: ...}}"
            yield make_plan_finding("SB608", render(("data", name)), message, hint)


def _check_events(old: VersionContent, new: VersionContent) -> Iterator[Finding]:
    """Report events of the old version that the new one takes nowhere: held messages or delayed sends may have them."""
    descriptors = {event for state in new.outline.states for t in state.transitions for event in t.events}
    known = set(new.program.get("known", ())) | descriptors
    patterns = [one for one in known if one == "*" or one.endswith(".*")]
    lost = [
        event
        for event in old.program.get("known", ())
        if event not in known and not any(is_match(pattern, event) for pattern in patterns)
    ]
    if lost:
        named = ", ".join(map(quote, lost[:NAMES_SHOWN])) + (" …" if len(lost) > NAMES_SHOWN else "")
        message = f"version {new.number} knows no event {named}: held messages and delayed sends of it have no effect"
        yield make_plan_finding("SB609", render(("versions", old.number)), message)
