"""Django system check W028: the Content-Security-Policy that a browser gets blocks our scripts, styles or live view.

Settings do not tell: Django and django-csp keep the policy that our pages bring, a middleware of the project may
replace it, and our screens in the project's admin have the project's. So the check asks the project's middleware,
with an empty page in the place of each view.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import Any
from unittest.mock import patch
from urllib.parse import SplitResult, urljoin, urlsplit

from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.core.mail import EmailMessage
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static
from django.test import RequestFactory
from django.urls import NoReverseMatch, reverse

from dashboard.serving.middleware.own_pages import wrap_view
from machines.conf.project import Finding
from machines.templatetags.machine_admin import read_nonce

HEADER = "Content-Security-Policy"
LOADED = (("script-src-elem", "script-src"), ("style-src-elem", "style-src"))
"""Directives for what every screen loads: of each group browsers take the first that is there."""
LIVE = ("connect-src",)
"""The directive for what our pages read later, and for their socket. Screens in the admin read nothing later, and make
no HTML."""
UPGRADES = {"https": "http", "wss": "ws"}
"""Scheme -> the scheme of sources that allow it, too. Chromium takes neither ``http:`` nor a bare host for a socket."""
TRUSTED_TYPES = "signalbox"
"""The name of the policy that scripts of our pages make."""
OURS = "Leave a policy that an answer already has as it is, or give pages below {path} one that allows 'self'."
ADMINS = "Add \"'self'\" (CSP.SELF), or the nonce (CSP.NONCE), to these directives of the policy of the admin."

View = Callable[[HttpRequest], HttpResponse]
Policy = Mapping[str, list[str]]


def find_blocking(script: str) -> Iterator[Finding]:
    """Find W028: a policy that blocks our pages, or our screens in the project's admin. ``script``: a static file."""
    yield from _find("signalbox:overview", "pages of Signalbox", wrap_view(_show_nothing), OURS, script, is_live=True)
    yield from _find("admin:index", "the screens of machines in the admin", _show_nothing, ADMINS, script)


def _find(name: str, what: str, view: View, hint: str, script: str, *, is_live: bool = False) -> Iterator[Finding]:
    try:
        path = reverse(name)
    except NoReverseMatch:  # E021 says it of our pages
        return
    request = RequestFactory().get(path, secure=True, headers={"host": _choose_host()})
    answer = _answer(request, view)
    if answer is None or answer.status_code != HTTPStatus.OK:  # a middleware answers for itself, or wants a real view
        return
    page = urlsplit(request.build_absolute_uri())
    header, address = answer.headers.get(HEADER, ""), urlsplit(_find_address(script, page))
    blocked = find_blocked(header, page, address, request, is_live=is_live)
    if blocked:
        text = f"the {HEADER} of {what} ({path}) blocks what they need: {'; '.join(blocked)}"
        yield Finding("signalbox.W028", text, hint.format(path=path))


def _find_address(script: str, page: SplitResult) -> str:
    try:
        found = static(script)
    except ValueError:  # a storage with a manifest, before collectstatic
        found = urljoin(settings.STATIC_URL or "/", script)
    return urljoin(page.geturl(), found)


def _choose_host() -> str:
    names = [name.removeprefix(".") for name in settings.ALLOWED_HOSTS if name != "*"]
    return next(iter(names), "localhost")


class _Handler(BaseHandler):
    """Answers by one view inside of the project's middleware."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.load_middleware()

    def _get_response(self, request: HttpRequest) -> HttpResponse:
        return self._view(request)


def _answer(request: HttpRequest, view: View) -> HttpResponse | None:
    """Return the answer; None where the middleware fails, which here says nothing of the project."""
    with _discard_effects(), suppress(Exception):  # as with DEBUG_PROPAGATE_EXCEPTIONS
        return _Handler(view).get_response(request)
    return None


@contextmanager
def _discard_effects() -> Iterator[None]:
    """Run the block without log lines, mail, and rows that stay: middleware may count each request."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    _close_connections()
    connection_created.connect(_begin_transaction)
    try:
        with patch.object(EmailMessage, "send", return_value=0):
            yield
    finally:
        connection_created.disconnect(_begin_transaction)
        _close_connections()  # which rolls back
        logging.disable(before)


def _begin_transaction(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)


def _close_connections() -> None:
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def _show_nothing(request: HttpRequest) -> HttpResponse:
    str(read_nonce(request))  # as templates ask for it: only then is it in the policy
    return HttpResponse("<!doctype html>")


def find_blocked(
    header: str, page: SplitResult, script: SplitResult, request: HttpRequest, *, is_live: bool
) -> list[str]:
    """Return each part of the policies of a header that blocks scripts, styles or, if there is one, the live view."""
    nonce = str(read_nonce(request) or "")
    policies = [_parse(text) for text in header.split(",")]
    return [part for policy in policies for part in _find_blocked(policy, page, script, nonce, is_live=is_live)]


def _parse(text: str) -> Policy:
    """Read a policy; of two directives of one name the first holds."""
    parts = [part.split() for part in text.split(";") if part.strip()]
    return {name.lower(): sources for name, *sources in reversed(parts)}


def _find_blocked(
    policy: Policy, page: SplitResult, script: SplitResult, nonce: str, *, is_live: bool
) -> Iterator[str]:
    if "sandbox" in policy and "allow-scripts" not in policy["sandbox"]:
        yield "sandbox"
    needed: list[tuple[tuple[str, ...], list[SplitResult], str]] = [(names, [script], nonce) for names in LOADED]
    if is_live:
        socket = page._replace(scheme=page.scheme.replace("http", "ws"))
        needed.append((LIVE, [page, socket] if getattr(settings, "ASGI_APPLICATION", None) else [page], ""))
    for names, urls, allowed in needed:
        name = next((each for each in (*names, "default-src") if each in policy), None)
        if name and not all(_allows(policy[name], url, page, allowed) for url in urls):
            yield " ".join([name, *policy[name]])
    types = policy.get("trusted-types")
    if is_live and types is not None and not {TRUSTED_TYPES, "*"} & set(types):
        yield " ".join(["trusted-types", *types])


def _allows(sources: list[str], url: SplitResult, page: SplitResult, nonce: str) -> bool:
    if nonce and f"'nonce-{nonce}'" in sources:
        return True
    return "'strict-dynamic'" not in sources and any(_matches(source.lower(), url, page) for source in sources)


def _matches(source: str, url: SplitResult, page: SplitResult) -> bool:
    """Tell whether a source of a policy allows an address: ``'self'``, ``*``, ``https:``, ``*.example.com/static/``."""
    schemes, is_socket = (url.scheme, UPGRADES.get(url.scheme, url.scheme)), url.scheme.startswith("ws")
    if source == "'self'":
        own = page.scheme.replace("http", "ws") if is_socket else page.scheme
        return (url.scheme, url.netloc) == (own, page.netloc)
    if source == "*" or source.removesuffix(":") in schemes:
        return True
    wanted = urlsplit(source if "://" in source else f"//{source}")
    host, found = wanted.hostname or "", url.hostname or ""
    same = found == host or (host.startswith("*.") and found.endswith(host[1:]))
    path = wanted.path in ("", url.path) or (wanted.path.endswith("/") and url.path.startswith(wanted.path))
    return bool(host) and same and path and (wanted.scheme in schemes or (wanted.scheme == "" and not is_socket))
