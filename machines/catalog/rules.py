"""Applies the rules of a definition to people: transitions for certain groups, actions that need an approval.

The engine decides it, in the call that commits: a permit names the person behind the call. The functions here
are for pages, which show it before a person tries.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Unpack

from machines.connections import get_pattern
from machines.engine import BadInput, NeedsApproval, Permit, VersionRefused
from machines.engine.definitions import Outline
from machines.engine.definitions.outline import covers_action
from machines.engine.errors import UnknownMachine
from machines.patterns.locks import Locks
from machines.people import transition_groups
from machines.people.actor import Actor

from . import builtin_machines, version_rules
from .errors import ApprovalNeeded, SecondNeeded, SystemMachine
from .queries import every_outline
from .version_rules import Rule, RuleTerms

CHANGING = 60.0  # seconds for which one change of a machine's versions keeps others out


REMOVING = ("cancel", "skip")
"""Repairs that take a job away, or end it in place of its handler."""


def demand_open(machine: str) -> None:
    """Raise SystemMachine for a machine of the product: its own pages and services alone change its instances."""
    if machine in builtin_machines.NAMES:
        raise SystemMachine(machine)


def permit_of(actor: Actor) -> Permit | None:
    """Return what the engine holds the actor to; None for who is no person. One query, none for a superuser."""
    return Permit(transition_groups.groups_of(actor.user)) if actor.is_person else None


def groups_among(actor: Actor, outline: Outline) -> transition_groups.Groups:
    """Return the groups of a person, for a version that reserves a transition for some; None where nothing is closed to
    the actor. One query, none for a version without such transitions."""
    reserved = any(transition.allow for state in outline.states for transition in state.transitions)
    return transition_groups.groups_of(actor.user) if reserved and actor.is_person else None


def needs_approval(outlines: Iterable[Outline], action: str) -> bool:
    """Tell whether one of these versions asks for a second person. ``action``: a repair's name, or ``fire:<event>``."""
    return any(covers_action(named, action) for outline in outlines for named in outline.approval)


@dataclass(frozen=True, slots=True)
class VersionChange:
    """An operation on the versions of a machine that an actor is about to do. ``operation``: of
    ``version_rules.OPERATIONS``; ``turn``: of the versions that were looked at, None where Redis does not have the
    machine; ``rule``: by which it takes a second person."""

    operation: str
    machine: str
    turn: int | None
    rule: Rule | None

    def demand_turn(self, turn: int | None) -> None:
        """Raise VersionRefused where the versions are not those that the person looked at; ``turn``: None for any."""
        if turn is None or turn == self.turn:
            return
        now = f"a second person, by {self.rule}" if self.rule else "no second person any more"
        raise VersionRefused(
            self.machine,
            "the versions were changed since they were looked at, and nothing was done: read them again, and ask again;"
            f" {self.operation} takes {now}", code="SB630",
        )  # fmt: skip

    def demand_second(
        self, actor: Actor, second: str, *, action: str, asked: dict[str, Any], reason: str, hint: str, **more: Any
    ) -> None:
        """Raise ApprovalNeeded where the rule asks for a second person and nobody is one: ``second`` is the name of who
        approved it; the others are its arguments. An actor without an account cannot ask for an approval: SecondNeeded,
        with ``hint``."""
        if second or self.rule is None:
            return
        if not actor.is_person:
            raise SecondNeeded(self.machine, self.operation, self.rule, hint)
        raise ApprovalNeeded(
            self.machine, "", action, asked=asked | {"turn": self.turn}, reason=reason, rule=self.rule, **more
        )


def prepare_change(operation: str, machine: str, **terms: Unpack[RuleTerms]) -> VersionChange:
    """Read by which rule an operation takes a second person, and the turn of what that was read from. Raises
    VersionRefused for a version that is not published."""
    choice = version_rules.read_choice(machine)  # before the rules, so that the turn is never newer than these
    try:
        rule = version_rules.find_rule(operation, machine, **terms)
    except UnknownMachine as error:
        raise VersionRefused(machine, f"version {error.version} is not published", code="SB420") from None
    return VersionChange(operation, machine, None if choice is None else choice.turn, rule)


@contextmanager
def lock_versions(actor: Actor, *machines: str) -> Iterator[None]:
    """Let one actor at a time change which versions of these machines count, so that the rules that were read hold
    until it is done. Waits for others. Raises Taken."""
    locks = get_pattern(Locks)
    with ExitStack() as held:
        for name in sorted(set(machines)):
            key = hashlib.sha256(name.encode()).hexdigest()[:32]  # a name of a machine may be as long as that of a lock
            lock = locks.lock(f"publish.{key}", ttl=CHANGING, owner=actor.name)
            held.enter_context(lock.acquire(wait=CHANGING))
        yield


@contextmanager
def alone(actor: Actor, machine: str, action: str) -> Iterator[Permit | None]:
    """Make the permit of an action on jobs. ``action``: the repair that does the same.

    Raises SystemMachine for a repair that would end a job of the product's machines, BadInput where a version asks for
    a second person for that, and where the engine finds that the version of an instance does: no request could be filed
    for it.
    """
    if action in REMOVING and machine not in builtin_machines.WITHOUT_INSTANCES:
        demand_open(machine)
    if actor.is_person and needs_approval(every_outline(machine), action):
        raise _make_refusal(machine, action)
    try:
        yield Permit(None) if actor.is_person else None
    except NeedsApproval:
        raise _make_refusal(machine, action) from None


def _make_refusal(machine: str, action: str) -> BadInput:
    return BadInput(
        f"this applies {action} to the waiting instances, which needs approval by the definition of"
        f" {machine}: do it on the instance, or as a bulk action",
        code=ApprovalNeeded.code,
    )
