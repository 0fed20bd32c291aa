"""What is done to one instance: events, repairs, a new one. Reading them is in ``reading``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from machines import allowing, masking
from machines.auditing import Deed
from machines.connections import get_engine
from machines.engine import BadInput, Conflict, Engine, Explanation, Instance, Preview
from machines.engine.repairing import ASKED
from machines.outlines import outline_of

from . import pacing, rules
from .actor import Actor
from .errors import ApprovalNeeded
from .reading import counts, explain, find, get, history, seen_by, veil_of

__all__ = [
    "REPAIRS", "Call", "counts", "create", "explain", "find", "fire", "foreseen", "get", "history", "preview", "repair",
]  # fmt: skip

REPAIRS = tuple(ASKED)
UNKEYED = ("suspend", "resume", "delete")  # done twice, they find nothing left to do
NOTED = ("data", "changes", "keep_data", "result", "overdue")  # of what was asked for, in the audit
TRIES = 5  # of an event that a rule looks at first, when the instance moves all the time


@dataclass(frozen=True, slots=True)
class Call:
    """One event or repair of one instance. ``name``: fire, or the repair; ``asked``: what the engine's method of that
    name takes beside who, why, ``expect`` and ``key``."""

    name: str
    machine: str
    id: str
    asked: dict[str, Any] = field(default_factory=dict)
    reason: str = ""
    expect: int | None = None
    key: str | None = None

    @property
    def right(self) -> str:
        return "fire" if self.name == "fire" else "operate"

    @property
    def action(self) -> str:
        """As definitions name it: ``delete``, ``fire:refund``."""
        return rules.FIRE + self.asked["event"] if self.name == "fire" else self.name

    @property
    def target(self) -> str:
        """The event, the states, or the invoke."""
        states = self.asked.get("state", "")
        named = self.asked.get("event") or self.asked.get("invoke") or states
        return named if isinstance(named, str) else ", ".join(map(str, named))


def fire(
    actor: Actor,
    machine: str,
    id: str,
    event: str,
    payload: Mapping[str, Any] | None = None,
    *,
    expect: int | None = None,
    key: str | None = None,
    reason: str = "",
) -> Instance:
    """Raises Forbidden, NotAllowed (the group rule), ApprovalNeeded, TooFast, and what ``Engine.fire`` raises."""
    asked = {"event": event, "payload": dict(payload or {})}
    return perform(actor, Call("fire", machine, id, asked, reason, expect, key))


def repair(
    actor: Actor,
    name: str,
    machine: str,
    id: str,
    *,
    reason: str,
    expect: int | None = None,
    key: str | None = None,
    **asked: Any,
) -> Instance:
    """``name``: one of REPAIRS; ``asked``: what the engine's repair of that name takes.

    Raises Forbidden, ApprovalNeeded, TooFast, and what the engine raises.
    """
    _known(name)
    return perform(actor, Call(name, machine, id, asked, reason, expect, key))


def create(
    actor: Actor,
    machine: str,
    id: str | None = None,
    data: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    reason: str = "",
) -> Instance:
    pacing.spend(actor, "create", machine=machine, instance=id or "", reason=reason)
    veil = veil_of(actor, machine)
    with veil.raising(), actor.records("create", machine=machine, instance=id or "", reason=reason) as deed:
        actor.demand("fire", machine)
        made = get_engine().create(machine, id, data, key=key, actor=actor.name, reason=reason)
        deed.name(instance=made.id)
        deed.moved("", made)
    return seen_by(actor, made)


def foreseen(actor: Actor, machine: str, id: str, event: str, payload: Mapping[str, Any] | None = None) -> Explanation:
    """What this person's event would do, for who may fire. Raises NotAllowed, too."""
    actor.demand("fire", machine)
    veil = veil_of(actor, machine)
    with veil.raising():
        explanation = get_engine().explain(machine, id, event, payload)
    allowing.check(allowing.groups_of(actor.user) if actor.is_person else None, explanation)
    return veil.explanation(explanation)


def preview(actor: Actor, name: str, machine: str, id: str, **asked: Any) -> Preview:
    """What a repair would do, and nothing is done. Raises what the repair would raise, but ApprovalNeeded."""
    _known(name)
    actor.demand("operate", machine)
    veil = veil_of(actor, machine)
    with veil.raising():
        return veil.preview(get_engine().preview(machine, id, name, **asked))


