"""Sessions of API tokens: a short-lived credential in place of the token, with data of its own."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Status
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of, caller_of
from dashboard.api.framework.preconditions import read_expected, set_etag
from dashboard.api.framework.schemas import Body, Ms, Out
from machines.models import Token
from machines.patterns import Session
from machines.people import actions, tokens
from machines.people.tokens import LEAST_TTL, LIFETIME, MAX_TTL, TTL

group = Group(
    "sessions", "Sessions: short-lived credentials with data of their own, used in place of the token.", recorded=False
)
State = dict[str, Any]
HOLDS = f"since its last use; {LIFETIME // 3600} hours after it was made it ends in any case"


class SessionOut(Out):
    id: str = Field(validation_alias="handle", description="its public name; it stays when the session is rotated")
    token: str = Field(validation_alias="subject", description="the public part of the token it was made with")
    revision: int = Field(description="of its state: what If-Match takes")
    created: Ms
    expires: Ms


class SessionOwnOut(SessionOut):
    state: State


class SessionMadeOut(SessionOwnOut):
    session: str = Field(description="what to send as Authorization: Bearer; it cannot be shown again")


class SessionsOut(Out):
    items: list[SessionOut]


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


@group.post(
    "/sessions", id="makeSession", right="view", once=False, answers={201: SessionMadeOut}, refusals=(409,),
    summary="Create a session from a token", example={"ttl": 900, "state": {"cursor": None}},
)  # fmt: skip
def make(request: HttpRequest, body: SessionMaking) -> Status[SessionMadeOut]:
    """Take the token itself. The session may do what the token may at that moment, and ends with it."""
    caller = caller_of(request)
    token = None if caller.session else caller.token
    made, text = actions.make_session(caller.actor, token, body.state, ttl=body.ttl)
    return Status(201, SessionMadeOut.build(made, session=text))


@group.get("/sessions", id="listSessions", right="view", answers=SessionsOut, summary="List sessions of the token")
def list_all(request: HttpRequest) -> dict[str, Any]:
    """List the sessions of the token, or of all tokens of a person on the pages; the one that ends first in front."""
    return {"items": list(tokens.list_sessions(_list_tokens(request)))}


@group.delete("/sessions", id="revokeSessions", right="view", answers=SessionsEnded, summary="End all sessions")
def revoke_all(request: HttpRequest) -> dict[str, int]:
    """Revoke all sessions of the token, the one that asks too."""
    return {"ended": actions.revoke_sessions(actor_of(request), _list_tokens(request))}


@group.get(
    "/sessions/current",
    id="getSession",
    right="view",
    answers=SessionOwnOut,
    refusals=(404,),
    summary="Get the current session",
)
def current(request: HttpRequest, response: HttpResponse) -> Session:
    """Return the session of the request; `ETag` is the revision of its state."""
    return set_etag(response, _get_current(request))


@group.put(
    "/sessions/current", id="putSession", right="view", once=False, answers=SessionOwnOut, refusals=(404,),
    matches=True, summary="Replace the session data", example={"state": {"cursor": "WyJpbnN0"}},
)  # fmt: skip
def put(request: HttpRequest, response: HttpResponse, body: SessionPutting) -> Session:
    """Replace the whole state. With `If-Match`, only if nobody wrote since."""
    current = _get_current(request).token
    return set_etag(response, tokens.get_sessions().put(current, body.state, expect=read_expected(request)))


@group.delete(
    "/sessions/current",
    id="endSession",
    right="view",
    once=False,
    answers=SessionsEnded,
    refusals=(404,),
    summary="End the current session",
)
def end(request: HttpRequest) -> dict[str, int]:
    """End the session: it opens nothing from here on."""
    return {"ended": int(_end(request, _get_current(request).handle))}


@group.post(
    "/sessions/current/rotate", id="rotateSession", right="view", once=False, answers=SessionMadeOut, refusals=(404,),
    summary="Rotate the session text",
)  # fmt: skip
def rotate(request: HttpRequest, response: HttpResponse) -> SessionMadeOut:
    """Replace the session's text. State, revision and handle stay; the former text opens nothing from here on."""
    turned = tokens.get_sessions().rotate(_get_current(request).token)
    return SessionMadeOut.build(set_etag(response, turned), session=tokens.BEGINNING + turned.token)


@group.delete(
    "/sessions/{str:session}", id="revokeSession", right="view", answers=SessionsEnded, summary="End a session"
)
def revoke(request: HttpRequest, session: str) -> dict[str, int]:
    """Revoke the session with this handle."""
    if not _end(request, session):
        raise Http404("Session not found.")
    return {"ended": 1}


def _end(request: HttpRequest, handle: str) -> bool:
    return actions.revoke_session(actor_of(request), _list_tokens(request), handle) is not None
