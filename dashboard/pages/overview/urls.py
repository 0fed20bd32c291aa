"""Addresses of the overview, the handover note, the search and the components page."""

from __future__ import annotations

from django.urls import path

from . import components, global_search, notes, views

urlpatterns = [
    path("", views.show, name="overview"),
    path("charts.json", views.show_charts, name="charts"),
    path("note/", notes.show, name="note"),
    path("components/", components.show, name="components"),
    path("search/", global_search.show, name="search"),
]
