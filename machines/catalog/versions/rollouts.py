"""Which version new instances get: roll-outs, pins and withdrawn versions; and the figures of each version.

Changes take the right to publish on the machine; pinning one instance is a repair, and takes the right to operate.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Required, TypedDict, Unpack

from machines.audit.entries import AuditRecord
from machines.catalog import publishing, rules
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.models import Machine
from machines.catalog.version_rules import (
    ACTIONS,
    Policy,
    Rule,
    RuleTerms,
    find_rule,
    make_policy,
    read_policy,
    read_terms,
)
from machines.connections import get_engine
from machines.engine import (
    BadInput,
    Instance,
    Rollout,
    VersionFigures,
    VersionPin,
    VersionRefused,
    Withdrawal,
    arguments,
)
from machines.engine.definitions.approval_terms import merge_terms
from machines.engine.errors import UnknownMachine
from machines.engine.records import PartialList
from machines.engine.versions.rollout.records import VersionChoice
from machines.people import limits, permissions
from machines.people.actor import Actor
from machines.people.redaction import redacting, show_to

LEAST_EXPIRES = 5 * 60_000  # ms of a request to change a policy


def get(actor: Actor, machine: str) -> VersionChoice:
    """Return the roll-out of a machine. Raises Forbidden, UnknownMachine."""
    actor.demand("view", machine)
    return get_engine().version_choice(machine)


def figures(actor: Actor, machine: str, *, sample: int = 100) -> PartialList[VersionFigures]:
    """Count of each version: instances, created, refusals, dead jobs, time in state. They hold no data."""
    actor.demand("view", machine)
    return get_engine().version_figures(machine, sample=sample)


class ChangeTerms(TypedDict, total=False):
    """The terms of each change. ``expect``: the ``turn`` that was seen; ``second``: who approved it."""

    reason: Required[str]
    expect: int | None
    second: str


def start(
    actor: Actor, machine: str, version: int, percent: float, *, guard: Any = None, **terms: Unpack[ChangeTerms]
) -> Rollout | None:
    """Give a published version to so many per cent of the new instances. ``guard``: when that stops by itself. As the
    others here it raises Forbidden, VersionRefused, and ApprovalNeeded where it takes a second person."""
    asked = {"version": version, "percent": percent, "guard": guard}
    call = Call("rollout.start", asked, f"v{version}", action="rollout.set")
    with _record(actor, machine, call, versions=[version], **terms) as (entry, who):
        entry.note(percent=percent)
        return get_engine().start_rollout(machine, version, percent, guard=guard, **who)


def set_percent(
    actor: Actor, machine: str, percent: float, *, guard: Any = None, **terms: Unpack[ChangeTerms]
) -> Rollout | None:
    """Raise or lower the percentage; 100 finishes the roll-out, 0 stops it."""
    operation = "rollout.stop" if percent == 0 else "rollout.set"
    call = Call(operation, {"percent": percent, "guard": guard}, "", action="rollout.set")
    with _record(actor, machine, call, **terms) as (entry, who):
        entry.note(percent=percent)
        return get_engine().set_rollout(machine, percent, guard=guard, **who)


def stop(actor: Actor, machine: str, **terms: Unpack[ChangeTerms]) -> Rollout | None:
    """Give new instances the base version again. It takes one person: it is the brake."""
    with _record(actor, machine, Call("rollout.stop", {}, ""), **terms) as (_, who):
        return get_engine().stop_rollout(machine, **who)


def finish(actor: Actor, machine: str, **terms: Unpack[ChangeTerms]) -> None:
    """Make the version that is rolled out the current one."""
    with _record(actor, machine, Call("rollout.finish", {}, ""), **terms) as (_, who):
        get_engine().finish_rollout(machine, **who)


def pin(actor: Actor, machine: str, version: int | None, **terms: Unpack[ChangeTerms]) -> VersionPin | None:
    """Keep a version current whatever is published; None takes that back."""
    operation, target = ("version.unpin", "") if version is None else ("version.pin", f"v{version}")
    call = Call(operation, {"version": version}, target, action="version.pin")
    with _record(actor, machine, call, versions=() if version is None else [version], **terms) as (entry, who):
        entry.note(pinned=version is not None)
        return get_engine().pin(machine, version, **who)


def make_current(actor: Actor, machine: str, version: int, *, reason: str) -> None:
    """Make an older version current as its instances go back, and keep it so: a pin, since programs that publish at
    their start would make the newer one current again. Stops a roll-out first, also where the pin then takes a second
    person."""
    rollout = get_engine().rollout(machine)
    if rollout is not None and rollout.under_way:
        stop(actor, machine, reason=reason)
    pin(actor, machine, version, reason=reason)


def gives_others(machine: str, version: int) -> bool:
    """Tell whether new instances get other versions than this one."""
    engine = get_engine()
    rollout = engine.rollout(machine)
    return engine.live(machine).version != version or (rollout is not None and rollout.under_way)


def withdraw(
    actor: Actor, machine: str, version: int, *, withdrawn: bool = True, instead: int | None = None,
    **terms: Unpack[ChangeTerms],
) -> Withdrawal | None:  # fmt: skip
    """Let no new instance have a version, and no plan lead to it; with ``withdrawn=False`` take that back. ``instead``:
    the version that becomes current in place of a current one."""
    operation = "version.withdraw" if withdrawn else "version.allow"
    asked = {"version": version, "withdrawn": withdrawn, "instead": instead}
    call = Call(operation, asked, f"v{version}", action="version.withdraw")
    versions = [version] if instead is None else [version, instead]
    with _record(actor, machine, call, versions=versions, **terms) as (entry, who):
        entry.note(withdrawn=withdrawn, **({} if instead is None else {"instead": instead}))
        return get_engine().withdraw_version(machine, version, withdrawn, instead=instead, **who)


def set_policy(
    actor: Actor, machine: str, actions: Sequence[str], *, approvers: Policy | None = None,
    was: Policy | Sequence[str] | None = None, **terms: Unpack[ChangeTerms],
) -> Policy:  # fmt: skip
    """Say which actions on the versions of a machine take a second person, whatever its definition says. Where any rule
    holds already, changing this takes one, too, also to relax it. ``approvers``: who approves each, as in a definition;
    ``was``: the policy that was approved to change."""
    policy = approvers or {}
    wanted = {name: policy.get(name, {}) for name in ACTIONS if name in actions}
    asked = {"actions": list(wanted), "approvers": policy, "was": read_policy(machine)}
    call = Call("version.policy", asked, "")
    actor.demand("publish", machine, action="version.policy")  # nobody else learns which groups there are
    _check_policy(actor, machine, actions, policy)
    with _record(actor, machine, call, **terms) as (entry, _):
        before = read_policy(machine)
        entry.note(before=before, after=wanted)
        arguments.require_reason(terms["reason"])
        if was is not None and make_policy(was) != before:
            raise VersionRefused(machine, "the version policy was changed meanwhile: ask again", code="SB630")
        publishing.adopt(machine)
        Machine.objects.filter(name=machine).update(version_policy=wanted)
    return wanted


def _check_policy(actor: Actor, machine: str, actions: Sequence[str], terms: Policy) -> None:
    """Raise BadInput for what is no policy, and for one that too few could change again."""
    if unknown := [name for name in (*actions, *terms) if name not in ACTIONS]:
        raise BadInput(f"a version policy names {' and '.join(ACTIONS)}, not {unknown[0]!r:.60}")
    if unused := [name for name in terms if name not in actions]:
        raise BadInput(f"approvers names {unused[0]}, which is not among the actions")
    merged = merge_terms(read_terms(terms).values())
    if merged.expires is not None and merged.expires < LEAST_EXPIRES:
        raise BadInput("expires is 5 minutes or more: within less, nobody could approve a change of the policy")
    if empty := permissions.find_empty_groups(merged.groups):
        raise BadInput(f"nobody is in the group {empty[0]!r:.60}: add its members first")
    if merged.groups or merged.quorum > 1:
        found = permissions.count_approvers(merged.groups, machine, actor.id, merged.quorum)
        if found < merged.quorum:
            people = " and ".join(merged.groups) or "this site"
            raise BadInput(f"quorum {merged.quorum} is out of reach: beside you, {found} of {people} could approve")


def find_rules(machine: str) -> list[Rule]:
    """List what asks for a second person on a machine now: one rule for each action at most."""
    found = (find_rule(name, machine) for name in ACTIONS)
    return [rule for rule in found if rule is not None]


def demand_turn(machine: str, operation: str, asked: Mapping[str, Any]) -> None:
    """Raise VersionRefused where the versions are not those for which an approval was asked."""
    rules.prepare_change(operation, machine).demand_turn(asked.get("turn"))


def pin_instance(
    actor: Actor, machine: str, id: str, pinned: bool = True, *, reason: str, expect: int | None = None,
    key: str | None = None,
) -> Instance:  # fmt: skip
    """Keep an instance in its version: no plan moves it. With ``pinned=False`` take that back. Raises Forbidden,
    TooFast, and what repairs raise."""
    about = {"machine": machine, "instance": id, "target": "pin" if pinned else "unpin", "reason": reason}
    limits.spend_rate(actor, "version.pin", **about)
    with redacting(actor, machine), actor.records("version.pin", **about) as entry:
        actor.demand("operate", machine)
        who: dict[str, Any] = {"actor": actor.name, "reason": reason, "permit": rules.permit_of(actor)}
        after = get_engine().pin_instance(machine, id, pinned, expect=expect, key=key, **who)
        entry.note(pinned=pinned, revision=after.revision)
    return show_to(actor, after)


@dataclass(frozen=True, slots=True)
class Call:
    """A change of the versions. ``operation``: of ``version_rules``; ``asked``: what its function takes beside who and
    why; ``target``, ``action``: of the audit."""

    operation: str
    asked: dict[str, Any]
    target: str
    action: str = ""


@contextmanager
def _record(
    actor: Actor, machine: str, call: Call, *, reason: str, expect: int | None = None, second: str = "",
    **about: Unpack[RuleTerms],
) -> Iterator[tuple[AuditRecord, dict[str, Any]]]:  # fmt: skip
    """Ask for the right and for a second person, record the change, and bring the database up to date with what is
    current now."""
    with actor.records(call.action or call.operation, machine=machine, target=call.target, reason=reason) as entry:
        actor.demand("publish", machine)
        if second:
            entry.note(approved_by=second)
        arguments.check_machine(machine)
        with rules.lock_versions(actor, machine):
            change = rules.prepare_change(call.operation, machine, **about)
            if change.turn is None:
                raise UnknownMachine(machine)
            change.demand_turn(expect)
            try:
                change.demand_second(
                    actor, second, action=call.operation, asked=call.asked, reason=reason, target=call.target,
                    hint="ask for it in the room, with an account",
                )  # fmt: skip
            except ApprovalNeeded:  # the request has an entry of its own
                entry.void()
                raise
            # The rules were read of this turn: what a program changes in between is a conflict.
            yield entry, {"expect": change.turn, "actor": actor.name, "reason": reason}
            publishing.adopt(machine)


CHANGES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "rollout.start": start,
        "rollout.set": set_percent,
        "rollout.finish": finish,
        "version.pin": pin,
        "version.unpin": pin,
        "version.withdraw": withdraw,
        "version.allow": withdraw,
        "version.policy": set_policy,
    }
)
"""The function of each operation that a second person may have to approve: what a request for one is carried out by."""
