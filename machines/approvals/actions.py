"""Approval requests: file one, decide it, and carry out what was approved.

A request is done as it was asked for, on the version that was seen then, by the transitions that an event selected
then, in the name of the requester; so their rights and groups count at that moment, too. However many approve at the
same time, it is done once: the one whose update finds it open goes on. A definition or a setting may name groups that
decide, and how many have to approve; who left a group does not count any more. Nobody decides a request of their own,
with whichever token, and superusers are no exception.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from machines.audit import redaction
from machines.audit.entries import AuditRecord, record
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.models import Draft
from machines.catalog.queries import every_outline, outline_of
from machines.catalog.version_rules import MIGRATE, OPERATIONS, PUBLISH, find_rule, find_setting_terms
from machines.catalog.versions import drafts, rollouts
from machines.connections import get_engine
from machines.engine import BadInput, Explanation, Preview, SignalboxError
from machines.engine.definitions import Outline
from machines.engine.definitions.approval_terms import ApprovalTerms, find_terms, merge_terms
from machines.engine.definitions.outline import covers_action
from machines.engine.limits import MAX_REASON
from machines.instances import plans
from machines.instances.actions import Call, perform
from machines.instances.bulks import Bulk
from machines.instances.bulks import actions as bulks
from machines.instances.bulks.store import OrderLost
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.redaction import redactor_of

from . import queries
from .errors import NotApprover, NotOpen, OwnRequest
from .models import CUT_OFF, EXPIRED, LASTS, UNKNOWN, Approval

State = Approval.State
SAID = 2000  # characters of the outcome
CARRIED_OUT = (State.RUNNING, State.DONE, State.FAILED)
CLOCK = "signalbox"  # who lets requests expire


def find_request_terms(needed: ApprovalNeeded) -> ApprovalTerms:
    """Return on which terms an action is approved. The version of an instance decides; for a bulk action every version
    of the machine; for a change of versions the rules that hold."""
    outside = find_setting_terms(needed.machine, OPERATIONS.get(needed.name) or [needed.action])
    rule = needed.rule
    if needed.bulk and needed.name == MIGRATE:
        sources = Bulk(get_engine(), needed.bulk).order().migration.sources
        rule = find_rule(MIGRATE, needed.machine, moves=[(source.version, source.to) for source in sources])
    if rule is not None:
        return outside.merge(rule.terms)
    if needed.id:
        version = get_engine().get(needed.machine, needed.id).version
        return outside.merge(_find_terms([outline_of(needed.machine, version)], needed.action))
    return outside.merge(_find_terms(every_outline(needed.machine), needed.action))


def _find_terms(outlines: Iterable[Outline], action: str) -> ApprovalTerms:
    return merge_terms(
        find_terms(outline.approvers, [name])
        for outline in outlines
        for name in outline.approval
        if covers_action(name, action)
    )


def ask(actor: Actor, needed: ApprovalNeeded, *, reason: str = "") -> Approval:
    """Ask for what an action needs: its own reason unless another is given. Asked twice, it is one request."""
    why = _clean_text(reason or needed.reason)
    about = {
        "machine": needed.machine,
        "instance": needed.id,
        "target": needed.bulk or _describe_detail(needed) or needed.action,
        "reason": why,
    }
    with actor.records("approval.ask", **about) as entry:
        if not why.strip() or len(why) > MAX_REASON:
            raise BadInput(f"a request needs a reason of 1 to {MAX_REASON} characters", code="SB404")
        facts = {
            "machine": needed.machine, "instance": needed.id, "bulk": needed.bulk, "action": needed.action,
            "expect": needed.expect, "asker_id": actor.id,
        }  # fmt: skip
        for found in queries.find_open().filter(**facts):
            if found.asked == needed.asked:
                entry.void()
                return found
        terms, now = find_request_terms(needed), timezone.now()
        made = Approval.objects.create(
            **facts, asked=needed.asked, target=_describe_detail(needed), reason=why, asker=actor.name,
            groups=list(terms.groups), quorum=terms.quorum, asked_at=now,
            expires_at=now + (LASTS if terms.expires is None else timedelta(milliseconds=terms.expires)),
        )  # fmt: skip
        entry.note(**made.facts(), **({} if needed.rule is None else {"rule": str(needed.rule)}))
    return made


def preview(actor: Actor, approval: Approval) -> Preview | Explanation | None:
    """Return what it would do now; None for a bulk and for a draft, whose own pages say it. Raises what doing it
    would."""
    if not approval.is_open:
        return None
    approval.demand_readable()
    if approval.name == PUBLISH:
        drafts.demand_same(Draft.objects.get(pk=approval.draft), approval.asked["digest"])
        rollouts.demand_turn(approval.machine, PUBLISH, approval.asked)
        return None
    if approval.bulk:
        bulks.demand_unmoved(approval.bulk, approval.expect)
    if approval.bulk or approval.name in rollouts.CHANGES:
        if approval.name in OPERATIONS:
            rollouts.demand_turn(approval.machine, approval.name, approval.asked)
        return None
    engine, asked, redactor = get_engine(), approval.asked, redactor_of(actor, approval.machine)
    machine, id = approval.machine, approval.instance
    if approval.name == "fire":
        return redactor.explanation(engine.explain(machine, id, asked["event"], asked["payload"]))
    return redactor.of(id).preview(engine.preview(machine, id, approval.name, **asked))


def approve(actor: Actor, id: int, *, note: str = "") -> Approval:
    """Approve the request, and carry it out once as many as its quorum have. The request holds the outcome: done, or
    failed with the reason.

    Raises Forbidden, NotApprover, OwnRequest, NotOpen, SecretUnreadable.
    """
    with _decide_request(actor, id, "approve", note) as (approval, entry):
        _may(actor, approval)
        approval.demand_readable()
        approvers = _vote(approval, actor, note)
        entry.note(approvers=approvers, **({"quorum": approval.quorum} if approval.quorum > 1 else {}))
        if len(approvers) < approval.quorum:
            return approval
        try:
            _take(approval, State.RUNNING, actor, note)
        except NotOpen:
            if approval.quorum > 1 and approval.state in CARRIED_OUT:  # by who approved at the same time
                return approval
            raise
        _finish(approval, ", ".join(approvers))
        entry.note(came=approval.state, **({"error": approval.outcome} if approval.state == State.FAILED else {}))
    return approval


def decline(actor: Actor, id: int, *, note: str) -> Approval:
    """Decline it; ``note`` says why. Raises Forbidden, OwnRequest, NotOpen, BadInput."""
    with _decide_request(actor, id, "decline", note) as (approval, _):
        _may(actor, approval)
        if not note.strip():
            raise BadInput("a reason is required to decline", code="SB404")
        _take(approval, State.DECLINED, actor, note)
    return approval


def withdraw(actor: Actor, id: int, *, note: str = "") -> Approval:
    """Withdraw a request, by its requester. Raises Forbidden for other accounts, NotOpen."""
    with _decide_request(actor, id, "withdraw", note) as (approval, _):
        if not queries.is_own(actor, approval):
            raise Forbidden(approval.right, approval.machine)
        _take(approval, State.WITHDRAWN, actor, note)
    return approval


@contextmanager
def _decide_request(actor: Actor, id: int, verb: str, note: str) -> Iterator[tuple[Approval, AuditRecord]]:
    """Find the request that the block decides, and record the block."""
    expire()
    approval = queries.get(actor, id, action=f"approval.{verb}")
    with actor.records(f"approval.{verb}", **_make_facts(approval), reason=note) as entry:
        entry.note(**approval.facts())
        yield approval, entry


def expire(now: datetime | None = None) -> int:
    """Close those whose time is over, and those of which nobody heard the end; how many.

    The latter may still be done: the account that carries it out records the outcome.
    """
    now = now or timezone.now()
    over = Approval.objects.filter(state=State.OPEN, expires_at__lte=now)
    lost = Approval.objects.filter(state=State.RUNNING, decided_at__lte=now - CUT_OFF)
    count = 0
    for approval in over:
        if _move(approval, State.OPEN, state=State.EXPIRED, decided_at=now, outcome=EXPIRED):
            record(CLOCK, "approval.expire", **_make_facts(approval), detail=approval.facts())
            count += 1
    for approval in lost:
        count += _move(approval, State.RUNNING, state=State.FAILED, outcome=UNKNOWN)
    return count


def _may(actor: Actor, approval: Approval) -> None:
    if missing := queries.find_missing_right(actor, approval):
        raise Forbidden(missing, approval.machine)
    if approval.asker_id == actor.id:
        raise OwnRequest(approval.pk)
    if group := queries.find_missing_group(actor, approval):
        raise NotApprover(approval.pk, group, is_empty=group in queries.list_empty_groups(approval))


def _vote(approval: Approval, actor: Actor, note: str) -> list[str]:
    """Record an approval; return the names of who approve the request now. Raises NotOpen, also for who has approved it
    already, unless enough have."""
    if not approval.is_open:
        raise NotOpen(approval.pk, approval.state)
    if approval.quorum == 1:
        return [actor.name]
    facts = {"voter": actor.name, "note": _clean_text(note)}
    _, is_new = approval.votes.get_or_create(voter_id=actor.id, defaults=facts)
    names = [vote.voter for vote, counts in queries.list_votes(approval) if counts]
    if not is_new and len(names) < approval.quorum:
        raise NotOpen(approval.pk, State.OPEN, f"you have approved it; {approval.quorum} people have to")
    return names


def _take(approval: Approval, state: str, actor: Actor, note: str) -> None:
    """Move an approval from open to ``state``, for one of all who try. Raises NotOpen for the others."""
    now = timezone.now()
    open_now = Approval.objects.filter(pk=approval.pk, state=State.OPEN, expires_at__gt=now)
    facts: dict[str, Any] = {"state": state, "decider": actor.name, "decided_at": now, "note": _clean_text(note)}
    if state != State.RUNNING:
        facts["asked"] = {}
    if not open_now.update(**facts):
        approval.refresh_from_db()
        raise NotOpen(approval.pk, State.EXPIRED if approval.state == State.OPEN else approval.state)
    for name, value in facts.items():
        setattr(approval, name, value)


def _finish(approval: Approval, second: str) -> None:
    """Do it; the request keeps the outcome, and nothing of the payload."""
    facts: dict[str, Any] = {"state": State.FAILED, "outcome": "internal error: see the server log"}
    try:
        facts = {"state": State.DONE, "outcome": _do(approval, second), "code": ""}
    except (SignalboxError, OrderLost, Draft.DoesNotExist) as error:
        facts = {
            "state": State.FAILED,
            "outcome": redaction.strict_redactor(approval.machine).error(error)[:SAID],
            "code": getattr(error, "code", ""),
        }
    finally:
        # Given up meanwhile: only who took it on knows, so that their word counts.
        if not _move(approval, State.RUNNING, **facts):
            _move(approval, State.FAILED, **facts)


def _do(approval: Approval, second: str) -> str:
    account = get_user_model().objects.filter(pk=approval.asker_id, is_active=True).first()
    if account is None:
        raise SignalboxError(f"the account {approval.asker} no longer exists", code=Forbidden.code)
    asker = Actor(account, f"approval {approval.pk}")
    if approval.bulk:
        turn = approval.asked.get("turn")
        after = bulks.release(asker, approval.bulk, second=second, expect=approval.expect, turn=turn)
        plans.note_approval(approval.bulk, second)
        return f"the bulk is {after.state}"
    asked = dict(approval.asked)
    if approval.name == PUBLISH:
        id, rollout = asked.pop("draft"), asked.pop("rollout")
        approved = drafts.ApprovedPublication(second, **asked)
        version = drafts.publish(asker, id, reason=approval.reason, rollout=rollout, approved=approved)
        return f"published as v{version.number}"
    if change := rollouts.CHANGES.get(approval.name):
        turn = asked.pop("turn")
        change(asker, approval.machine, **asked, reason=approval.reason, expect=turn, second=second)
        return "changed"
    call = Call(
        approval.name, approval.machine, approval.instance, asked, approval.reason, approval.expect,
        f"approval-{approval.pk}-{approval.asked_at.timestamp()}",
    )  # fmt: skip
    after = perform(asker, call, second=second)
    return "deleted" if approval.name == "delete" else f"now in {after.state}, revision {after.revision}"


def _move(approval: Approval, before: str, **facts: Any) -> int:
    """Move a request that is still in the state ``before``; return how many moved. What was asked for goes."""
    facts["asked"] = {}
    count = Approval.objects.filter(pk=approval.pk, state=before).update(**facts)
    for name, value in facts.items() if count else ():
        setattr(approval, name, value)
    return count


def _clean_text(text: str) -> str:
    """Return a text that PostgreSQL accepts."""
    return text.replace("\0", "\\0")


def _make_facts(approval: Approval) -> dict[str, str]:
    of = approval.bulk or approval.target or approval.action
    return {"machine": approval.machine, "instance": approval.instance, "target": of}


def _describe_detail(needed: ApprovalNeeded) -> str:
    if needed.bulk:
        return Bulk(get_engine(), needed.bulk).order().target
    if needed.name in OPERATIONS:
        return needed.target
    return Call(needed.name, needed.machine, needed.id, needed.asked).target
