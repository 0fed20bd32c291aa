"""A person's own page: how pages look to them, what they may do, and what is theirs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from dashboard.models import Preferences, SavedView
from dashboard.shared import links, time_zones
from dashboard.shared.access import MEANINGS, scope_of
from dashboard.shared.rendering import page

from .token_sessions import sessions_of


class PreferencesForm(forms.ModelForm):
    time_zone = forms.ChoiceField(label="time zone", choices=time_zones.choices)

    class Meta:
        model = Preferences
        fields = ("time_zone", "clock", "calm", "keys")
        labels = {"clock": "clock", "calm": "reduced motion", "keys": "keyboard shortcuts"}
        help_texts = {
            "calm": "Numbers update every five seconds, without animation.",
            "keys": "Press ? to list them. Turn them off if voice control or a screen reader uses single keys.",
        }


@dataclass(frozen=True, slots=True)
class Held:
    """A right somebody holds. ``machines``: where, empty for all of them."""

    right: str
    meaning: str
    machines: tuple[str, ...] = ()


@login_required
def show(request: HttpRequest) -> HttpResponse:
    """The preferences are saved by a POST to the same address."""
    kept = request.preferences
    initial = {"time_zone": kept.time_zone or time_zones.zone_of("").key}
    form = PreferencesForm(request.POST if request.method == "POST" else None, instance=kept, initial=initial)
    if form.is_valid():
        form.save()
        messages.success(request, "Settings saved")
        return redirect("account")
    status = 400 if form.is_bound else 200
    return page(request, "pages/account.html", {"section": "account", "form": form, **_theirs(request)}, status=status)


@require_POST
@login_required
def choose_zone(request: HttpRequest) -> HttpResponse:
    """The answer to the offer to take the browser's zone; back to the page it was made on."""
    name, kept = request.POST.get("time_zone", ""), request.preferences
    if time_zones.is_zone(name):
        kept.time_zone = name
        kept.save()
        messages.success(request, f"Times are now shown in {name}. You can change this in your account.")
    else:
        messages.error(request, "Unknown time zone. Choose one in your account.")
    back = request.POST.get("next", "")
    # As an address, not by ``redirect``: that looks a text without a slash up as the name of a view.
    ours = url_has_allowed_host_and_scheme(back, {request.get_host()})
    return HttpResponseRedirect(back if ours else reverse("account"))


def _theirs(request: HttpRequest) -> dict[str, Any]:
    return {
        "rights": frozenset(right for right in MEANINGS if scope_of(request.user, right).all),
        "held": _held(request.user),
        "views": SavedView.objects.filter(owner=request.user),
        "links": links.of(request.user),
        "sessions": len(sessions_of(request.user)),
        "groups": [group.name for group in request.user.groups.order_by("name")],
    }


def _held(user: Any) -> list[Held]:
    found = []
    for right, meaning in MEANINGS.items():
        scope = scope_of(user, right)
        if scope:
            found.append(Held(right, meaning, () if scope.all else tuple(sorted(scope.names))))
    return found
