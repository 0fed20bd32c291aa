"""Actions on one instance: events, repairs, creation. Reading is in ``queries``."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, Unpack

from machines.audit import redaction
from machines.audit.entries import AuditRecord
from machines.catalog import rules
from machines.catalog.errors import ApprovalNeeded
from machines.connections import get_engine
from machines.engine import BadInput, Engine, Explanation, Instance, NeedsApproval, Permit, Preview
from machines.engine.definitions.outline import FIRE
from machines.engine.instances.repairs import PREVIEWS
from machines.people import limits, transition_groups
from machines.people.actor import Actor
from machines.people.errors import GuessedTooOften
from machines.people.mirrors import MethodRefused, is_mirror, row_methods
from machines.people.redaction import redacting, redactor_of, show_to

from . import guesses

REPAIRS = PREVIEWS
UNKEYED = ("suspend", "resume", "delete")  # done twice, they find nothing left to do
NOTED = ("data", "changes", "keep_data", "result", "overdue")  # of what was asked for, in the audit


@dataclass(frozen=True, slots=True)
class Call:
    """One event or repair of one instance. ``name``: fire, or the repair; ``asked``: what the engine's method of that
    name takes beside who, why, ``expect`` and ``key``; of an event that was approved also ``definition`` and
    ``transitions``, what it was to take then."""

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
        return FIRE + self.asked["event"] if self.name == "fire" else self.name

    @property
    def target(self) -> str:
        """The event, the states, or the invoke."""
        states = self.asked.get("state", "")
        named = self.asked.get("event") or self.asked.get("invoke") or states
        return named if isinstance(named, str) else ", ".join(map(str, named))


class CallOptions(TypedDict, total=False):
    """The options of an event, as ``Call`` has them."""

    reason: str
    expect: int | None
    key: str | None


def fire(
    actor: Actor,
    machine: str,
    id: str,
    event: str,
    payload: Mapping[str, Any] | None = None,
    *,
    shows: bool = True,
    **options: Unpack[CallOptions],
) -> Instance:
    """Fire an event. ``shows``: whether the instance is shown to the actor; else it comes back without its data, and
    nobody has to be asked what of that is sensitive.

    Raises Forbidden, NotAllowed (the group rule), ApprovalNeeded, TooFast, and what ``Engine.fire`` raises.
    """
    asked = {"event": event, "payload": dict(payload or {})}
    return perform(actor, Call("fire", machine, id, asked, **options), shows=shows)


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
    """Repair an instance. ``name``: one of REPAIRS; ``asked``: what the engine's repair of that name takes.

    Raises Forbidden, ApprovalNeeded, TooFast, and what the engine raises.
    """
    _check_name(name)
    return perform(actor, Call(name, machine, id, asked, reason, expect, key))


def create(
    actor: Actor,
    machine: str,
    id: str | None = None,
    data: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    reason: str = "",
    shows: bool = True,
) -> Instance:
    """Create an instance. ``shows``: as ``fire`` has it."""
    about = {"machine": machine, "instance": id or "", "reason": reason}
    limits.spend_rate(actor, "create", **about)
    with redacting(actor, machine), actor.records("create", **about) as entry:
        actor.demand("fire", machine)
        rules.demand_open(machine)
        if is_mirror(machine):
            raise BadInput(f"{machine} mirrors rows of a table: create the row, and its instance follows")
        made = get_engine().create(machine, id, data, key=key, actor=actor.name, reason=reason)
        entry.name(instance=made.id)
        entry.note_step("", made)
    return show_to(actor, made) if shows else _drop_data(made)


def propose_id() -> str | None:
    """Return an id for a new instance, without a round trip; None where this process has none left."""
    return get_engine().ids.next_local()


def preview_event(
    actor: Actor, machine: str, id: str, event: str, payload: Mapping[str, Any] | None = None
) -> Explanation:
    """Return what this person's event would do, for who may fire. Raises NotAllowed, too."""
    actor.demand("fire", machine)
    rules.demand_open(machine)
    if is_mirror(machine) and (refusal := row_methods().find_refusals(machine, id, [event], actor.user).get(event)):
        raise MethodRefused(f"{event} cannot be called: {refusal}")
    guesses.spend_explanation(actor, machine, id, event, payload)
    redactor = redactor_of(actor, machine)
    with redactor.raising():
        explanation = get_engine().explain(machine, id, event, payload)
    transition_groups.check_transitions(
        transition_groups.groups_of(actor.user) if actor.is_person else None, explanation
    )
    return redactor.explanation(explanation)


def preview(actor: Actor, name: str, machine: str, id: str, **asked: Any) -> Preview:
    """Return what a repair would do, without doing it. Raises what the repair would raise, but ApprovalNeeded."""
    _check_name(name)
    actor.demand("operate", machine)
    rules.demand_open(machine)
    _refuse_repair_of_mirror(name, machine)
    if name in guesses.COMPUTING:
        guesses.spend_guess(actor, machine, id, action=name)
    redactor = redactor_of(actor, machine)
    with redactor.raising():
        return redactor.of(id).preview(get_engine().preview(machine, id, name, **asked))


