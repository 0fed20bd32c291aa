"""The websocket addresses of Signalbox's own site; `dashboard.asgi` puts origin check and login around them."""

from __future__ import annotations

from django.urls import path

from .sockets.consumer import LiveConsumer

websocket_urlpatterns = [path("ws/live/", LiveConsumer.as_asgi())]
