"""Audit entries, tokens and who was last seen in the admin, and what all lists there have in common: they are
read-only, and show what the account may see."""

import json
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_permission_codename, get_user_model
from django.db.models import QuerySet
from django.forms.widgets import Script
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from machines.audit.models import AuditEntry

from . import actions as tokens
from . import permissions
from .actor import Actor
from .models import LastSeen, Token

STYLES = ["signalbox/admin/diagram.css", "signalbox/admin/admin.css"]
SCRIPTS = [Script("signalbox/admin/frame.js", type="module")]
SHOWN = 48  # characters of a text in the list


def may(request: HttpRequest, right: str, machine: str = "") -> bool:
    """Tell whether the user holds a right. ``right`` as ``machines.people.permissions`` names it; of all machines where
    none is named."""
    return permissions.allows(request.user, right, machine)


class ReadOnly:
    """For a ModelAdmin: seen with ``view``, never added, changed or deleted by the admin's own forms.

    ``machine_field`` leads from a row to the name of its machine: a list holds no others than those that may be seen,
    and a row that may not be is one that is not there. It is empty for rows that are of no one machine.
    """

    machine_field = "name"
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found = super().get_queryset(request)  # type: ignore[misc]
        return permissions.scope_of(request.user).narrow(found, self.machine_field) if self.machine_field else found

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return permissions.anywhere(request.user, "view")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_add_permission = has_delete_permission = has_change_permission


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
