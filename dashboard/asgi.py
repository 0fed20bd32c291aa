"""The ASGI application: Django over HTTP, the live view over websockets."""

from __future__ import annotations

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
http = get_asgi_application()  # sets Django up; what follows may import models

from django.core.exceptions import ImproperlyConfigured  # noqa: E402

from dashboard import checks  # noqa: E402
from dashboard.cookie_limits import SocketCookieLimits  # noqa: E402
from dashboard.live.routing import websocket_urlpatterns  # noqa: E402
from dashboard.origin import SameOrigin  # noqa: E402
from dashboard.request_ids import SocketIds  # noqa: E402

# `manage.py` looks at the installation before every command; a bare uvicorn or daphne only comes by here.
if refusals := checks.refusals():
    raise ImproperlyConfigured(refusals)

application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": SocketIds(SocketCookieLimits(SameOrigin(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))))),
    }
)
