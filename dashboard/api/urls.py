"""Every address under ``/api/v1/``."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, include, path, re_path
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt

from dashboard.shared import addresses
from dashboard.shared.errors import problems
from dashboard.shared.errors.statuses import NO_PAGE

from . import explorer, live
from .v1 import api

View = Callable[..., HttpResponse]


def _answer_alike(view: View) -> View:
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
def _answer_unknown(request: HttpRequest) -> HttpResponse:
    return problems.answer_problem(request, NO_PAGE, "Unknown operation; see /api/v1/docs.")


def _answer_wrong_method(request: HttpRequest, allowed: str) -> HttpResponse:
    response = problems.answer_problem(request, problems.NO_METHOD, f"{request.method} is not among {allowed}")
    response["Allow"] = allowed
    return response


addresses.register()


def _list_operations() -> list[URLPattern]:
    """Return the framework's own patterns, each wrapped by ``_answer_alike``, and one for all other addresses."""
    found = [pattern for pattern in api.urls[0] if pattern.name != "api-root"]
    for pattern in found:
        pattern.callback = _answer_alike(pattern.callback)
    return [*found, re_path("", _answer_unknown, name="nothing")]


urlpatterns = [
    path("live/", live.show, name="api-live"),
    path("docs", explorer.show, name="api-docs"),
    # Each of them is in tests/api/table.py, by its operation's id.
    path("", include((_list_operations(), "api"))),
]
