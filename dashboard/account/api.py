"""The caller's account: sessions of API tokens (a short-lived credential in place of the token, with data of its own)
and saved views."""

from typing import Any

from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import Status
from pydantic import Field

from dashboard.api.framework import openapi
from dashboard.api.framework.operation import Group, actor_of, caller_of
from dashboard.api.framework.request_terms import read_expected, set_etag
from dashboard.api.framework.schemas import Body, Items, Mistaken, Out
from dashboard.models import SavedView
from machines.models import Token
from machines.patterns import Session
from machines.people import actions, tokens
from machines.people.permissions import RIGHTS
from machines.people.tokens import LEAST_TTL, LIFETIME, MAX_TTL, TTL

sessions_group = Group(
    "sessions",
    "Sessions: short-lived credentials with data of their own, used in place of the token.",
    recorded=False,
    right="view",
)
State = dict[str, Any]
HOLDS = f"since its last use; {LIFETIME // 3600} hours after it was made it ends in any case"


class SessionOut(Out.derive(Session, "revision", times="created expires")):
    """revision: of its state: what If-Match takes"""

    id: str = Field(validation_alias="handle", description="its public name; it stays when the session is rotated")
    token: str = Field(validation_alias="subject", description="the public part of the token it was made with")


class SessionOwnOut(SessionOut):
    state: State


class SessionMadeOut(SessionOwnOut):
    session: str = Field(description="what to send as Authorization: Bearer; it cannot be shown again")


class SessionMaking(Body):
    ttl: int = Field(TTL, ge=LEAST_TTL, le=MAX_TTL, description=f"seconds it holds {HOLDS}")
    state: State = Field(default_factory=dict, description="whatever the program wants to find again, 16 KB at most")


class SessionPutting(Body):
    state: State


class SessionsEnded(Out):
    ended: int


def _get_current(request: HttpRequest) -> Session:
    found = caller_of(request).session
    if found is None:
        raise Http404("This request has no session: create one with POST /sessions.")
    return found


def _list_tokens(request: HttpRequest) -> list[Token]:
    """Return the caller's own token, or every valid token of a person who uses the pages."""
    caller = caller_of(request)
    return [caller.token] if caller.token else list(Token.holding(caller.actor.user))


@sessions_group.post(
    "/sessions", once=False, answers={201: SessionMadeOut}, refusals=(409,),
    example={"ttl": 900, "state": {"cursor": None}},
)  # fmt: skip
def make_session(request: HttpRequest, body: SessionMaking) -> Status[SessionMadeOut]:
    """Create a session from a token.

    Take the token itself. The session may do what the token may at that moment, and ends with it.
    """
    caller = caller_of(request)
    token = None if caller.session else caller.token
    made, text = actions.make_session(caller.actor, token, body.state, ttl=body.ttl)
    return Status(201, SessionMadeOut.build(made, session=text))


@sessions_group.get("/sessions", answers=Items[SessionOut])
def list_sessions(request: HttpRequest) -> dict[str, Any]:
    """List sessions of the token.

    List the sessions of the token, or of all tokens of a person on the pages; the one that ends first in front.
    """
    return {"items": list(tokens.list_sessions(_list_tokens(request)))}


@sessions_group.delete("/sessions", answers=SessionsEnded)
def revoke_sessions(request: HttpRequest) -> dict[str, int]:
    """End all sessions.

    Revoke all sessions of the token, the one that asks too.
    """
    return {"ended": actions.revoke_sessions(actor_of(request), _list_tokens(request))}


@sessions_group.get("/sessions/current", answers=SessionOwnOut, refusals=(404,))
def get_session(request: HttpRequest, response: HttpResponse) -> Session:
    """Get the current session.

    Return the session of the request; `ETag` is the revision of its state.
    """
    return set_etag(response, _get_current(request))


@sessions_group.put(
    "/sessions/current", once=False, answers=SessionOwnOut, refusals=(404,), matches=True,
    example={"state": {"cursor": "WyJpbnN0"}},
)  # fmt: skip
def put_session(request: HttpRequest, response: HttpResponse, body: SessionPutting) -> Session:
    """Replace the session data.

    Replace the whole state. With `If-Match`, only if nobody wrote since.
    """
    current = _get_current(request).token
    return set_etag(response, tokens.get_sessions().put(current, body.state, expect=read_expected(request)))


@sessions_group.delete("/sessions/current", once=False, answers=SessionsEnded, refusals=(404,))
def end_session(request: HttpRequest) -> dict[str, int]:
    """End the current session.

    End the session: it opens nothing from here on.
    """
    return {"ended": int(_end(request, _get_current(request).handle))}


