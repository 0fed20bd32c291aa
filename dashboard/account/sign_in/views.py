"""Views around those of django-allauth: the way to an identity provider, and what happens while it does not answer."""

from __future__ import annotations

import logging
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
from dashboard.shared.errors.statuses import FORBIDDEN, PROVIDER_AWAY

log = logging.getLogger(__name__)
AT_ONCE = 0  # seconds that the provider's own sign-in may be old; with it, OpenID Connect demands ``auth_time``
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
            if not _is_of_answer(error):
                raise
            log.error("the identity provider gave no usable answer: %s: %s", type(error).__name__, error)
            return render_error(
                request, 503, title="Identity provider unavailable", code=PROVIDER_AWAY,
                message="The identity provider does not answer, or not as one.",
                hint="Try again later. Accounts with a password can still log in with it.",
                back={"url": reverse("account_login"), "text": "Log in"},
            )  # fmt: skip

    return answer


def _is_of_answer(error: Exception) -> bool:
    """Tell whether a provider is away, or its description is none. The library for SAML raises Exception itself."""
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
