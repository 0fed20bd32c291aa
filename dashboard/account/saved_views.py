"""Saved views: an address is saved under a name, renamed, deleted."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from dashboard.models import SavedView
from dashboard.shared.permissions import require
from dashboard.shared.rendering import render_page


@require("view")
@require_POST
def save(request: HttpRequest) -> HttpResponse:
    """Save a view from a POST with ``name``, ``page``, ``query`` and ``shared``, and return to its page."""
    asked = request.POST
    view = SavedView(
        owner=request.user,
        name=asked.get("name", "").strip(),
        page=asked.get("page", "")[:300],
        query=asked.get("query", "")[:2000],
        shared=bool(asked.get("shared")),
    )
    return _save(request, view, "keep")


@require("view")
@require_POST
def rename(request: HttpRequest, id: int) -> HttpResponse:
    view = _get_own(request, id)
    view.name = request.POST.get("name", "").strip()
    view.shared = bool(request.POST.get("shared"))
    return _save(request, view, "rename")


@require("view")
@require_POST
def delete(request: HttpRequest, id: int) -> HttpResponse:
    view = _get_own(request, id)
    view.delete()
    return redirect(view.url)


def _get_own(request: HttpRequest, id: int) -> SavedView:
    """Return the view, or raise Http404. Views of other people are answered like missing ones."""
    view = SavedView.objects.filter(pk=id, owner_id=request.user.pk).first()
    if view is None:
        raise Http404("View not found.")
    return view


def _save(request: HttpRequest, view: SavedView, what: str) -> HttpResponse:
    try:
        with transaction.atomic():
            view.save()
    except (ValidationError, IntegrityError) as error:
        return _show_errors(request, view, what, error)
    return redirect(view.url)


def _show_errors(request: HttpRequest, view: SavedView, what: str, error: Exception) -> HttpResponse:
    """Show the form again with its errors. Without a valid page there is no page to return to."""
    said = (
        error.message_dict
        if isinstance(error, ValidationError)
        else {"name": ["you already have a view with this name"]}
    )
    context = {
        "section": "",
        "view": view,
        "what": what,
        "mistakes": [text for texts in said.values() for text in texts],
    }
    context["known"] = "page" not in said
    return render_page(request, "signalbox/account/saved_view.html", context, status=400)
