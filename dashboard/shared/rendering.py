"""Renders pages with the context that all of them share."""

import time
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render

from machines.diagrams import standalone
from machines.people.permissions import RIGHTS, anywhere, rights_of

SECTIONS = {
    "api": "account", "catalog": "machines", "demo": "patterns", "insight": "machines", "instances": "machines",
    "instances.bulks": "bulk", "instances.sm": "sm", "jobs": "queues", "jobs.failures": "errors",
    "jobs.workers": "workers", "overview": "machines",
}  # fmt: skip
"""Room of a view, or a part of one -> the section of its pages in the bar, where it has another name."""


def render_page(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    """Render a page with the viewer's rights, the section that is marked in the bar, and the time that ages count from
    (``now_ms``), unless the context has one.

    ``rights``: those on the machine of the page; on a page of many machines, those on any of them. Pages show the
    current state: no cache may keep them.
    """
    shared = {"now_ms": int(time.time() * 1000), "rights": _list_rights(request), "section": _find_section(request)}
    response = render(request, template, shared | context, status=status)
    response["Cache-Control"] = "no-store"
    return response


def answer_json(found: dict[str, Any], *, status: int = 200) -> JsonResponse:
    """Answer a script with the current state, which no cache may keep."""
    return JsonResponse(found, status=status, headers={"Cache-Control": "no-store"})


def answer_drawing(svg: str, *, cache: str = "private, no-store") -> HttpResponse:
    """Answer a diagram by itself. It brings its own style; nothing in it may run or load anything."""
    return HttpResponse(
        standalone(svg), content_type="image/svg+xml; charset=utf-8",
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
                 "Cache-Control": cache},
    )  # fmt: skip


def _find_section(request: HttpRequest) -> str:
    """Return the section of the room whose view answers."""
    module = request.resolver_match.func.__module__ if request.resolver_match else ""
    room, *below = module.removeprefix("dashboard.").split(".")
    return SECTIONS.get(".".join([room, *below[:1]])) or SECTIONS.get(room, room)


def _list_rights(request: HttpRequest) -> frozenset[str]:
    machine = request.resolver_match.kwargs.get("machine", "") if request.resolver_match else ""
    if machine:
        return rights_of(request.user, machine)
    return frozenset(right for right in RIGHTS if anywhere(request.user, right))
