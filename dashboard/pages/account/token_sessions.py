"""Sessions that a person's programs made with their tokens: listed beside the tokens, ended here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from machines.access import token_sessions
from machines.models import Token
from machines.patterns import Held
from machines.services import Actor, sessions


@dataclass(frozen=True, slots=True)
class Row:
    """One session and the token it was made with."""

    held: Held
    token: Token


def sessions_of(user: Any) -> list[Row]:
    """Of the tokens that hold; those of others open nothing and end by themselves."""
    tokens = {token.handle: token for token in Token.holding(user)}
    return [Row(held, tokens[held.subject]) for held in token_sessions.of(tokens.values())]


@require_POST
@login_required
def end(request: HttpRequest, handle: str) -> HttpResponse:
    if sessions.revoke(Actor.of(request), list(Token.holding(request.user)), handle) is None:
        raise Http404("Session not found.")
    messages.success(request, f"Session {handle} ended")
    return _back()


@require_POST
@login_required
def end_all(request: HttpRequest) -> HttpResponse:
    ended = sessions.revoke_all(Actor.of(request), list(Token.holding(request.user)))
    messages.success(request, f"{ended} session{'s are' if ended != 1 else ' is'} ended.")
    return _back()


def _back() -> HttpResponse:
    return redirect(reverse("tokens") + "#sessions")
