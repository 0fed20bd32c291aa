"""Every address under ``/api/v1/``."""

from __future__ import annotations

from django.urls import path

from dashboard.api import live

urlpatterns = [path("live/", live.show, name="api-live")]
