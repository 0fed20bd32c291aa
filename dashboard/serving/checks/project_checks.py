"""Django system checks of a project that includes the pages: what it lacks, all at once.

E017  an app is missing                 E022  the static files are not found
E018  a middleware is missing           W023  the package dashboard is another project's (E023: machines)
E019  templates cannot be rendered      W024  LOGIN_URL leads nowhere
W020  the backend of single machines    W025  guardian makes an account for strangers
E021  the addresses are not included    W026  numbers would be written with separators
I027  the live view needs ASGI; shown by ``check --deploy`` alone, since a project under WSGI lacks nothing
"""

from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.checks import CheckMessage, register
from django.shortcuts import resolve_url
from django.template import TemplateDoesNotExist
from django.template.loader import get_template
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from django.utils import translation

from dashboard.site.environment import is_own_site
from machines.conf.project import Finding, find_missing

from .system_checks import report

TAG = "signalbox"
TEMPLATE = "signalbox/base.html"
SCRIPT = "signalbox/js/shared/base.js"


@register(TAG)
def project(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report everything that the project lacks; nothing on Signalbox's own site, whose settings have it all."""
    if is_own_site():
        return []
    found = [*find_missing(), *_find_files(), *_find_addresses(), *_find_language()]
    return _make_messages(found)


@register(TAG, deploy=True)
def live_view(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Tell that pages will poll."""
    return [] if is_own_site() else _make_messages(_find_asgi())


def _make_messages(found: Iterable[Finding]) -> list[CheckMessage]:
    return [report(one.id.removeprefix("signalbox."), one.text, one.hint) for one in found]


def _find_files() -> Iterator[Finding]:
    try:
        get_template(TEMPLATE)
    except TemplateDoesNotExist:
        hint = "Set APP_DIRS to True for DjangoTemplates in TEMPLATES, or give it the loader of app directories."
        yield Finding("signalbox.E019", f"no template engine finds {TEMPLATE}", hint)
    if not finders.find(SCRIPT):
        hint = 'Keep "django.contrib.staticfiles.finders.AppDirectoriesFinder" in STATICFILES_FINDERS.'
        yield Finding("signalbox.E022", f"no finder of static files finds {SCRIPT}", hint)


def _find_addresses() -> Iterator[Finding]:
    try:
        languages = [
            settings.LANGUAGE_CODE,
            *(code for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE),
        ]
        if settings.USE_I18N and len({_find_overview(code) for code in languages[:2]}) > 1:
            text = "the addresses of Signalbox are included in i18n_patterns: each language has another address"
            hint = "Include dashboard.urls outside of i18n_patterns; its pages are English."
            yield Finding("signalbox.E021", text, hint)
        reverse("signalbox:overview")
    except NoReverseMatch:
        hint = 'Add to urls.py: path("ops/", include("dashboard.urls")), with any prefix and in no other namespace.'
        yield Finding("signalbox.E021", "the addresses of Signalbox are not included in ROOT_URLCONF", hint)
    try:
        login = resolve_url(settings.LOGIN_URL)
        if login.startswith("/"):
            resolve(login)
    except (NoReverseMatch, Resolver404):
        hint = "Set LOGIN_URL to the address of your login page, or to its name; the admin's is admin:login."
        yield Finding("signalbox.W024", f"LOGIN_URL is {settings.LOGIN_URL!r}, and no address leads there", hint)


def _find_overview(language: str) -> str:
    with translation.override(language):
        return reverse("signalbox:overview")


def _find_language() -> Iterator[Finding]:
    if settings.USE_THOUSAND_SEPARATOR:
        hint = "Leave USE_THOUSAND_SEPARATOR off, and use the filters of django.contrib.humanize in your own pages."
        yield Finding("signalbox.W026", "USE_THOUSAND_SEPARATOR is on: scripts of the pages cannot read numbers", hint)


def _find_asgi() -> Iterator[Finding]:
    if not getattr(settings, "ASGI_APPLICATION", None):
        hint = (
            "Under WSGI pages poll every few seconds, and nothing is missing. For sockets serve ASGI, with "
            "add_live_view(get_asgi_application()) from dashboard.serving.live_view, and set ASGI_APPLICATION."
        )
        yield Finding("signalbox.I027", "ASGI_APPLICATION is not set: pages poll in place of opening a socket", hint)
