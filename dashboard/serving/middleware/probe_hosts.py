"""Middleware: answers probes whatever the ``Host`` header says.

An orchestrator or a balancer asks a process by its address (``Host: 10.42.0.7:8000``), which is not a name of the site.
Every other path refuses a host that is not among ``ALLOWED_HOSTS``. ``/metrics`` is answered for a foreign host where
every client may read it, or to a request that carries the token: never by a session.
"""

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from dashboard.serving.metrics.views import has_token
from machines.conf import conf

PROBES = frozenset({"/healthz", "/readyz"})
METRICS = "/metrics"
NAME = "localhost"  # what such a request is taken to have asked for; no answer shows it


class ProbeHosts(MiddlewareMixin):
    """Sits before the first middleware that reads the host."""

    def process_request(self, request: HttpRequest) -> None:
        accept_any_host(request)


def accept_any_host(request: HttpRequest) -> None:
    """Let a probe that names a foreign host pass; leave every other request as it is."""
    if not is_probe(request):
        return
    try:
        request.get_host()
    except DisallowedHost:
        request.get_host = lambda: NAME  # type: ignore[method-assign]


def is_probe(request: HttpRequest) -> bool:
    """Tell whether the request may name any host."""
    if request.path_info == METRICS:
        return conf.METRICS == "open" or (conf.METRICS != "off" and has_token(request))
    return request.path_info in PROBES
