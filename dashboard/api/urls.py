"""Every address under ``/api/v1/``."""

from __future__ import annotations

from django.urls import URLPattern, include, path, re_path

from dashboard.shared.addresses import converters

from . import explorer, live
from .framework import responses
from .v1 import api

converters.register()


def _list_operations() -> list[URLPattern]:
    """Return the framework's own patterns, each wrapped by ``responses.around``, and one for all other addresses."""
    found = [pattern for pattern in api.urls[0] if pattern.name != "api-root"]
    for pattern in found:
        pattern.callback = responses.around(pattern.callback)
    return [*found, re_path("", responses.nothing, name="nothing")]


urlpatterns = [
    path("live/", live.show, name="api-live"),
    path("docs", explorer.show, name="api-docs"),
    # Each of them is in tests/api/table.py, by its operation's id.
    path("", include((_list_operations(), "api"))),
]
