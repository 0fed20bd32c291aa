"""Files an approval request when an action needs one, and answers 202 with the request."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from dashboard.site.mount_point import api_path
from machines.approvals import actions as approvals
from machines.approvals import queries as approval_queries
from machines.models import Approval
from machines.people.actor import Actor
from machines.people.errors import ApprovalNeeded

from .schemas import Ms, Out


class ApprovalOut(Out):
    """A request for a second person."""

    id: int
    machine: str
    instance: str = Field(description="empty for a bulk")
    bulk: str = Field(description="empty for an instance")
    action: str = Field(examples=["force", "fire:refund"])
    target: str
    asked: dict[str, Any] = Field(
        description="what the action takes, of an event also the transitions it selects; empty once it is decided"
    )
    expect: int | None = Field(None, description="the revision it was asked for")
    reason: str
    asker: str
    asked_at: Ms
    expires_at: Ms
    state: str = Field(description="open, running, done, failed, declined, withdrawn or expired")
    decider: str
    decided_at: Ms | None = None
    note: str = Field(description="the decision note")
    outcome: str = Field(description="the outcome")
    code: str = Field(description="of the error it failed with")


def answers_of(done: Any) -> dict[int, Any]:
    """Return the responses of an operation that may need approval. ``done``: its response when it runs at once."""
    return {200: done, 202: ApprovalOut}


def describe(actor: Actor, approval: Approval) -> ApprovalOut:
    facts = {name: getattr(approval, name) for name in ApprovalOut.model_fields if hasattr(approval, name)}
    return ApprovalOut.model_validate(facts | {"asked": approval_queries.show_asked(actor, approval)})


def file_request(request: HttpRequest, needed: ApprovalNeeded) -> HttpResponse:
    """Ask for approval of the request. Return 202 with the request, and its address in ``Location``."""
    actor: Actor = request.caller.actor  # type: ignore[attr-defined]
    approval = approvals.ask(actor, needed)
    response = HttpResponse(
        describe(actor, approval).model_dump_json(), status=202, content_type="application/json; charset=utf-8"
    )
    response["Location"] = f"{api_path()}approvals/{approval.pk}"
    return response
