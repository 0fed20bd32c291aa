"""Read-only lists in the admin: audit entries, requests for approval, published versions, tokens, who was last seen,
the outbox of bound rows."""

import json
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.contrib.auth import get_permission_codename, get_user_model
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from machines.approvals import actions as approvals
from machines.approvals import queries as approval_queries
from machines.approvals.models import Approval
from machines.audit.models import AuditEntry
from machines.catalog.models import MachineVersion
from machines.engine import SignalboxError
from machines.integrations.binding.models import OutboxEntry
from machines.people import actions as tokens
from machines.people import permissions
from machines.people.actor import Actor
from machines.people.models import LastSeen, Token

from .permissions import SCRIPTS, STYLES, ReadOnly, drawing

SHOWN = 48  # characters of a text in the list


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly, admin.ModelAdmin):
    machine_field = "machine"
    list_display = ["when", "actor", "action", "outcome", "on", "target", "why", "source"]
    list_filter = ["outcome", "action", ("at", admin.DateFieldListFilter)]
    search_fields = ["actor__exact", "machine__exact", "instance__exact", "target__exact", "request__exact"]
    search_help_text = "exact person, machine, instance, target or request"
    list_per_page = 50
    ordering = ["-at", "-id"]
    fields = [
        "when", "actor", "actor_id", "action", "machine", "queue", "instance", "target", "reason", "source", "request",
        "outcome", "facts",
    ]  # fmt: skip
    readonly_fields = fields
    actions = None

    class Media:
        css = {"all": STYLES}

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return permissions.anywhere(request.user, "audit")

    @admin.display(description="when", ordering="at")
    def when(self, entry: AuditEntry) -> str:
        """Return the time to the second, in the reader's time zone."""
        return f"{timezone.localtime(entry.at):%Y-%m-%d %H:%M:%S %Z}"

    @admin.display(description="on")
    def on(self, entry: AuditEntry) -> str:
        return Truncator(entry.subject).chars(SHOWN)

    @admin.display(description="reason")
    def why(self, entry: AuditEntry) -> str:
        return Truncator(entry.reason).chars(SHOWN)

    @admin.display(description="detail")
    def facts(self, entry: AuditEntry) -> SafeString:
        text = json.dumps(entry.facts, indent=2, ensure_ascii=False)
        return format_html('<pre class="sb-document">{}</pre>', text)


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


@admin.register(LastSeen)
class LastSeenAdmin(ReadOnly, admin.ModelAdmin):
    """To the minute, and some seconds behind. A person is of no one machine."""

    machine_field = ""
    list_display = ["user", "at", "requests", "is_active"]
    list_select_related = ["user"]
    search_fields = [f"user__{get_user_model().USERNAME_FIELD}"]
    ordering = ["-at"]
    fields = ["user", "at", "requests"]
    readonly_fields = fields

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        people = get_user_model()._meta
        return request.user.has_perm(f"{people.app_label}.{get_permission_codename('view', people)}")

    @admin.display(description="active", boolean=True)
    def is_active(self, row: LastSeen) -> bool:
        return row.user.is_active


@admin.register(OutboxEntry)
class OutboxEntryAdmin(ReadOnly, admin.ModelAdmin):
    machine_field = "machine"
    list_display = ["made_at", "kind", "event", "machine", "instance", "state", "outcome", "tries", "actor"]
    list_filter = ["state", "kind", "outcome"]
    search_fields = ["machine__exact", "instance__exact", "event__exact", "actor__exact"]
    search_help_text = "exact machine, instance, event or actor"
    list_per_page = 50
    ordering = ["-pk"]
    fields = [
        "made_at", "kind", "event", "field", "machine", "instance", "actor", "reason", "expect", "state", "outcome",
        "message", "revision", "tries", "tried_at", "due", "ended_at",
    ]  # fmt: skip
    readonly_fields = fields
    actions = None


@admin.register(Token)
class TokenAdmin(ReadOnly, admin.ModelAdmin):
    """Seen with ``view_token``, revoked with ``revoke_token``. The digest of a secret is nobody's business. A
    token is of no one machine."""

    machine_field = ""
    list_display = ["name", "handle", "owner", "may", "on", "created", "expires", "last_used", "uses", "state"]
    list_filter = ["revoked", "expires"]
    list_select_related = ["owner"]
    search_fields = ["handle__exact", "name", f"owner__{get_user_model().USERNAME_FIELD}__exact"]
    fields = ["name", "handle", "owner", "may", "on", "created", "expires", "last_used", "uses", "revoked"]
    readonly_fields = fields
    actions = ["revoke"]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("machines.view_token")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("machines.revoke_token")

    @admin.display(description="rights")
    def may(self, token: Token) -> str:
        return ", ".join(token.rights)

    @admin.display(description="machines")
    def on(self, token: Token) -> str:
        return ", ".join(token.machines) or "all machines"

    @admin.display(description="state")
    def state(self, token: Token) -> str:
        return token.state()

    @admin.action(description="Revoke the selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[Token]) -> None:
        actor = Actor.of(request)
        count = sum(tokens.revoke(actor, token) for token in chosen.select_related("owner"))
        messages.success(request, f"{count} {'token is' if count == 1 else 'tokens are'} revoked.")


@admin.register(MachineVersion)
class MachineVersionAdmin(ReadOnly, admin.ModelAdmin):
    machine_field = "machine__name"
    list_display = ["machine", "number", "is_current", "digest", "published_at", "published_by", "notes"]
    list_display_links = ["machine", "number"]
    list_filter = [("machine", admin.RelatedOnlyFieldListFilter)]
    list_select_related = ["machine", "published_by"]
    fieldsets = [
        (None, {"fields": ["machine", "number", "is_current", "published_at", "published_by", "digest", "notes"]}),
        ("Diagram", {"fields": ["diagram"], "classes": ["sb-bare"]}),
        ("Definition", {"fields": ["document"], "classes": ["sb-bare"]}),
    ]
    readonly_fields = ["is_current", "diagram", "document"]

    class Media:
        css = {"all": STYLES}
        js = SCRIPTS

    def get_queryset(self, request: HttpRequest) -> QuerySet[MachineVersion]:
        """Defer documents and drawings, which the list does not show."""
        found = super().get_queryset(request)
        listing = request.resolver_match is not None and request.resolver_match.url_name.endswith("_changelist")
        return found.defer("definition", "drawing") if listing else found

    @admin.display(boolean=True, description="current")
    def is_current(self, version: MachineVersion) -> bool:
        return version.number == version.machine.current

    @admin.display(description="diagram")
    def diagram(self, version: MachineVersion) -> SafeString:
        return format_html(
            '<div class="sb-frame" tabindex="0" role="region" aria-label="Diagram, scrollable">{}</div>',
            drawing(version),
        )

    @admin.display(description="definition")
    def document(self, version: MachineVersion) -> SafeString:
        text = json.dumps(version.definition, indent=2, ensure_ascii=False)
        return format_html('<pre class="sb-document">{}</pre>', text)
