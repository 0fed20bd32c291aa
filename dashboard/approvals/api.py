"""Approval requests: list, approve, decline, withdraw. The operation that needs an approval files the request and
answers 202.
"""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from ninja import Query
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.request_terms import Paging
from dashboard.api.framework.schemas import ApprovalOut, Body, Page, Reason, Why, describe
from machines.approvals import actions as approvals
from machines.approvals import queries as approval_queries
from machines.models import Approval
from machines.people.actor import Actor

from .forms import RequestTerms

group = Group("approvals", "Actions waiting for approval.", right="view")
APPROVAL = "/approvals/{int:approval}"


class Deciding(Body):
    note: Why = Field("", description="a note for the requester")


class Declining(Body):
    note: Reason


@group.get("/approvals", answers=Page[ApprovalOut])
def list_approvals(request: HttpRequest, terms: Query[RequestTerms], page: Query[Paging]) -> dict[str, Any]:
    """List approval requests.

    List requests on machines the caller may see, newest first. `decided` stands for all but open ones.
    """
    actor = actor_of(request)
    found = page.read_page("approvals", terms.find(actor))
    return found | {"items": [describe(actor, row) for row in found["items"]]}


@group.get(APPROVAL, answers=ApprovalOut)
def get_approval(request: HttpRequest, approval: int) -> ApprovalOut:
    """Get a request."""
    actor = actor_of(request)
    return describe(actor, approval_queries.get(actor, approval))


def _decide(request: HttpRequest, decide: Callable[..., Approval], approval: int, note: str) -> ApprovalOut:
    actor: Actor = actor_of(request)
    return describe(actor, decide(actor, approval, note=note))


@group.post(f"{APPROVAL}/approve", answers=ApprovalOut)
def approve(request: HttpRequest, approval: int, body: Deciding) -> ApprovalOut:
    """Approve a request.

    Approve a request: for an account that holds the action's own right and did not file it. The action runs at once,
    as it was asked for, on the revision that was seen then; `state` and `outcome` say the result.
    """
    return _decide(request, approvals.approve, approval, body.note)


@group.post(f"{APPROVAL}/decline", answers=ApprovalOut)
def decline(request: HttpRequest, approval: int, body: Declining) -> ApprovalOut:
    """Decline a request.

    Decline a request: for an account that could approve it.
    """
    return _decide(request, approvals.decline, approval, body.note)


@group.post(f"{APPROVAL}/withdraw", answers=ApprovalOut)
def withdraw(request: HttpRequest, approval: int, body: Deciding) -> ApprovalOut:
    """Withdraw a request.

    Withdraw a request: for the account that filed it.
    """
    return _decide(request, approvals.withdraw, approval, body.note)
