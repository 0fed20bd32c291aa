"""The calling account and its permissions."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from dashboard.api.framework.openapi_document import text
from dashboard.api.framework.operation import Group, actor_of, caller_of
from dashboard.api.framework.schemas import Ms, Out
from machines.people.permissions import RIGHTS

group = Group("callers", "The account of the caller.")


class TokenOut(Out):
    id: str = Field(validation_alias="handle", description="the public part of the token")
    name: str
    expires: Ms


class Where(Out):
    everywhere: bool
    machines: list[str] = Field(description="where it holds; empty where it holds everywhere")


class Me(Out):
    name: str
    rights: dict[str, Where] = Field(description="right -> where it holds; rights that hold nowhere are left out")
    token: TokenOut | None = None


@group.get("/openapi.json", id="getDocument", right="view", answers=dict[str, Any], summary="Get this document")
def document(request: HttpRequest) -> HttpResponse:
    """Return everything the API takes and answers, as OpenAPI 3.1 has it."""
    return HttpResponse(text(), content_type="application/json; charset=utf-8")


@group.get("/me", id="getMe", right="view", answers=Me, summary="Get the current account")
def me(request: HttpRequest) -> dict[str, Any]:
    """Return the account behind the credentials, and what it may do where."""
    actor, token = actor_of(request), caller_of(request).token
    held = {right: actor.scope(right) for right in RIGHTS}
    return {
        "name": actor.name,
        "rights": {
            right: {"everywhere": scope.all, "machines": sorted(scope.names)} for right, scope in held.items() if scope
        },
        "token": token,
    }
