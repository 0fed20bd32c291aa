"""Shared links to views: created beside *Save view*, listed on the account page, opened by anyone who may open the
page.
"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.shared.permissions import require
from dashboard.shared.rendering import render_page
from machines.patterns import Full, Gone

from . import links
from .links import Link

NONE = "Link not found."


@require("view")
def show(request: HttpRequest, token: str) -> HttpResponse:
    try:
        return redirect(links.open_link(request.user, token).address)
    except Gone:
        raise Http404("This link has expired, was revoked, or does not exist.") from None
    except ValidationError:
        raise Http404("The page of this link no longer exists or cannot be shared.") from None


@require("view")
def make(request: HttpRequest) -> HttpResponse:
    """Create a link from a POST with ``page`` and ``query``, and show it. It is shown only once."""
    if request.method != "POST":  # the address of an answer, opened later
        return _list()
    try:
        return _show_link(
            request, links.make_link(request.user, request.POST.get("page", ""), request.POST.get("query", ""))
        )
    except ValidationError as error:
        return _show_errors(request, [text for texts in error.message_dict.values() for text in texts], 400)
    except Full:
        return _show_errors(
            request, [f"you have {links.MAX_LINKS} active links, the maximum: revoke one in your account"], 409
        )


@login_required
def renew(request: HttpRequest, handle: str) -> HttpResponse:
    if request.method != "POST":
        return _list()
    try:
        return _show_link(request, links.renew_link(request.user, handle))
    except Gone:
        raise Http404(NONE) from None


@require_POST
@login_required
def revoke(request: HttpRequest, handle: str) -> HttpResponse:
    if not links.revoke_link(request.user, handle):
        raise Http404(NONE)
    messages.success(request, "Link revoked")
    return _list()


def _list() -> HttpResponse:
    return redirect(reverse("signalbox:account") + "#links")


def _show_link(request: HttpRequest, link: Link) -> HttpResponse:
    url = request.build_absolute_uri(reverse("signalbox:link", args=[link.token]))
    return render_page(request, "signalbox/account/link.html", {"section": "", "link": link, "url": url})


def _show_errors(request: HttpRequest, mistakes: list[str], status: int) -> HttpResponse:
    return render_page(request, "signalbox/account/link.html", {"section": "", "mistakes": mistakes}, status=status)
