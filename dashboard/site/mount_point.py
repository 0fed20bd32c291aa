"""Finds the path under which the pages are: ``/`` on Signalbox's own site, ``/ops/`` where a project includes them so.

Addresses of views come from ``reverse``. What has no view of its own, or is asked for before one is found, comes from
here: whether a request is to the API, the websocket, the documents of the API.
"""

import contextlib
from functools import lru_cache

from django.http import HttpRequest
from django.urls import NoReverseMatch, Resolver404, ResolverMatch, get_script_prefix, get_urlconf, resolve, reverse

NAMESPACE = "signalbox"
PROBES = ("healthz", "readyz", "metrics")
API = "api/"


def mount_path() -> str:
    """Return the path of the overview: it begins and ends with a slash. ``/`` where the addresses are not included."""
    return _mount_path(get_urlconf(), get_script_prefix())


@lru_cache(maxsize=64)
def _mount_path(urlconf: str | None, script: str) -> str:
    try:
        return reverse(f"{NAMESPACE}:overview", urlconf=urlconf)
    except NoReverseMatch:
        return script


def api_path() -> str:
    """Return the path of the API's first version, with a slash at its end."""
    return f"{mount_path()}{API}v1/"


def live_path() -> str:
    """Return the path of the websocket."""
    return f"{mount_path()}ws/live/"


def is_api_request(request: HttpRequest) -> bool:
    """Return whether the request is to the API, which gets a problem in place of a page."""
    return request.path.startswith(mount_path() + API)


def is_for_machines(request: HttpRequest) -> bool:
    """Return whether programs ask for the address: the API and the probes, whose times are UTC."""
    path, mount = request.path, mount_path()
    return path.startswith(mount) and path.removeprefix(mount).startswith((API, *PROBES))


def find_page(path: str) -> tuple[str, ResolverMatch]:
    """Return the path of a page below the mount point, and what it resolves to. Raise Resolver404.

    Takes the whole path, as a browser shows it, and the one below the mount point, as saved views keep it.
    """
    mount = mount_path()
    if mount != "/" and path.startswith(mount):
        below = f"/{path.removeprefix(mount)}"
        with contextlib.suppress(Resolver404):
            return below, _resolve(below)
    return path, _resolve(path)


def _resolve(below: str) -> ResolverMatch:
    """Resolve an address without the prefix that the server adds, which the resolver does not know."""
    whole = mount_path().rstrip("/") + below
    return resolve(f"/{whole.removeprefix(get_script_prefix())}")
