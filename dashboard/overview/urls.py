"""Addresses of the overview, the wall screen, the handover note, the search and the components page."""

from __future__ import annotations

from django.urls import path

from . import components, notes, search, suggestions, views, wall

urlpatterns = [
    path("", views.show, name="overview"),
    path("charts.json", views.show_charts, name="charts"),
    path("wall/", wall.show, name="wall"),
    path("note/", notes.show, name="note"),
    path("components/", components.show, name="components"),
    path("search/", search.show, name="search"),
    path("search.json", suggestions.suggest, name="search-suggestions"),
]
