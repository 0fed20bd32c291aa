"""A person's own page: preferences, rights, saved views, links and sessions."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from dashboard.models import SavedView
from dashboard.shared import themes
from dashboard.shared.errors.panels import Panels
from dashboard.shared.form_views import go_back
from dashboard.shared.permissions import MEANINGS, scope_of
from dashboard.shared.rendering import render_page
from dashboard.shared.times import time_zones

from . import links
from .forms import PreferencesForm
from .presenters import list_rights, sessions_of


@login_required
def show(request: HttpRequest) -> HttpResponse:
    """Show the account page. A POST saves the preferences."""
    kept = request.preferences
    initial = {"time_zone": kept.time_zone or time_zones.zone_of("").key}
    form = PreferencesForm(request.POST if request.method == "POST" else None, instance=kept, initial=initial)
    if form.is_valid():
        form.save()
        messages.success(request, "Settings saved")
        response: HttpResponse = redirect("signalbox:account")
        themes.remember(response, kept.theme)
        return response
    status = 400 if form.is_bound else 200
    return render_page(
        request,
        "signalbox/account/account.html",
        {"section": "account", "form": form, **_make_context(request)},
        status=status,
    )


@require_POST
@login_required
def choose_zone(request: HttpRequest) -> HttpResponse:
    """Save the time zone that the browser reported, and return to the page where it was offered."""
    name, kept = request.POST.get("time_zone", ""), request.preferences
    if time_zones.is_zone(name):
        kept.time_zone = name
        kept.save()
        messages.success(request, f"Times are now shown in {name}. You can change this in your account.")
    else:
        messages.error(request, "Unknown time zone. Choose one in your account.")
    return go_back(request, "account")


@require_POST
@login_required
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Save the theme, and return to the page where it was chosen."""
    theme, kept = request.POST.get("theme", ""), request.preferences
    if theme not in themes.CHOICES:
        messages.error(request, "Unknown theme: choose light, dark or as the system.")
        return go_back(request, "account")
    kept.theme = theme
    kept.save()
    response = go_back(request, "account")
    themes.remember(response, theme)
    return response


def _make_context(request: HttpRequest) -> dict[str, Any]:
    panels = Panels()
    return {
        "rights": frozenset(right for right in MEANINGS if scope_of(request.user, right).all),
        "held": list_rights(request.user),
        "views": SavedView.objects.filter(owner=request.user),
        "links": panels.read("links", lambda: links.list_links(request.user), []),
        "sessions": panels.read("sessions", lambda: len(sessions_of(request.user)), 0),
        "groups": [group.name for group in request.user.groups.order_by("name")],
        "away": panels.away,
    }
