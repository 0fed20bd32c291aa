"""A small shop whose views put jobs on queues: the URL configuration of a test."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path

from machines.jobs import enqueue, fire_on_commit


@transaction.atomic
def order(request: HttpRequest, name: str) -> HttpResponse:
    """A row, a job that names it and an event; then a failure, if one is asked for."""
    row = Group.objects.create(name=name)
    enqueue("orders", "pack", {"order": row.pk})
    fire_on_commit("orders", "shop", "ring", actor=name)
    if "fail" in request.GET:
        raise ValueError("the card was declined")
    return HttpResponse(row.pk)


urlpatterns = [path("order/<str:name>/", order)]
