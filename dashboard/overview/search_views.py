"""The page of the search box."""

from __future__ import annotations

import time

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.shared.access import require
from dashboard.shared.addresses.numbers import parse_number
from dashboard.shared.rendering import render_page
from machines.engine.ids import codec
from machines.engine.limits import MAX_INSTANCE_ID

from .search import MAX_PAGE, Results, search_page

AHEAD = 300  # seconds that an id, or the clock it was made by, may be before this process's own


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    """Answer ``?q=``, further pages by ``?page=``. A single exact match is opened at once."""
    asked = request.GET.get("q", "").strip()
    page = _read_page(request)
    found = search_page(request, asked[:MAX_INSTANCE_ID], page) if asked else Results()
    exact = [hit for hit in found.hits if hit.exact]
    if len(exact) == 1 and page == 1 and not request.GET.get("all"):
        return redirect(exact[0].url)
    context = {
        "asked": asked,
        "hits": sorted(found.hits, key=lambda hit: not hit.exact),
        "found": found,
        "made": _decode_id(asked.lower()),
    }
    return render_page(request, "signalbox/overview/search.html", context)


def _read_page(request: HttpRequest) -> int:
    """Read ``?page=``; 1 for what is no page."""
    page = parse_number(request.GET.get("page", "")) or 1
    return page if page <= MAX_PAGE else 1


def _decode_id(text: str) -> codec.Decoded | None:
    """Decode the time of an id; None for a text that only looks like one, as an id of the future does."""
    made = codec.decode(text) if codec.is_id(text) else None
    return made if made and made.at < (time.time() + AHEAD) * 1000 else None