@sessions_group.post("/sessions/current/rotate", once=False, answers=SessionMadeOut, refusals=(404,))
def rotate_session(request: HttpRequest, response: HttpResponse) -> SessionMadeOut:
    """Rotate the session text.

    Replace the session's text. State, revision and handle stay; the former text opens nothing from here on.
    """
    turned = tokens.get_sessions().rotate(_get_current(request).token)
    return SessionMadeOut.build(set_etag(response, turned), session=tokens.BEGINNING + turned.token)


@sessions_group.delete("/sessions/{str:session}", answers=SessionsEnded)
def revoke_session(request: HttpRequest, session: str) -> dict[str, int]:
    """End a session.

    Revoke the session with this handle.
    """
    if not _end(request, session):
        raise Http404("Session not found.")
    return {"ended": 1}


def _end(request: HttpRequest, handle: str) -> bool:
    return actions.revoke_session(actor_of(request), _list_tokens(request), handle) is not None


callers_group = Group("callers", "The account of the caller.", right="view")


class TokenOut(Out.derive(Token, "name", times="expires")):
    id: str = Field(validation_alias="handle", description="the public part of the token")


class Where(Out):
    everywhere: bool
    machines: list[str] = Field(description="where it holds; empty where it holds everywhere")


class Me(Out):
    name: str
    rights: dict[str, Where] = Field(description="right -> where it holds; rights that hold nowhere are left out")
    token: TokenOut | None = None


@callers_group.get("/openapi.json", answers=dict[str, Any])
def get_document(request: HttpRequest) -> HttpResponse:
    """Get this document.

    Return everything the API takes and answers, as OpenAPI 3.1 has it.
    """
    return HttpResponse(openapi.text(), content_type="application/json; charset=utf-8")


@callers_group.get("/me", answers=Me)
def get_me(request: HttpRequest) -> dict[str, Any]:
    """Get the current account.

    Return the account behind the credentials, and what it may do where.
    """
    actor, token = actor_of(request), caller_of(request).token
    held = {right: actor.scope(right) for right in RIGHTS}
    return {
        "name": actor.name,
        "rights": {
            right: {"everywhere": scope.all, "machines": sorted(scope.names)} for right, scope in held.items() if scope
        },
        "token": token,
    }


def _describe_mistake(error: ValidationError, body: type[Body]) -> Mistaken:
    """Return the first error of a model, at the member of the body that has its name."""
    name, texts = next(iter(error.message_dict.items()))
    return Mistaken(" ".join(texts), *([name] if name in body.model_fields else []))


views_group = Group("views", "Saved views: named filters of a list.", recorded=False, right="view")


class ViewOut(Out.derive(SavedView, "id name shared page query url")):
    owner: str


class Saving(Body):
    name: str = Field(min_length=1, max_length=60)
    page: str = Field(max_length=300, description="the path of a page that only shows")
    query: str = Field("", max_length=2000)
    shared: bool = Field(False, description="every account that may see the page may see the view")


class Gone(Out):
    id: int


def _describe(view: SavedView) -> ViewOut:
    return ViewOut.build(view, owner=view.owner.get_username())


@views_group.get("/views", answers=Items[ViewOut])
def list_views(request: HttpRequest) -> dict[str, Any]:
    """List your own and shared views.

    List saved views of pages the caller may open.
    """
    actor = actor_of(request)
    scope = actor.scope("view")
    found = SavedView.list_for(actor.user, lambda machine: actor.may("reveal", machine))
    return {"items": [_describe(view) for view in found if not view.machine or view.machine in scope]}


@views_group.post(
    "/views", answers=ViewOut,
    example={"name": "stuck payments", "page": "/machines/payment/", "query": "state=paying&older=1h"},
)  # fmt: skip
def save_view(request: HttpRequest, body: Saving) -> ViewOut:
    """Save a view."""
    view = SavedView(owner=actor_of(request).user, **body.model_dump())
    try:
        view.save()
    except ValidationError as error:
        raise _describe_mistake(error, Saving) from None
    return _describe(view)


@views_group.delete("/views/{int:view}", answers=Gone)
def delete_view(request: HttpRequest, view: int) -> dict[str, int]:
    """Delete a view."""
    count, _ = SavedView.objects.filter(pk=view, owner=actor_of(request).user).delete()
    if not count:
        raise Http404("View not found.")
    return {"id": view}
