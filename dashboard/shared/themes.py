"""The theme of a page: the person's choice, kept with their preferences, and in a cookie for pages before the login."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from dashboard.models import Preferences
from dashboard.site.mount_point import mount_path

COOKIE = "signalbox_theme"
YEAR = 365 * 86400  # seconds
CHOICES = frozenset(Preferences.Theme.values)


def theme_of(request: HttpRequest | None) -> str:
    """Return "light", "dark", or "" where the system's theme holds."""
    if request is None:
        return ""
    kept = getattr(request, "preferences", None) if hasattr(request, "user") else None  # none before the log-in is read
    theme = kept.theme if kept is not None and kept.user_id else request.COOKIES.get(COOKIE, "")
    return theme if theme in CHOICES else ""


def remember(response: HttpResponse, theme: str) -> None:
    """Write the choice into the cookie, for the login page and the pages of an outage."""
    response.set_cookie(
        COOKIE, theme, max_age=YEAR, path=mount_path(), httponly=True, samesite="Lax",
        secure=bool(settings.SESSION_COOKIE_SECURE),
    )  # fmt: skip
