"""Makes a plan from two or more versions of a machine, and compares a stored plan with them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from machines.engine.definitions import Finding, quote, render
from machines.engine.definitions.findings import Report
from machines.engine.errors import PlanError
from machines.engine.versions.content import VersionContent

from . import checks
from .document import PlanOptions, check_options, make_plan_finding
from .mapping import Targets, map_version
from .plan import MigrationPlan, SourcePlan

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
        wrong = list(checks.check_targets(name, targets or (), to, report)) if _needs_check(name, sources) else []
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
        findings += checks.check_source(part, old, to, report)
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
            findings += broken or checks.check_source(source, old, new, report)
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
        yield from checks.check_targets(name, targets, new, report)
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
