"""Decides for django-allauth what Signalbox decides itself: accounts, groups, the audit, messages, error pages.

A project with its own django-allauth names these classes, or subclasses of them, in its settings.

``SIGN_IN_GROUPS`` maps a group of the identity provider to groups of Django, and so to rights. These follow the
provider at each sign-in: they are given and taken away. All other groups, and all groups while the setting is empty,
belong to the administrators of this site.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.userkit import filter_users_by_email
from allauth.account.signals import authentication_step_completed
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from dashboard.shared.errors.pages import render_error
from dashboard.shared.errors.statuses import SIGN_IN_FAILED
from machines.audit.entries import DONE, REFUSED, record, source_of
from machines.conf import conf, mark_environment
from machines.people.actor import Actor
from machines.people.sign_in_times import note_confirmation

log = logging.getLogger(__name__)
SILENT = ("account/messages/logged_in.txt", "account/messages/logged_out.txt")
NONCE = "nonce"  # of the state of a request to a provider, and of its answer
CLOCKS_APART = 300  # seconds that a provider's clock may be ahead
RENEWAL = 60  # seconds between two readings of metadata that answers with a wrong signature cause
PROVIDER = "identity provider"
"""The actor of what a provider's answer changes in an account."""


def note_step(sender: Any, request: HttpRequest, reauthenticated: bool = False, **step: Any) -> None:
    """Note a password, code or passkey that was asked for again."""
    if reauthenticated:
        note_confirmation(request)


authentication_step_completed.connect(note_step, dispatch_uid="dashboard.account.sign_in")


def read_auth_time(claims: Mapping[str, Any]) -> float:
    """Return when the person logged in at the provider, as its signed token says; 0 where it does not."""
    token = claims.get("id_token")
    at = token.get("auth_time") if isinstance(token, Mapping) else None
    return min(float(at), time.time()) if isinstance(at, int | float) else 0.0


def find_fault(sociallogin: Any) -> str:
    """Return why the provider's token is no answer to this request; "" where it is. The library checks the rest."""
    token = sociallogin.account.extra_data.get("id_token")
    claims = token if isinstance(token, Mapping) else {}
    if sociallogin.state.get(NONCE) != claims.get(NONCE):
        return "the id_token holds the nonce of another request"
    issued = claims.get("iat", 0)
    ahead = issued - time.time() if isinstance(issued, int | float) else 0
    return f"the id_token is of a time that is {ahead:.0f} seconds ahead" if ahead > CLOCKS_APART else ""


