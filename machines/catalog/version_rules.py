"""Decides which changes of a machine's versions take a second person.

Every operation that changes what new instances get, or which rules living ones obey, asks ``find_rule``. The strictest
of these decides: the current version, those in a roll-out and behind a pin, the version that the operation names, the
settings ``APPROVAL`` and ``VERSION_POLICY``, and the policy that people set for the machine.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

from machines.conf import conf
from machines.conf.kinds import ANY
from machines.connections import get_engine
from machines.engine.definitions import Outline
from machines.engine.definitions.approval_terms import ApprovalTerms, find_terms, merge_terms
from machines.engine.definitions.findings import Report
from machines.engine.definitions.outline import covers_action
from machines.engine.definitions.place import Place
from machines.engine.definitions.reading.approvers import read_approvers
from machines.engine.definitions.reading.machine_settings import VERSIONING
from machines.engine.errors import BadInput, UnknownMachine
from machines.engine.versions.rollout.records import VersionChoice

from .models import Machine
from .queries import outline_of

ACTIONS = PUBLISH, MIGRATE = VERSIONING
"""Actions that a definition, a setting or a policy reserves for two."""

Policy = dict[str, dict[str, Any]]
"""Action that takes a second person -> who approves it, as `approvers` of a definition says it."""

OPERATIONS: Mapping[str, Collection[str]] = MappingProxyType(
    {
        "publish": {PUBLISH},
        "sync": {PUBLISH},
        "import": {PUBLISH},
        "rollout.start": {PUBLISH},
        "rollout.set": {PUBLISH},
        "rollout.finish": {PUBLISH},
        "rollout.stop": (),  # the brake: new instances get the version again that is current for all others
        "version.pin": {PUBLISH},
        "version.unpin": {PUBLISH},
        "version.withdraw": {PUBLISH},
        "version.allow": {PUBLISH},
        "version.policy": {PUBLISH, MIGRATE},
        "migrate": {MIGRATE},
    }
)
"""Each operation with the actions of which any, where it is reserved, makes the operation take a second person."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What asks for a second person. ``action``: as it is named there; ``source``: where that is; ``terms``: who
    approves, by this rule and the others that hold."""

    action: str
    source: str
    terms: ApprovalTerms = field(default_factory=ApprovalTerms)

    def __str__(self) -> str:
        return f"{self.action!r} in {self.source}"


class RuleTerms(TypedDict, total=False):
    """What an operation is about. ``versions``: published ones that it makes count; ``definition``: one that it
    publishes, which does not decide about the first version of its machine; ``moves``: from which version to which
    instances are moved."""

    versions: Iterable[int]
    moves: Iterable[tuple[int, int]]
    definition: Outline | None


def find_rule(operation: str, machine: str, **terms: Unpack[RuleTerms]) -> Rule | None:
    """Return the rule by which an operation takes a second person, None where there is none. Raises UnknownMachine for
    a version that is not published."""
    rules = [*_list_outside_rules(operation, machine), *_list_version_rules(operation, machine, **terms)]
    return replace(rules[0], terms=merge_terms(rule.terms for rule in rules)) if rules else None


def find_setting_terms(machine: str, names: Iterable[str]) -> ApprovalTerms:
    """Return the terms that the setting ``APPROVERS`` has for actions, on every machine and on this one."""
    return merge_terms(find_terms(conf.APPROVERS.get(scope, {}), names) for scope in (ANY, machine))


def find_outside_rule(operation: str, machine: str) -> Rule | None:
    """Return the rule that stands outside of the definition: in a setting, or in the policy of the machine."""
    return next(_list_outside_rules(operation, machine), None)


def _list_outside_rules(operation: str, machine: str) -> Iterator[Rule]:
    wanted = [name for name in ACTIONS if name in OPERATIONS[operation]]
    sources = [
        ("the setting APPROVAL", conf.APPROVAL),
        ("the setting VERSION_POLICY", [*conf.VERSION_POLICY.get(ANY, ()), *conf.VERSION_POLICY.get(machine, ())]),
    ]
    for source, names in sources:
        yield from (Rule(name, source) for name in wanted if name in names)
    terms = read_terms(read_policy(machine)) if wanted else {}
    yield from (Rule(name, f"the version policy of {machine}", terms[name]) for name in wanted if name in terms)


def find_version_rule(operation: str, machine: str, **terms: Unpack[RuleTerms]) -> Rule | None:
    """Return the rule that a definition has; see ``find_rule``."""
    return next(_list_version_rules(operation, machine, **terms), None)


def _list_version_rules(operation: str, machine: str, **terms: Unpack[RuleTerms]) -> Iterator[Rule]:
    wanted, moves, definition = OPERATIONS[operation], list(terms.get("moves", ())), terms.get("definition")
    if not wanted:
        return
    counted = _list_counted(machine)
    named = counted | set(terms.get("versions", ())) | {number for move in moves for number in move}
    outlines = {number: outline_of(machine, number) for number in sorted(named)}
    found = [(f"version {number} of {machine}", outline) for number, outline in outlines.items()]
    if definition is not None and counted:
        found.append((f"the definition of {machine} that is to be published", definition))
    for source, outline in found:
        for name in outline.approval:
            if name in wanted:
                yield Rule(name, source, find_terms(outline.approvers, [name]))
    yield from _find_losses(machine, moves, outlines)


def read_policy(machine: str) -> Policy:
    """Return the policy that people set for a machine; empty for one that the database does not have."""
    return make_policy(Machine.objects.filter(name=machine).values_list("version_policy", flat=True).first() or {})


def make_policy(stored: Mapping[str, Any] | Iterable[str]) -> Policy:
    """Return a policy as it is stored; of former releases that is the names of the actions."""
    return dict(stored) if isinstance(stored, Mapping) else {name: {} for name in stored}


def read_terms(policy: Policy) -> dict[str, ApprovalTerms]:
    """Return who approves each action of a policy. Raises BadInput."""
    report = Report()
    found = read_approvers(Place(policy, ("approvers",), report), ACTIONS)
    for finding in report.findings():
        raise BadInput(f"{finding.path}: {finding.message}")
    return found


def read_choice(machine: str) -> VersionChoice | None:
    """Return which version new instances get; None where Redis does not have the machine."""
    try:
        return get_engine().version_choice(machine)
    except UnknownMachine:
        return None


def _list_counted(machine: str) -> set[int]:
    """List the versions that count now; by SQL where Redis has lost the machine, none for a new machine."""
    choice = read_choice(machine)
    if choice is not None:
        return choice.versions
    return set(Machine.objects.filter(name=machine).values_list("current", flat=True))


def _find_losses(machine: str, moves: Iterable[tuple[int, int]], outlines: Mapping[int, Outline]) -> Iterator[Rule]:
    """Find what the instances of one version need a second person for, and those of the version they move to do not."""
    for old, new in moves:
        for name in outlines[old].approval:
            kept = [one for one in outlines[new].approval if covers_action(one, name)]
            terms = find_terms(outlines[old].approvers, [name])
            if not kept or find_terms(outlines[new].approvers, kept).is_weaker(terms):
                yield Rule(name, f"version {old} of {machine}, which version {new} does not ask for", terms)
