"""Addresses of the overview, the wall screen and the search."""

from __future__ import annotations

from django.urls import path

from . import palette, search, views

urlpatterns = [
    path("", views.show, name="overview"),
    path("charts.json", views.show_charts, name="charts"),
    path("wall/", views.show_wall, name="wall"),
    path("search/", search.show, name="search"),
    path("search.json", palette.suggest, name="search-suggestions"),
]
