"""Finishes every response: errors that the framework answers itself, and headers that all responses carry."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt

from dashboard.shared.errors import problems
from dashboard.shared.errors import problems as codes
from dashboard.shared.errors.statuses import NO_PAGE

View = Callable[..., HttpResponse]


def around(view: View) -> View:
    """Wrap a view. It answers HEAD like GET, and answers an unsupported method with a problem. No cache on the way
    stores its answer or gives it to another caller."""

    @csrf_exempt  # sessions show their token at the door
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kw: Any) -> HttpResponse:
        if request.method == "HEAD":
            request.method = "GET"
        response = view(request, *args, **kw)
        if response.status_code == 405:
            response = _answer_wrong_method(request, response["Allow"])
        response.headers.setdefault("Cache-Control", "no-store")
        patch_vary_headers(response, ("Authorization", "Cookie"))
        return response

    return answer


@csrf_exempt
def nothing(request: HttpRequest) -> HttpResponse:
    return problems.answer_problem(request, NO_PAGE, "Unknown operation; see /api/v1/docs.")


def _answer_wrong_method(request: HttpRequest, allowed: str) -> HttpResponse:
    response = problems.answer_problem(request, codes.NO_METHOD, f"{request.method} is not among {allowed}")
    response["Allow"] = allowed
    return response
