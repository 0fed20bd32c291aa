"""What every page is rendered with, whatever it shows."""

from __future__ import annotations

import time
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from dashboard.access import rights_of


def page(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    """Rendered with the viewer's rights and the time all ages count from (``now_ms``, unless the context brings one).

    Pages show what is true now: nothing in between may keep them.
    """
    shared = {"now_ms": int(time.time() * 1000), "rights": rights_of(request.user)}
    response = render(request, template, shared | context, status=status)
    response["Cache-Control"] = "no-store"
    return response
