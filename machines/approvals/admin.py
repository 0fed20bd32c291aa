"""Requests for approval in the admin."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from machines.engine import SignalboxError
from machines.instances.admin import MachineAdmin
from machines.people import permissions
from machines.people.actor import Actor
from machines.people.admin import ReadOnly

from . import actions as approvals
from . import queries as approval_queries
from .models import Approval

MachineAdmin.ask = staticmethod(approvals.ask)


class NoteForm(ActionForm):
    note = forms.CharField(max_length=1000, required=False, label="note")


@admin.register(Approval)
class ApprovalAdmin(ReadOnly, admin.ModelAdmin):
    """Decided by the same actions as on the pages, by the account that is logged in."""

    machine_field = "machine"
    list_display = ["pk", "asked_at", "action", "subject", "asker", "state", "decided_by", "quorum", "expires_at"]
    list_filter = ["state", ("asked_at", admin.DateFieldListFilter)]
    search_fields = ["machine__exact", "instance__exact", "asker__exact"]
    search_help_text = "exact machine, instance or requester"
    list_per_page = 50
    fields = [
        "action", "subject", "expect", "reason", "asker", "asked_at", "decided_by", "quorum", "approvers", "expires_at",
        "state", "decider", "decided_at", "note", "outcome", "code",
    ]  # fmt: skip
    readonly_fields = fields
    action_form = NoteForm
    actions = ["approve", "decline"]

    def get_urls(self) -> list[Any]:
        """Let no view undo, with a failure after it, what was carried out in Redis."""
        found = super().get_urls()
        for one in found:
            transaction.non_atomic_requests(one.callback)
        return found

    @admin.display(description="groups")
    def decided_by(self, approval: Approval) -> str:
        return " and ".join(approval.groups)

    @admin.display(description="approved by")
    def approvers(self, approval: Approval) -> str:
        return ", ".join(vote.voter for vote, counts in approval_queries.list_votes(approval) if counts)

    @admin.action(description="Approve the selected requests")
    def approve(self, request: HttpRequest, chosen: QuerySet[Approval]) -> None:
        self._decide(request, chosen, approvals.approve)

    @admin.action(description="Decline the selected requests, with a note")
    def decline(self, request: HttpRequest, chosen: QuerySet[Approval]) -> None:
        self._decide(request, chosen, approvals.decline)

    def _decide(self, request: HttpRequest, chosen: QuerySet[Approval], decide: Callable[..., Approval]) -> None:
        actor = Actor.of(request)
        for pk in chosen.order_by("pk").values_list("pk", flat=True):
            try:
                after = decide(actor, pk, note=request.POST.get("note", "").strip())
                messages.success(request, f"Request {pk}: {after.word}. {after.outcome}")
            except (SignalboxError, permissions.Forbidden) as error:
                messages.error(request, f"Request {pk}: not done, {error}")
