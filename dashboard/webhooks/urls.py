"""Addresses of webhooks."""

from __future__ import annotations

from .views import PAGES

urlpatterns = PAGES.list_paths("webhooks/")