def forget_metadata(request: HttpRequest) -> None:
    """Have the metadata of SAML providers read anew with the next sign-in. The library keeps them for four hours, under
    these keys, also where nothing of the provider is in them."""
    for app in get_adapter().list_apps(request, provider="saml"):
        idp = app.settings.get("idp") or {}
        cache.delete(f"saml.metadata.{idp.get('metadata_url')}.{idp.get('entity_id')}")


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    def get_client_ip(self, request: HttpRequest) -> str:
        """Return the address as the server knows it, which believes the proxies of ``TRUSTED_PROXIES`` alone."""
        return request.META.get("REMOTE_ADDR") or "unknown"

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Count an attempt, except for logins, which ``dashboard.account.login`` has counted."""
        if request.resolver_match is None or request.resolver_match.url_name != "account_login":
            super().pre_authenticate(request, **credentials)

    def pre_login(self, request: HttpRequest, user: Any, **login: Any) -> HttpResponse | None:
        """Bring the groups up to date with the provider's answer before anything is allowed by them."""
        sociallogin = (login.get("signal_kwargs") or {}).get("sociallogin")
        if sociallogin is not None:
            request.acting = Actor(PROVIDER, source_of(request))  # type: ignore[attr-defined]
            assign_groups(user, read_groups(sociallogin.account.extra_data))
        answer: HttpResponse | None = super().pre_login(request, user, **login)
        return answer

    def post_login(self, request: HttpRequest, user: Any, **login: Any) -> HttpResponse:
        sociallogin = (login.get("signal_kwargs") or {}).get("sociallogin")
        detail = {"provider": sociallogin.provider.name} if sociallogin is not None else {}
        record(user, "login", outcome=DONE, source=source_of(request), detail=detail)
        if sociallogin is not None:  # the time of the provider's own login; 0 where it does not say
            note_confirmation(request, read_auth_time(sociallogin.account.extra_data))
        response: HttpResponse = super().post_login(request, user, **login)
        return response

    def add_message(
        self, request: HttpRequest, level: int, template: str | None = None, *said: Any, **more: Any
    ) -> None:
        if template not in SILENT:
            super().add_message(request, level, template, *said, **more)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail. One that cannot be sent is logged: an error page would tell who has an account."""
        try:
            super().send_mail(template_prefix, email, context)
        except OSError as error:
            log.error("a mail could not be sent (%s): %s", template_prefix, error)

    def format_email_subject(self, subject: str) -> str:
        return mark_environment(f"Signalbox: {subject}")


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        """Make an account at the first sign-in. Without a group that is mapped it has no rights."""
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Refuse an answer that is none, and a new person whose mail belongs to an account: the provider does not
        decide whose that is."""
        request.acting = Actor(PROVIDER, source_of(request))  # type: ignore[attr-defined]
        if fault := find_fault(sociallogin):
            self.on_authentication_error(request, sociallogin.provider, error=fault)
        if sociallogin.is_existing or sociallogin.state.get("process") == "connect":
            return
        addresses = [address.email for address in sociallogin.email_addresses]
        if any(filter_users_by_email(email) for email in addresses):
            self._refuse(
                request, 403, sociallogin.provider, "the mail address belongs to another account",
                message="Your mail address belongs to an account that is not connected to this provider.",
                hint="Log in with its password and connect the provider under Your account, or ask an administrator.",
            )  # fmt: skip

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> None:
        """Show an error page for an answer that is no sign-in: cancelled, expired, used before, signed by another."""
        reason = f"{exception}" if exception is not None else f"{getattr(error, 'value', error)}"
        details = extra_context or {}
        reason = details.get("saml_last_error_reason") or reason
        if "signature" in str(reason).lower() and cache.add("signalbox.saml.metadata", 1, RENEWAL):
            forget_metadata(request)  # the provider's certificate may have been replaced
        self._refuse(
            request, 401, provider, str(reason),
            message=f"{provider.name} did not confirm who you are, or its answer was too old or used before.",
            hint="Start again from the login page. If this happens again, compare the clocks of both servers.",
        )  # fmt: skip

    def _refuse(self, request: HttpRequest, status: int, provider: Any, reason: str, **shown: str) -> None:
        """Log and audit a refused sign-in, and answer with a page. The reason stays in log and audit."""
        log.warning("sign-in by %s refused: %s", provider.name, reason)
        record(
            PROVIDER, "login.failed", outcome=REFUSED, source=source_of(request),
            detail={"provider": provider.name, "error": reason[:300]},
        )  # fmt: skip
        back = {"url": reverse("account_login"), "text": "Log in"}
        raise ImmediateHttpResponse(
            render_error(request, status, title="Sign-in failed", code=SIGN_IN_FAILED, back=back, **shown)
        )


def read_groups(claims: Mapping[str, Any]) -> list[str]:
    """Return the groups that a provider names. OpenID Connect gives them in the answer for the user or in the token,
    SAML as an attribute; a single one may come as a text."""
    for part in (claims.get("userinfo"), claims.get("id_token"), claims):
        if isinstance(part, Mapping) and conf.SIGN_IN_CLAIM in part:
            found = part[conf.SIGN_IN_CLAIM]
            return [str(name) for name in ([found] if isinstance(found, str) else found or ())]
    return []


def assign_groups(user: Any, names: Iterable[str]) -> None:
    """Give the account the groups that its provider names now, and take away those that it no longer names."""
    mapped: Mapping[str, list[str]] = conf.SIGN_IN_GROUPS
    if not mapped:
        return
    named = set(names)
    if unknown := sorted(named - set(mapped)):
        log.info("sign-in of %s: groups without a mapping are ignored: %s", user.get_username(), ", ".join(unknown))
    wanted = {group for name in named & set(mapped) for group in mapped[name]}
    managed = {group for groups in mapped.values() for group in groups}
    groups = {group.name: group for group in Group.objects.filter(name__in=managed)}
    if missing := sorted(wanted - set(groups)):
        log.warning("SIGN_IN_GROUPS names groups that do not exist: %s", ", ".join(missing))
    held = set(user.groups.filter(name__in=managed).values_list("name", flat=True))
    user.groups.add(*(groups[name] for name in sorted(wanted - held) if name in groups))
    user.groups.remove(*(groups[name] for name in sorted(held - wanted)))
