"""Reads requests for a second person."""

from typing import Any, cast

from django.contrib.auth import get_user_model
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from machines.conf.database import TIMES, PreparedQuery
from machines.conf.encryption.ciphers import Unreadable
from machines.people.actor import Actor
from machines.people.permissions import Scope, find_empty_groups
from machines.people.redaction import redactor_of

from .models import Approval, ApprovalVote

State = Approval.State
DECIDED = tuple(state for state in State.values if state != State.OPEN)


def find_open(scope: Scope | None = None) -> QuerySet[Approval]:
    """Return those nobody has decided yet, newest first; on these machines, or on all."""
    found = Approval.objects.filter(state=State.OPEN, expires_at__gt=timezone.now())
    return found if scope is None else scope.narrow(found)


def count_open(scope: Scope) -> int:
    """Count them for the bar of each page."""
    if not scope.all:
        return find_open(scope).count()
    return sum(count for (count,) in _waiting_everywhere.rows(timezone.now()))


_waiting_everywhere = PreparedQuery(
    Approval,
    lambda now: (
        Approval.objects.filter(state=State.OPEN, expires_at__gt=now)
        .order_by().values("state").annotate(count=Count("pk")).values_list("count")
    ),
    marks=TIMES,
)  # fmt: skip


def find(actor: Actor, *, state: str = "open", machine: str = "", asker: str = "") -> QuerySet[Approval]:
    """Return those on machines the actor sees, newest first. ``state``: one of them, ``decided`` for any but open, or
    ""."""
    found = actor.scope("view").narrow(Approval.objects.all())
    wanted = Approval.in_state(*{"": State.values, "decided": DECIDED}.get(state, [state]))
    for name, text in (("machine", machine), ("asker", asker)):
        wanted &= Q(**{name: text}) if text else Q()
    return found.filter(wanted)


def get(actor: Actor, id: int, *, action: str = "") -> Approval:
    """Return a request. Raises Forbidden, also for one that does not exist where the actor does not see every
    machine; else DoesNotExist.

    ``action``: of the audit, which then has the refusal."""
    return cast(Approval, actor.find_row(Approval.objects.all(), id, "view", "request", action=action, target=str(id)))


def may_decide(actor: Actor, approval: Approval) -> bool:
    """Tell whether the actor may decide a request, as far as is known without trying."""
    may = approval.is_open and approval.asker_id != actor.id and not find_missing_right(actor, approval)
    return may and not find_missing_group(actor, approval)


def find_missing_group(actor: Actor, approval: Approval) -> str:
    """Return a group whose members alone decide a request and that the actor is not in, or "". A superuser is a member
    of none but their own."""
    if not approval.groups:
        return ""
    held = set(actor.user.groups.values_list("name", flat=True)) if actor.is_person else set()
    return next((group for group in approval.groups if group not in held), "")


def list_empty_groups(approval: Approval) -> list[str]:
    """Return the groups of a request that nobody but the requester is in, or that are gone: nobody can approve it."""
    return find_empty_groups(approval.groups, approval.asker_id) if approval.is_open else []


def list_votes(approval: Approval) -> list[tuple[ApprovalVote, bool]]:
    """List the approvals that a request has, each with whether it counts: the person still exists, may do what was
    asked for, and is in the groups."""
    votes = list(approval.votes.all()) if approval.quorum > 1 else []
    users = get_user_model().objects.filter(pk__in=[vote.voter_id for vote in votes], is_active=True)
    actors = {str(user.pk): Actor(user, f"approval {approval.pk}") for user in users}
    return [(vote, _counts(actors.get(vote.voter_id), approval)) for vote in votes]


def _counts(voter: Actor | None, approval: Approval) -> bool:
    return voter is not None and not (find_missing_right(voter, approval) or find_missing_group(voter, approval))


def may_withdraw(actor: Actor, approval: Approval) -> bool:
    return approval.is_open and is_own(actor, approval)


def show_asked(actor: Actor, approval: Approval) -> dict[str, Any]:
    """Return what the action takes, masked for who may not see it in clear; empty once it is decided, and where its key
    is gone."""
    if isinstance(approval.asked, Unreadable):
        return {}
    return redactor_of(actor, approval.machine).of(approval.instance).redact_request(approval.asked)


def is_own(actor: Actor, approval: Approval) -> bool:
    """Say whether the actor is the requester, also without the right they had then; but of no token of theirs that
    does not reach so far."""
    reaches = actor.scopes is None or actor.scopes.covers(approval.right, approval.machine)
    return approval.asker_id == actor.id and reaches


def find_missing_right(actor: Actor, approval: Approval) -> str:
    """Return the right that the actor lacks to decide it, or ""."""
    wanted = [approval.right]
    if approval.bulk and approval.name == "fire":
        wanted.append("fire")
    return next((right for right in wanted if not actor.may(right, approval.machine)), "")
