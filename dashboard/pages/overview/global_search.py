"""The page of the search box."""

from __future__ import annotations

import time

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.shared.access import require
from dashboard.shared.global_search import search
from dashboard.shared.rendering import render_page
from machines.engine.ids import codec
from machines.engine.limits import MAX_INSTANCE_ID

AHEAD = 300  # seconds that an id, or the clock it was made by, may be before this process's own


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    """Answer ``?q=``. A single exact match is opened at once."""
    asked = request.GET.get("q", "").strip()
    found = list(search(request, asked[:MAX_INSTANCE_ID])) if asked else []
    exact = [hit for hit in found if hit.exact]
    if len(exact) == 1 and not request.GET.get("all"):
        return redirect(exact[0].url)
    found.sort(key=lambda hit: not hit.exact)
    return render_page(
        request, "signalbox/overview/search.html", {"asked": asked, "hits": found, "made": _decode_id(asked.lower())}
    )


def _decode_id(text: str) -> codec.Decoded | None:
    """Decode the time of an id; None for a text that only looks like one, as an id of the future does."""
    made = codec.decode(text) if codec.is_id(text) else None
    return made if made and made.at < (time.time() + AHEAD) * 1000 else None
