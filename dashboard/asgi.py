"""The ASGI application: Django over HTTP, the live view over websockets."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
django.setup(set_prefix=False)  # what follows may import models

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.exceptions import ImproperlyConfigured  # noqa: E402

from dashboard import checks  # noqa: E402
from dashboard.cookie_limits import SocketCookieLimits  # noqa: E402
from dashboard.live.entrance import Entrance  # noqa: E402
from dashboard.live.routing import websocket_urlpatterns  # noqa: E402
from dashboard.origin import SameOrigin  # noqa: E402
from dashboard.request_ids import SocketIds  # noqa: E402
from dashboard.serving.front import Front  # noqa: E402
from dashboard.serving.gate import Room  # noqa: E402
from dashboard.serving.light import LightHandler  # noqa: E402
from dashboard.serving.threaded import ThreadedHandler  # noqa: E402

# `manage.py` looks at the installation before every command; a bare uvicorn or daphne only comes by here.
if refusals := checks.refusals():
    raise ImproperlyConfigured(refusals)

application = ProtocolTypeRouter(
    {
        "http": Front(ThreadedHandler(), LightHandler(), Room.of(settings.SIGNALBOX_THREADS)),
        "websocket": Entrance(
            SocketIds(SocketCookieLimits(SameOrigin(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))))
        ),
    }
)
