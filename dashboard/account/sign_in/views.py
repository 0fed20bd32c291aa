"""Views around those of django-allauth: the way to an identity provider, and what happens while it does not answer."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.adapter import get_adapter
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode

from dashboard.shared.errors.pages import render_error
from dashboard.shared.errors.statuses import BAD_REQUEST, FORBIDDEN, PROVIDER_AWAY

from .adapters import forget_metadata

log = logging.getLogger(__name__)
AT_ONCE = 0  # seconds that the provider's own sign-in may be old; with it, OpenID Connect demands ``auth_time``
READERS = ("allauth", "dashboard", "machines")
"""Packages of which the innermost in a traceback says whose mistake it is."""
View = Callable[..., HttpResponse]


def lead_to_login(request: HttpRequest) -> HttpResponse:
    """Answer for the admin's own login: there is one login, so that none is a way around a second factor."""
    if request.user.is_authenticated and not request.user.is_staff:
        raise PermissionDenied
    return redirect(f"{reverse('account_login')}?{request.GET.urlencode()}")


@login_required
def confirm(request: HttpRequest) -> HttpResponse:
    """Lead to the ways in which the person can prove who they are: password, second factor, or provider."""
    back = request.GET.get("next", "")
    back = back if url_has_allowed_host_and_scheme(back, {request.get_host()}) else "/"
    if methods := get_adapter().get_reauthentication_methods(request.user):
        return redirect(f"{methods[0]['url']}?{urlencode({'next': back})}")
    return render(request, "account/confirm.html", {"back": back, "auth_params": f"prompt=login&max_age={AT_ONCE}"})


def explain_no_password(request: HttpRequest) -> HttpResponse:
    """Answer where the library would let an account without a password set one: its provider decides about it."""
    return render_error(
        request, 403, title="No password", code=FORBIDDEN,
        message="Your account has no password: you sign in by your identity provider.",
        hint="An administrator can set one.",
    )  # fmt: skip


def guard_provider(view: View) -> View:
    """Return a view of a provider with a page between form and provider, and one for a provider that is away."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            response = view(request, *args, **kwargs)
            return _continue(request, response.url) if _is_redirect_of_form(request, response) else response
        except Exception as error:
            if _is_of_message(error):
                log.warning("a message of SAML cannot be read: %s", type(error).__name__)
                return render_error(
                    request, 400, title="Bad request", code=BAD_REQUEST,
                    message="This message is none that an identity provider sends.",
                    back={"url": reverse("account_login"), "text": "Log in"},
                )  # fmt: skip
            if not _is_of_answer(error):
                raise
            forget_metadata(request)
            log.error("the identity provider gave no usable answer: %s: %s", type(error).__name__, error)
            return render_error(
                request, 503, title="Identity provider unavailable", code=PROVIDER_AWAY,
                message="The identity provider does not answer, or not as one.",
                hint="Try again later. Accounts with a password can still log in with it.",
                back={"url": reverse("account_login"), "text": "Log in"},
            )  # fmt: skip

    return answer


def _is_of_message(error: Exception) -> bool:
    """Tell whether the library for SAML failed at what a browser brought. Any client can send that: it says nothing of
    the provider."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    names = [frame.f_code.co_name for frame in frames if frame.f_globals.get("__name__") == "onelogin.saml2.auth"]
    return "process_response" in names or "process_slo" in names


def _is_of_answer(error: Exception) -> bool:
    """Tell whether a provider is away, or what it answers is not what the library reads from it: a list in place of an
    object. The library for SAML raises Exception itself."""
    if isinstance(error, AttributeError | TypeError | ValueError):
        modules = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
        own = [name for name in modules if name.partition(".")[0] in READERS]
        return bool(own) and own[-1].startswith("allauth.socialaccount.")
    of_saml = type(error) is Exception or type(error).__module__.startswith("onelogin.")
    return of_saml or isinstance(error, OSError | KeyError)


def _is_redirect_of_form(request: HttpRequest, response: HttpResponse) -> bool:
    return request.method == "POST" and response.status_code == 302 and "://" in response["Location"]


def _continue(request: HttpRequest, url: str) -> HttpResponse:
    """Lead on by a page: browsers hold all redirects of a form to ``form-action 'self'``."""
    response = render(request, "account/continue.html", {"url": url})
    response["Refresh"] = f"0; url={url}"
    response["Cache-Control"] = "no-store"
    return response
