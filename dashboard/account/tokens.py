"""API tokens of the person who is logged in, and the sessions made with them: create, list, revoke."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard.serving.shared_cache import get_shared_cache
from dashboard.shared.errors.panels import Panels
from dashboard.shared.permissions import rights_of
from dashboard.shared.rendering import render_page
from machines.models import Token
from machines.people import actions as tokens
from machines.people.actor import Actor
from machines.people.tokens import Unmakeable

from .forms import TokenForm
from .presenters import sessions_of

DAY = 86_400  # seconds a form that was sent is remembered
ENDED_SHOWN = timedelta(days=30)


@login_required
def show(request: HttpRequest) -> HttpResponse:
    """Show the tokens and the form. A POST creates a token and shows its text, only once."""
    form = TokenForm(request.user, request.POST if request.method == "POST" else None)
    if request.method != "POST" or not form.is_valid():
        return _render_page(request, form, status=400 if form.is_bound else 200)
    given = form.cleaned_data
    cache = get_shared_cache()
    if not cache.add(f"token-form:{request.user.pk}:{given['key']}", 1, DAY):
        messages.info(
            request, "This token was already created. It is shown only once; if you lost it, create a new one."
        )
        return redirect("signalbox:tokens")
    try:
        made, text = tokens.make(
            Actor.of(request), given["name"], given["rights"], machines=given["machines"], days=given["days"]
        )
    except Unmakeable as error:
        cache.delete(f"token-form:{request.user.pk}:{given['key']}")
        form.add_error(error.field if error.field in form.fields else None, str(error))
        return _render_page(request, form, status=400)
    return _render_page(request, TokenForm(request.user), made=made, text=text)


@require_POST
@login_required
def revoke(request: HttpRequest, handle: str) -> HttpResponse:
    """Revoke a token of the person who is logged in. Tokens of others are revoked in the admin."""
    token = Token.objects.filter(owner=request.user, handle=handle).first()
    if token is None:
        raise Http404("Token not found.")
    tokens.revoke(Actor.of(request), token)
    messages.success(request, f"Token {token.name} revoked")
    return redirect("signalbox:tokens")


def _render_page(
    request: HttpRequest, form: TokenForm, *, made: Token | None = None, text: str = "", status: int = 200
) -> HttpResponse:
    now, panels = timezone.now(), Panels()
    rows = [
        (token, token.state(now))
        for token in Token.objects.filter(owner=request.user)
        if token.state(now) == "active" or max(token.created, token.revoked or token.expires) > now - ENDED_SHOWN
    ]
    context = {
        "section": "account", "form": form, "rows": rows, "made": made, "text": text, "rights": rights_of(request.user),
        "sessions": panels.read("sessions", lambda: sessions_of(request.user), []),
        "away": panels.away,
    }  # fmt: skip
    return render_page(request, "signalbox/account/tokens.html", context, status=status)


@require_POST
@login_required
def end(request: HttpRequest, handle: str) -> HttpResponse:
    if tokens.revoke_session(Actor.of(request), list(Token.holding(request.user)), handle) is None:
        raise Http404("Session not found.")
    messages.success(request, f"Session {handle} ended")
    return _back()


@require_POST
@login_required
def end_all(request: HttpRequest) -> HttpResponse:
    ended = tokens.revoke_sessions(Actor.of(request), list(Token.holding(request.user)))
    messages.success(request, f"{ended} session{'s are' if ended != 1 else ' is'} ended.")
    return _back()


def _back() -> HttpResponse:
    return redirect(reverse("signalbox:tokens") + "#sessions")
