"""Serves the websocket of the live view.

In the ASGI file of a project that includes ``dashboard.urls``, one line serves it beside everything else::

    application = add_live_view(get_asgi_application())

Without that line, and under WSGI, pages poll.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from channels.auth import AuthMiddlewareStack
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest
from django.urls import path

from dashboard.live.sockets.admission import SameOrigin, SocketAdmission
from dashboard.live.sockets.consumer import LiveConsumer
from dashboard.site.mount_point import live_path

from .cookie_limits import SocketCookieLimits
from .middleware.request_ids import SocketIds

websocket_urlpatterns = [path("ws/live/", LiveConsumer.as_asgi())]  # of our own site
Application = Callable[..., Awaitable[Any]]

_served = False


def add_live_view(application: Application) -> Application:
    """Return an ASGI application that serves the websocket of the live view and leaves all else to ``application``."""
    live = make_live_application()

    async def serve(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> Any:
        ours = scope["type"] == "websocket" and _find_path(scope) == live_path()
        return await (live if ours else application)(scope, receive, send)

    return serve


def make_live_application(inner: Application | None = None) -> Application:
    """Return the consumer, or ``inner``, with admission, request ids, cookie limits, origin check and login around it.

    Pages of this process open a socket from now on.
    """
    global _served
    _served = True
    application = AuthMiddlewareStack(inner or LiveConsumer.as_asgi())
    return SocketAdmission(SocketIds(SocketCookieLimits(SameOrigin(application))))


def is_served_to(request: HttpRequest | None) -> bool:
    """Tell whether the server that answers this request takes websockets."""
    return _served and isinstance(request, ASGIRequest)


def _find_path(scope: dict[str, Any]) -> str:
    """Return the path without the part that the server puts in front (``root_path``), as ``reverse`` gives it here."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path.removeprefix(root) if root and path.startswith(f"{root}/") else path
