"""Makes a plan from two or more versions of a machine, and compares a stored plan with them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from machines.engine.definitions import Finding, Outline, quote, render
from machines.engine.definitions.checks.types import describe_types
from machines.engine.definitions.fields import describe_types as describe_declared
from machines.engine.definitions.findings import Report
from machines.engine.definitions.outline import is_match
from machines.engine.errors import PlanError
from machines.engine.versions.content import MOST_CONFIGURATIONS, VersionContent

from . import document
from .document import PlanOptions, check_options, make_plan_finding
from .mapping import Targets, find_regions_around, map_version
from .plan import MigrationPlan, SourcePlan

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
        path, value, wanted = render(("data", name)), document.compile_value(text), new.fields[name]
        faults = list(value.faults) or list(document.check_uses(value, old, report))
        if faults:
            yield from (make_plan_finding("SB605", path, message, hint) for message, hint in faults)
            continue
        types, wrong = document.infer_types(value, old)
        for message in wrong:
            yield make_plan_finding("SB605", path, f"{message}, in version {old.number}")
        verdict = document.judge_types(types, wanted)
        if verdict:
            said = f"{quote(name)} is {describe_declared(wanted.types)}, the value {describe_types(types)}"
            code, so = ("SB605", "") if verdict == "never" else ("SB608", ": an instance where it is not is refused")
            yield make_plan_finding(code, path, f"{said}, from version {old.number}{so}")


def _check_conversions(source: SourcePlan, old: VersionContent, new: VersionContent) -> Iterator[Finding]:
    for name, of in source.fields.items():
        before, after = old.fields[of], new.fields[name]
        if document.can_fail(before, after):
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


Explicit = dict[str, Targets | None]


def make_plan(
    machine: str,
    to: VersionContent,
    sources: Sequence[VersionContent],
    *,
    states: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    unmapped: str = "refuse",
    options: PlanOptions | None = None,
) -> MigrationPlan:
    """Make a plan. Raises PlanError with all findings, and with the plan as far as it could be made, where one is an
    error."""
    report, options = Report(), options or PlanOptions()
    findings = list(_check_arguments(to, sources, states, data, unmapped, options, report))
    states = states if isinstance(states, Mapping) else {}
    data = {name: value for name, value in data.items() if name in to.fields} if isinstance(data, Mapping) else {}
    given = {
        name: read_targets(value, to) for name, value in states.items() if isinstance(name, str) and _is_sound(value)
    }
    sound: Explicit = {}
    for name, targets in given.items():
        wrong = list(check_targets(name, targets or (), to, report)) if _needs_check(name, sources) else []
        findings += wrong
        if not wrong:
            sound[name] = targets
    findings += _check_names(given, sources, to, report)
    parts = []
    for old in sources:
        if old.number == to.number:
            continue
        part = map_version(old, to, _narrow(sound, old), data, keeps_removed=options.removed == "keep")
        parts.append(part)
        findings += check_source(part, old, to, report)
    plan = MigrationPlan(machine, to.number, unmapped, tuple(parts), tuple(findings), options.as_dict())
    if any(finding.is_error for finding in findings):
        raise PlanError(f"the plan for {machine} v{to.number} cannot be made", findings, plan=plan)
    return plan


def _check_arguments(
    to: VersionContent,
    sources: Sequence[VersionContent],
    states: Any,
    data: Any,
    unmapped: str,
    options: PlanOptions,
    report: Report,
) -> Iterator[Finding]:
    for name, message, hint in check_options(unmapped, options.as_dict()):
        yield make_plan_finding("SB600", name, message, hint)
    if not sources:
        yield make_plan_finding("SB601", "from_versions", f"no version beside {to.number} is published")
    if any(old.number == to.number for old in sources):
        yield make_plan_finding("SB601", "from_versions", f"version {to.number} is the one to move to")
    for name, found in (("states", states), ("data", data)):
        if found is not None and not isinstance(found, Mapping):
            yield make_plan_finding("SB600", name, f"expected an object, found {type(found).__name__}")
    for name, value in states.items() if isinstance(states, Mapping) else ():
        if not isinstance(name, str) or not _is_sound(value):
            message = "expected the name of a state, a list of names (one for each region), or null for no place"
            yield make_plan_finding("SB600", render(("states", str(name))), message)
    for name in data if isinstance(data, Mapping) else ():
        if name not in to.fields:
            message = f"version {to.number} has no data field {quote(str(name))}"
            hint = report.suggestions.hint(str(name), to.fields)
            yield make_plan_finding("SB604", render(("data", str(name))), message, hint)


def _is_sound(value: Any) -> bool:
    several = isinstance(value, list | tuple) and bool(value) and all(isinstance(one, str) for one in value)
    return value is None or (isinstance(value, str) and bool(value)) or several


def read_targets(value: Any, new: VersionContent) -> Targets | None:
    """Return the names of what a state was mapped to; a path stands for the state that it leads to."""
    if value is None:
        return None
    named = [value] if isinstance(value, str) else list(value)
    return tuple(dict.fromkeys(found.name if (found := new.find(name)) else name for name in named))


def _needs_check(name: str, sources: Sequence[VersionContent]) -> bool:
    """Tell whether a state is mapped as a state: a history state maps to another one."""
    found = [state for old in sources if (state := old.find(name)) is not None]
    return not found or any(state.type != "history" for state in found)


def _check_names(
    given: Explicit, sources: Sequence[VersionContent], to: VersionContent, report: Report
) -> Iterator[Finding]:
    """Check the names that are mapped, and that history states are mapped to history states."""
    known = list(dict.fromkeys(name for old in sources for name in old.names))
    numbers = ", ".join(str(old.number) for old in sources)
    for name, targets in given.items():
        path = render(("states", name))
        if all(old.find(name) is None for old in sources):
            yield make_plan_finding(
                "SB602", path, f"version {numbers} has no state {quote(name)}", report.suggestions.hint(name, known)
            )
        elif not _needs_check(name, sources) and targets is not None:
            found = [to.outline.state(target) for target in targets]
            if len(found) > 1 or found[0] is None or found[0].type != "history":
                histories = [state.name for state in to.outline.states if state.type == "history"]
                message = f"{quote(name)} is a history state, and {quote(targets[0])} of version {to.number} is none"
                hint = f"name one of {', '.join(histories[:8])}" if histories else "map it to null"
                yield make_plan_finding("SB602", path, message, hint)


def _narrow(given: Explicit, old: VersionContent) -> Explicit:
    """Return what is given for the states of one version, by name."""
    found = {name: state.name for name in given if (state := old.find(name)) is not None}
    return {name: given[key] for key, name in found.items()}


def check_plan(plan: MigrationPlan, versions: Mapping[int, VersionContent]) -> list[Finding]:
    """Compare a plan with the versions that are published now, and return all findings: stale parts, and all that
    ``make_plan`` would report. ``versions``: those that were found, by number."""
    report = Report()
    findings: list[Finding] = []
    for source in plan.sources:
        stale = list(_check_stale(source, versions))
        findings += stale
        if not stale:
            old, new = versions[source.version], versions[source.to]
            broken = list(_check_parts(source, old, new, report))
            findings += broken or check_source(source, old, new, report)
    return list(dict.fromkeys(findings))


def _check_stale(source: SourcePlan, versions: Mapping[int, VersionContent]) -> Iterator[Finding]:
    for number, digest in ((source.version, source.digest), (source.to, source.to_digest)):
        found = versions.get(number)
        if found is None:
            yield make_plan_finding("SB606", f"versions[{number}]", f"version {number} is not published any more")
        elif found.digest != digest:
            message = f"version {number} has the digest {found.digest}, the plan was made for {digest}"
            yield make_plan_finding("SB606", f"versions[{number}]", message, "make the plan anew")


def _check_parts(source: SourcePlan, old: VersionContent, new: VersionContent, report: Report) -> Iterator[Finding]:
    """Check that all names in the maps of a stored plan are those of its versions."""
    for name, targets in source.states.items():
        yield from _check_known(("states", name), name, old.outline.leaves, "leaf state", old, report)
        yield from check_targets(name, targets, new, report)
    for name, target in source.histories.items():
        for one, version in ((name, old), (target, new)):
            known = [state.name for state in version.outline.states if state.type == "history"]
            yield from _check_known(("histories", name), one, known, "history state", version, report)
    for event, (other, state) in source.timers.items():
        yield from _check_known(("timers", event), event, old.timers, "timer", old, report)
        yield from _check_known(("timers", event), other, new.timers, "timer", new, report)
        if other in new.timers and new.timers[other].state != state:
            message = f"the timer {quote(other)} of version {new.number} is not one of {quote(state)}"
            yield make_plan_finding("SB602", render(("timers", event)), message)
    for id, other in source.invokes.items():
        yield from _check_known(("invokes", id), id, old.invokes, "invoke", old, report)
        yield from _check_known(("invokes", id), other, new.invokes, "invoke", new, report)
    for name, of in source.fields.items():
        yield from _check_known(("fields", name), name, new.fields, "data field", new, report, "SB604")
        yield from _check_known(("fields", name), of, old.fields, "data field", old, report, "SB604")
    for name in source.data:
        yield from _check_known(("data", name), name, new.fields, "data field", new, report, "SB604")


def _check_known(
    path: tuple[str, ...],
    name: str,
    known: Any,
    what: str,
    version: VersionContent,
    report: Report,
    code: str = "SB602",
) -> Iterator[Finding]:
    if name not in known:
        message = f"version {version.number} has no {what} {quote(name)}"
        yield make_plan_finding(code, render(path), message, report.suggestions.hint(name, list(known)))