def perform(actor: Actor, call: Call, *, second: str = "", shows: bool = True) -> Instance:
    """Do it, and record it: one question of the right, one of the rate, one call of the engine, one audit entry.

    ``second``: who approved it. ``shows``: as ``fire`` has it. Raises NeedsApproval where it would do something else
    now.
    """
    about = {"machine": call.machine, "instance": call.id, "target": call.target, "reason": call.reason}
    limits.spend_rate(actor, call.name, **about)
    # Of an approved request the asker is shown nothing.
    with redacting(actor, call.machine, strict=bool(second)), actor.records(call.name, **about) as entry:
        if second:
            entry.note(approved_by=second)
        actor.demand(call.right, call.machine)
        rules.demand_open(call.machine)
        _spend_guess(actor, call, entry)
        if call.name != "fire":
            _refuse_repair_of_mirror(call.name, call.machine)
        if call.name != "fire" and not call.reason.strip():
            raise BadInput(f"to {call.name} an instance needs a reason", code="SB404")
        try:
            before, after = _perform(actor, call, entry, second)
        except NeedsApproval as needed:
            if second:  # what it would do now is not what was approved
                raise
            error = _make_request(call, needed)
            entry.void()
            raise error from None
        _note_outcome(entry, call, before, after)
    if second:
        return after
    return show_to(actor, after) if shows else _drop_data(after)


def _spend_guess(actor: Actor, call: Call, entry: AuditRecord) -> None:
    """Count a guess. The audit has what was asked. A refusal is written once, by ``limits``."""
    event = call.asked["event"] if call.name == "fire" else ""
    if call.name not in ("fire", *guesses.COMPUTING):
        return
    asked = {"payload": call.asked["payload"]} if event else {}
    try:
        if guesses.spend_guess(actor, call.machine, call.id, event, action=call.name, **asked):
            entry.note(**asked)
    except GuessedTooOften:
        entry.void()
        raise


def _perform(actor: Actor, call: Call, entry: AuditRecord, second: str) -> tuple[str, Instance]:
    """Perform the call. Return the state before and the instance after. The engine tells the former of a person's call,
    not of a program's."""
    if is_mirror(call.machine):
        return _call_method(actor, call, second)
    engine, permit = get_engine(), _permit(actor, call, second)
    before = engine.get(call.machine, call.id).state if permit is None else ""
    entry.note(**_list_facts(call))
    after = _call_engine(engine, actor.name, call, permit, second)
    return before or ", ".join(after.outcome.before if after.outcome else ()), after


def _call_method(actor: Actor, call: Call, second: str) -> tuple[str, Instance]:
    """Call the method of a row, which decides, under its own permission."""
    after = row_methods().call_method(
        call.machine, call.id, call.asked["event"], call.asked["payload"],
        user=actor.user, expect=call.expect, reason=_make_reason(call.reason, second),
    )  # fmt: skip
    return ", ".join(after.outcome.before if after.outcome else ()), after


def _drop_data(instance: Instance) -> Instance:
    """Return where it stands and which revision it has, and nothing that could be sensitive."""
    return replace(instance, data={}, timers=[], children={}, parent=None)


def _permit(actor: Actor, call: Call, second: str) -> Permit | None:
    """Make the permit of a call. ``second``: who approved it; then just what was asked for, as it was looked at."""
    permit = rules.permit_of(actor)
    if permit is None or not second:
        return permit
    seen = call.asked if call.name == "fire" else {}
    transitions = seen.get("transitions")  # not in requests that an older release filed
    return permit.approve(
        call.action, second, version=seen.get("definition"),
        transitions=None if transitions is None else tuple(transitions),
    )  # fmt: skip


def _call_engine(engine: Engine, actor: str, call: Call, permit: Permit | None, second: str) -> Instance:
    asked = call.asked
    who: dict[str, Any] = {"actor": actor, "expect": call.expect, "permit": permit}
    who["reason"] = _make_reason(call.reason, second)
    if call.name not in UNKEYED:
        who["key"] = call.key
    if call.name == "fire":
        return engine.fire(call.machine, call.id, asked["event"], asked["payload"], **who)
    done: Instance = getattr(engine, call.name)(call.machine, call.id, **asked, **who)
    return done


def _make_request(call: Call, needed: NeedsApproval) -> ApprovalNeeded:
    """Return what is asked of a second person: on the revision it was found at, and of an event what it would take
    there. Raises BadInput for who gave no reason."""
    if not call.reason.strip():
        raise BadInput(f"{call.action} needs approval: give a reason", code="SB404")
    seen: dict[str, Any] = {}
    if call.name == "fire":
        seen = {"definition": needed.version, "transitions": needed.transitions}
    return ApprovalNeeded(
        call.machine, call.id, call.action, asked=call.asked | seen, reason=call.reason, expect=needed.revision
    )


def _make_reason(reason: str, second: str) -> str:
    """Return what the history of the instance says; it takes 1000 characters."""
    if not second:
        return reason
    approved = f" [approved by {second}]"
    return reason[: 1000 - len(approved)] + approved


def _note_outcome(entry: AuditRecord, call: Call, before: str, after: Instance) -> None:
    if call.name == "delete":
        entry.note(before=after.state, revision=after.revision)
    elif call.name in ("suspend", "resume"):
        entry.note(after=after.state, revision=after.revision)
    else:
        entry.note_step(before, after)


def _list_facts(call: Call) -> dict[str, Any]:
    """Return what was asked for, as the audit keeps it: always redacted."""
    noted = {name: value for name, value in call.asked.items() if name in NOTED and value is not None}
    if call.name == "fire" or not noted:
        return {}
    return redaction.strict_redactor(call.machine).redact_request(noted)


def _refuse_repair_of_mirror(name: str, machine: str) -> None:
    if is_mirror(machine):
        raise BadInput(
            f"{name} cannot change an instance of {machine}, which follows its row: change the row, or call its method"
        )


def _check_name(name: str) -> None:
    if name not in REPAIRS:
        raise BadInput(f"the repairs are {', '.join(REPAIRS)}, not {name!r}")
