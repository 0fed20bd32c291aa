"""Decides which changes of a machine's versions take a second person.

Every operation that changes what new instances get, or which rules living ones obey, asks ``find_rule``. The strictest
of these decides: the current version, those in a roll-out and behind a pin, the version that the operation names, the
settings ``APPROVAL`` and ``VERSION_POLICY``, and the policy that people set for the machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypedDict, Unpack

from machines.conf import conf
from machines.conf.kinds import ANY
from machines.connections import get_engine
from machines.engine.definitions import Outline
from machines.engine.definitions.approval_terms import ApprovalTerms, find_terms, merge_terms
from machines.engine.definitions.outline import covers_action
from machines.engine.definitions.reading.machine_settings import VERSIONING
from machines.engine.errors import UnknownMachine
from machines.engine.versions.rollout.records import VersionChoice

from .models import Machine
from .queries import outline_of

ACTIONS = PUBLISH, MIGRATE = VERSIONING
"""Actions that a definition, a setting or a policy reserves for two."""

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
    found = [find_outside_rule(operation, machine), *_list_version_rules(operation, machine, **terms)]
    rules = [rule for rule in found if rule is not None]
    return replace(rules[0], terms=merge_terms(rule.terms for rule in rules)) if rules else None


def find_setting_terms(machine: str, names: Iterable[str]) -> ApprovalTerms:
    """Return the terms that the setting ``APPROVERS`` has for actions, on every machine and on this one."""
    return merge_terms(find_terms(conf.APPROVERS.get(scope, {}), names) for scope in (ANY, machine))


def find_outside_rule(operation: str, machine: str) -> Rule | None:
    """Return the rule that stands outside of the definition: in a setting, or in the policy of the machine."""
    sources = [
        ("the setting APPROVAL", conf.APPROVAL),
        ("the setting VERSION_POLICY", [*conf.VERSION_POLICY.get(ANY, ()), *conf.VERSION_POLICY.get(machine, ())]),
    ]
    if OPERATIONS[operation]:
        sources.append((f"the version policy of {machine}", read_policy(machine)))
    found = (Rule(name, source) for source, names in sources for name in ACTIONS if name in names)
    return next((rule for rule in found if rule.action in OPERATIONS[operation]), None)


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


def read_policy(machine: str) -> Sequence[str]:
    """Return the actions that people reserved for two on a machine; empty for one that the database does not have."""
    return Machine.objects.filter(name=machine).values_list("version_policy", flat=True).first() or []


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
