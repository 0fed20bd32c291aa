"""API tokens in the admin: owner, permissions, last use, and revoking them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.http import HttpRequest

from machines.people import actions as tokens
from machines.people.actor import Actor
from machines.people.models.token import Token

from .permissions import ReadOnly


@admin.register(Token)
class TokenAdmin(ReadOnly, admin.ModelAdmin):
    """Seen with ``view_token``, revoked with ``revoke_token``. The digest of a secret is nobody's business."""

    list_display = ["name", "handle", "owner", "may", "on", "created", "expires", "last_used", "uses", "state"]
    list_filter = ["revoked", "expires"]
    list_select_related = ["owner"]
    search_fields = ["handle__exact", "name", f"owner__{get_user_model().USERNAME_FIELD}__exact"]
    show_full_result_count = False
    fields = ["name", "handle", "owner", "may", "on", "created", "expires", "last_used", "uses", "revoked"]
    readonly_fields = fields
    actions = ["revoke"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Token]:
        """Return all of them: a token is of no one machine."""
        return admin.ModelAdmin.get_queryset(self, request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("machines.view_token")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

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
