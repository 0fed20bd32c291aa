"""The addresses of the site, and the page of components."""

from __future__ import annotations

from django.urls import path

from dashboard.site_urls import *  # noqa: F403  also the handlers of errors
from dashboard.site_urls import urlpatterns

from . import page

urlpatterns = [path("components/", page.show), *urlpatterns]