def perform(actor: Actor, call: Call, *, second: str = "") -> Instance:
    """Do it, and record it. ``second``: who approved it; then no rule asks for one any more."""
    about = {"machine": call.machine, "instance": call.id, "target": call.target, "reason": call.reason}
    pacing.spend(actor, call.name, **about)
    veil = veil_of(actor, call.machine)
    with veil.raising(), actor.records(call.name, **about) as deed:
        if second:
            deed.note(approved_by=second)
        actor.demand(call.right, call.machine)
        if call.name != "fire" and not call.reason.strip():
            raise BadInput(f"to {call.name} an instance needs a reason", code="SB404")
        try:
            before, after = _performed(actor, call, deed, second)
        except ApprovalNeeded:
            deed.void()
            raise
        _tell(deed, call, before, after)
    return seen_by(actor, after)


def _performed(actor: Actor, call: Call, deed: Deed, second: str) -> tuple[Instance, Instance]:
    engine = get_engine()
    before = engine.get(call.machine, call.id)
    if call.name != "fire":
        deed.note(**_noted(call))
        if not second:
            _ask(actor, engine, call, before)
        return before, _repaired(engine, actor.name, call, call.expect, second)
    for left in reversed(range(TRIES)):
        version = _ask(actor, engine, call, before, alone=not second)
        try:
            return before, _fired(engine, actor.name, call, version, second)
        except Conflict:
            if call.expect is not None or not left:
                raise
            before = engine.get(call.machine, call.id)
    raise AssertionError("the last try returns or raises")


def _ask(actor: Actor, engine: Engine, call: Call, before: Instance, *, alone: bool = True) -> int | None:
    """The rules of the definition; the version an event is then sent to. ``alone``: whether nobody approved yet."""
    outline = outline_of(call.machine, before.definition)
    if call.name == "fire":
        seen = rules.explained(actor, engine, outline, call.machine, call.id, **call.asked)
        if seen is None:
            return call.expect
        possible, version = seen.taken, seen.version
    else:
        if not rules.demands([outline], call.action):
            return call.expect
        # What the engine would refuse anyway nobody has to approve.
        possible, version = True, engine.preview(call.machine, call.id, call.name, **call.asked).version
    if alone and possible:
        rules.second_person(
            actor, outline, call.machine, call.id, call.action,
            asked=call.asked, reason=call.reason, expect=call.expect, version=version,
        )  # fmt: skip
    return version if call.expect is None else call.expect


def _fired(engine: Engine, actor: str, call: Call, version: int | None, second: str) -> Instance:
    asked = call.asked
    return engine.fire(
        call.machine, call.id, asked["event"], asked["payload"],
        expect=version, key=call.key, actor=actor, reason=_why(call.reason, second),
    )  # fmt: skip


def _repaired(engine: Engine, actor: str, call: Call, expect: int | None, second: str) -> Instance:
    who: dict[str, Any] = {"actor": actor, "reason": _why(call.reason, second), "expect": expect}
    if call.name not in UNKEYED:
        who["key"] = call.key
    done: Instance = getattr(engine, call.name)(call.machine, call.id, **call.asked, **who)
    return done


def _why(reason: str, second: str) -> str:
    """What the history of the instance says; it takes 1000 characters."""
    if not second:
        return reason
    approved = f" [approved by {second}]"
    return reason[: 1000 - len(approved)] + approved


def _tell(deed: Deed, call: Call, before: Instance, after: Instance) -> None:
    if call.name == "delete":
        deed.note(before=after.state, version=after.version)
    elif call.name in ("suspend", "resume"):
        deed.note(after=after.state, version=after.version)
    else:
        deed.moved(before.state, after)


def _noted(call: Call) -> dict[str, Any]:
    """What was asked for, as the audit keeps it: masked, whoever asked."""
    noted = {name: value for name, value in call.asked.items() if name in NOTED and value is not None}
    return masking.closed(call.machine).asked(noted)


def _known(name: str) -> None:
    if name not in REPAIRS:
        raise BadInput(f"the repairs are {', '.join(REPAIRS)}, not {name!r}")
