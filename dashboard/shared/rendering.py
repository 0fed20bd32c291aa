"""Renders pages with the context that all of them share."""

from __future__ import annotations

import time
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from .access import RIGHTS, anywhere, rights_of


def render_page(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    """Render a page with the viewer's rights and the time that ages count from (``now_ms``, unless the context has
    one).

    ``rights``: those on the machine of the page; on a page of many machines, those on any of them. Pages show the
    current state: no cache may keep them.
    """
    shared = {"now_ms": int(time.time() * 1000), "rights": _list_rights(request)}
    response = render(request, template, shared | context, status=status)
    response["Cache-Control"] = "no-store"
    return response


def _list_rights(request: HttpRequest) -> frozenset[str]:
    machine = request.resolver_match.kwargs.get("machine", "") if request.resolver_match else ""
    if machine:
        return rights_of(request.user, machine)
    return frozenset(right for right in RIGHTS if anywhere(request.user, right))
