"""The Content-Security-Policy header of every response."""

from __future__ import annotations

from collections.abc import Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse

HEADER = "Content-Security-Policy"


class ContentSecurityPolicy:
    """Puts ``settings.CONTENT_SECURITY_POLICY`` on each response that does not bring a policy of its own."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable) -> None:
        self.get_response = get_response
        self.policy = "; ".join(f"{name} {value}" for name, value in settings.CONTENT_SECURITY_POLICY.items())
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if iscoroutinefunction(self):
            return self._later(request)
        return self._marked(self.get_response(request))

    async def _later(self, request: HttpRequest) -> HttpResponse:
        return self._marked(await self.get_response(request))

    def _marked(self, response: HttpResponse) -> HttpResponse:
        response.headers.setdefault(HEADER, self.policy)
        return response
