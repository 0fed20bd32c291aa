"""Errors of changes of a catalog, and of what its definitions reserve for two.

::

    SignalboxError
    ├── Forbidden
    │   └── NotAccepted   a definition reaches a machine that does not accept it, without a right on that one
    ├── ApprovalNeeded    the engine's NeedsApproval, or of a bulk, with all that ``approvals.ask`` files
    ├── DraftConflict     the base of a draft is no longer the current version
    ├── DraftClosed       a draft is published or discarded
    ├── DraftChanged      a draft is not the text that was looked at
    ├── SecondNeeded      an operation on versions takes a second person, and its actor has no account to ask with
    │   └── DraftNeeded   publishing this machine takes a second person, who looks at a draft
    ├── PlanInUse         a stored plan has moved instances, or is moving them
    ├── NotMigrated       a stored plan has moved nothing that could go back
    └── SystemMachine     the machine is the product's: its own pages and services change its instances
"""

from typing import Any

from machines.engine import BadInput, NeedsApproval, SignalboxError
from machines.people.permissions import Forbidden

from .version_rules import Rule


class NotAccepted(Forbidden):
    """A definition sends to a machine, or invokes it, that does not accept the sender, and its publisher has no right
    there. ``machine``: the receiver; ``sender``; ``path``: where the definition names it."""

    shown = ("sender", "path")

    def __init__(self, machine: str, sender: str, path: str) -> None:
        super().__init__("fire", machine)
        self.sender = sender
        self.path = path
        self.message = (
            f"{sender!r} sends to the machine {machine!r}, or invokes it, at {path}: that takes the right to fire or to"
            f' publish there as well, or "accepts": {{"from": ["{sender}"]}} in the definition of {machine!r}'
        )
        self.args = (self.message,)


class ApprovalNeeded(NeedsApproval):
    """The same with all that a request is filed from. ``name``: the action, ``delete`` or ``fire``; ``asked``: what it
    takes beside who and why; ``expect``: the revision that was looked at.

    ``bulk``: of a bulk that may not run yet, its id; ``id`` is "" then. Of a change of versions, ``target`` is what the
    audit names and ``rule`` what asks for the second person.
    """

    def __init__(  # noqa: PLR0913
        self, machine: str, id: str, action: str, *, asked: dict[str, Any], reason: str, expect: int | None = None,
        bulk: str = "", target: str = "", rule: Rule | None = None,
    ) -> None:  # fmt: skip
        self.asked = asked
        self.reason = reason
        self.expect = expect
        self.bulk = bulk
        self.target = target
        self.rule = rule
        super().__init__(
            machine, id, action, revision=expect, version=asked.get("definition"),
            transitions=asked.get("transitions", ()), subject=_name_subject(machine, id, bulk, target),
            by="" if rule is None else str(rule),
        )  # fmt: skip

    @property
    def name(self) -> str:
        return self.action.partition(":")[0]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"bulk": self.bulk} | ({} if self.rule is None else {"rule": str(self.rule)})


class DraftConflict(SignalboxError):
    """``base``: the version that the draft was made from, None for a new machine; ``current``: the one there is now."""

    code = "SB640"

    def __init__(self, draft: int, machine: str, base: int | None, current: int | None) -> None:
        super().__init__(
            f"draft {draft} of {machine!r} is based on {_name_version(base)}, and {_name_version(current)} is current:"
            " look at what changed and rebase the draft; nothing was published",
            draft=draft,
            machine=machine,
            base=base,
            current=current,
        )


class DraftClosed(SignalboxError):
    """``state``: what became of it."""

    code = "SB641"

    def __init__(self, draft: int, state: str) -> None:
        super().__init__(f"draft {draft} is {state}: save a new one", draft=draft, state=state)


class DraftChanged(SignalboxError):
    """``expected``, ``actual``: revisions of the draft, or None where its text was looked at for an approval."""

    code = "SB642"

    def __init__(self, draft: int, *, expected: int | None = None, actual: int | None = None) -> None:
        seen = "not the text that was to be approved" if expected is None else f"at revision {actual}, not {expected}"
        super().__init__(
            f"draft {draft} is {seen}: it changed meanwhile, and nothing was done. Look at it again",
            draft=draft,
            expected=expected,
            actual=actual,
        )


class SecondNeeded(SignalboxError):
    """``operation``: of ``version_rules``; ``rule``: what asks for a second person; ``hint``: what to
    do."""

    code = "SB644"

    def __init__(self, machine: str, operation: str, rule: Rule, hint: str) -> None:
        super().__init__(
            f"{operation} of {machine!r} needs the approval of a second person, by {rule}: {hint}; nothing was changed",
            machine=machine,
            operation=operation,
            rule=str(rule),
        )


class DraftNeeded(SecondNeeded):
    def __init__(self, machine: str, rule: Rule) -> None:
        hint = "save the definition as a draft and publish that (`machine sync --draft`, or --user NAME of the command)"
        super().__init__(machine, "publish", rule, hint)


class PlanInUse(SignalboxError):
    """``bulk``: the bulk action that moves instances by it."""

    code = "SB645"

    def __init__(self, plan: int, bulk: str, word: str) -> None:
        super().__init__(
            f"plan {plan} {word} by bulk action {bulk}: look at it there, or store the plan again", plan=plan, bulk=bulk
        )


class NotMigrated(SignalboxError):
    code = "SB646"

    def __init__(self, plan: int) -> None:
        super().__init__(f"plan {plan} has moved no instances: there is nothing to move back", plan=plan)


class SystemMachine(BadInput):
    """Nothing was done."""

    code = "SB449"

    def __init__(self, machine: str) -> None:
        super().__init__(
            f"{machine} is a machine of the product: its instances take no events, repairs, creation or deletion by"
            " hand; use the page or the operation for what they are (bulk actions, schedules, runs)",
            machine=machine,
        )


def _name_version(version: int | None) -> str:
    return "no version" if version is None else f"v{version}"


def _name_subject(machine: str, id: str, bulk: str, target: str) -> str:
    """Return the subject in place of an instance."""
    if bulk:
        return f"bulk {bulk} of {machine}"
    return "" if id else f"{target} of {machine}" if target else machine
