"""Addresses of the overview, the wall screen, the handover note, the search and the components page."""

from __future__ import annotations

from django.urls import path

from . import components, search, views

urlpatterns = [
    path("", views.show, name="overview"),
    path("charts.json", views.show_charts, name="charts"),
    path("wall/", views.show_wall, name="wall"),
    path("note/", views.show_note, name="note"),
    path("components/", components.show, name="components"),
    path("search/", search.show, name="search"),
    path("search.json", search.suggest, name="search-suggestions"),
]
