"""Login and logout, for the pages and the admin alike: throttled by name and by address, and audited.

There are two limits, both fixed windows (``SIGNALBOX_LOGIN_WINDOW``): a number of attempts for one name from any
address, and five times as many from one address (an IPv6 address by its /64). An attempt counts before the password is
checked, so parallel guesses count too. A refused attempt prolongs nothing: when the window ends, all attempts are
available again, and an account is never locked. Two passwords of one address are checked at a time; an attempt that is
refused for that does not count. Within the window, the right password gets the same answer as a wrong one, and an
unknown name the same as a known one. Without Redis, which holds the sessions, there is no login: 503.
"""

import hashlib
import math
import unicodedata
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters

from dashboard.serving.password_hashing import TooManyLogins, logins
from dashboard.shared.errors import redis_outage
from dashboard.shared.errors.pages import render_error
from dashboard.shared.errors.statuses import CROWDED, LOGIN_THROTTLED
from machines.audit.entries import DONE, REFUSED, record, source_of
from machines.conf import conf
from machines.connections import get_pattern
from machines.engine.errors import EngineUnavailable
from machines.patterns import Throttle
from machines.people.client_address import network_of

PER_ADDRESS = 5  # times as many as for a name: colleagues share one
BY_NAME, BY_ADDRESS, WARNED = "login.name", "login.address", "login.warned"
UNKNOWN_NAME = "(unknown)"  # no account has that name; what was typed may be a password in the wrong field


class LoginAttempt:
    """Counts one attempt to log in by its name and address, and audits the outcome."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.typed = request.POST.get("username") or request.POST.get("login", "")
        self.keys = {BY_ADDRESS: network_of(request.META.get("REMOTE_ADDR") or ""), BY_NAME: digest_of(self.typed)}

    def wait(self) -> float:
        """Count the attempt and return 0, or return the seconds until the next one is allowed."""
        limit, per = conf.LOGIN_ATTEMPTS, conf.LOGIN_WINDOW
        for name, times in ((BY_ADDRESS, PER_ADDRESS), (BY_NAME, 1)):
            verdict = get_pattern(Throttle).count(name, self.keys[name], limit=limit * times, per=per)
            if not verdict.allowed:
                self._audit_throttled(name, per)
                return verdict.retry_after
        return 0.0

    def _audit_throttled(self, name: str, per: int) -> None:
        """Record a throttled attempt in the audit, once per window: an attacker can send a million."""
        if get_pattern(Throttle).count(WARNED, f"{name} {self.keys[name]}", limit=1, per=per).allowed:
            self.write("login.throttled", REFUSED, by=name.rpartition(".")[2])

    def reset(self) -> None:
        """Reset the limit of the name. The limit of the address stays."""
        get_pattern(Throttle).forget(BY_NAME, self.keys[BY_NAME])

    def write(self, action: str, outcome: str, **detail: str) -> None:
        model = get_user_model()
        accounts = model._default_manager.filter(**{model.USERNAME_FIELD: self.typed.replace("\0", "")})
        actor = self.typed if accounts.exists() else UNKNOWN_NAME
        record(actor, action, outcome=outcome, source=source_of(self.request), detail=detail)


def throttle(view: Callable[..., HttpResponse], *, records: bool = True) -> Callable[..., HttpResponse]:
    """Wrap a login view: its POSTs are counted, answered with a 429 once there are too many, and audited. ``records``:
    a redirect is a login; otherwise the view has more steps and records logins itself."""

    @sensitive_post_parameters()
    @wraps(view)
    def admit(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        attempt = LoginAttempt(request)
        try:
            with logins.one(attempt.keys[BY_ADDRESS]):
                return _log_in(attempt, view, records, *args, **kwargs)
        except TooManyLogins:
            return answer_concurrent(request)
        except EngineUnavailable as error:
            return redis_outage.answer(request, error)

    return admit


def _log_in(
    attempt: LoginAttempt, view: Callable[..., HttpResponse], records: bool, *args: Any, **kwargs: Any
) -> HttpResponse:
    if wait := attempt.wait():
        return answer_throttled(attempt.request, wait)
    response = view(attempt.request, *args, **kwargs)
    if response.status_code == 302:
        attempt.reset()
        if records:
            record(attempt.request.user, "login", outcome=DONE, source=source_of(attempt.request))
    else:
        attempt.write("login.failed", REFUSED)
    return response


def answer_concurrent(request: HttpRequest) -> HttpResponse:
    response = render_error(
        request, 429, title="Too many logins at once", code=CROWDED,
        message="Login failed: too many simultaneous logins from this address.",
        hint="Try again in a few seconds.",
    )  # fmt: skip
    response["Retry-After"] = "2"
    return response


def answer_throttled(request: HttpRequest, wait: float) -> HttpResponse:
    minutes = math.ceil(wait / 60)
    response = render_error(
        request, 429, title="Too many attempts", code=LOGIN_THROTTLED,
        message="Login failed: too many attempts for this username or from this address.",
        hint=f"Try again in {minutes} minute{'' if minutes == 1 else 's'}. The account is not locked.",
    )  # fmt: skip
    response["Retry-After"] = str(math.ceil(wait))
    return response


def digest_of(name: str) -> str:
    """Return the hash of a username for the key of its limit, normalized as accounts are compared. Redis does not show
    the name."""
    folded = unicodedata.normalize("NFKC", name).strip().casefold()
    return hashlib.sha256(folded.encode("utf-8", "backslashreplace")).hexdigest()[:32]


class Login(LoginView):
    template_name = "signalbox/account/login.html"
    redirect_authenticated_user = True

    @method_decorator(throttle)
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return super().post(request, *args, **kwargs)


class Logout(LogoutView):
    def get_default_redirect_url(self) -> str:
        """Return LOGOUT_REDIRECT_URL, or the login page if the project does not set it, since we have no logout
        page."""
        return str(resolve_url(settings.LOGOUT_REDIRECT_URL or settings.LOGIN_URL))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.user.is_authenticated:
            record(request.user, "logout", outcome=DONE, source=source_of(request))
        return super().post(request, *args, **kwargs)


login = Login.as_view()
logout = Logout.as_view()
