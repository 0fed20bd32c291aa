"""The bearer token of ``/metrics``."""

from __future__ import annotations

import hmac

from django.http import HttpRequest

from machines.conf import conf


def has_token(request: HttpRequest) -> bool:
    """Tell whether the request carries the token; never where none is set."""
    expected = conf.METRICS_TOKEN
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    return bool(expected) and scheme.lower() == "bearer" and hmac.compare_digest(given.encode(), expected.encode())
