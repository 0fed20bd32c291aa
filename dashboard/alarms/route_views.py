"""Routes of alarms: the list, one with its deliveries, and the actions on them. A secret is shown once, in the answer
to the form that made it; the address of a route is never shown again. ``machines.alarms.routes`` does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.shared.form_views import answer_form
from dashboard.shared.list_pages import ListLinks, cut_page, read_place
from dashboard.shared.permissions import View, require
from dashboard.shared.rendering import render_page
from dashboard.webhooks.forms import DeliveryTerms
from machines.alarms import routes
from machines.alarms.errors import BadRoute
from machines.models import AlarmRoute, Delivery
from machines.people.actor import Actor
from machines.webhooks import apprise_post

from .forms import RouteForm

RIGHT = routes.RIGHT
SIZE = 50  # deliveries on a page


@require(RIGHT, globally=True)
def show_all(request: HttpRequest) -> HttpResponse:
    return _list(request, RouteForm(initial={"link": _link_alarms(request)}))


def _link_alarms(request: HttpRequest) -> str:
    return request.build_absolute_uri(reverse("signalbox:alarms"))


def _list(request: HttpRequest, form: RouteForm, status: int = 200) -> HttpResponse:
    found = [(route, routes.show_address(route.receiver.url)) for route in routes.list_routes(Actor.of(request))]
    context = {"section": "alarms", "routes": found, "form": form}
    return render_page(request, "signalbox/alarms/routes.html", context, status=status)


@answer_form("alarm-routes", RIGHT, "route.make", globally=True)
def make(request: HttpRequest) -> HttpResponse:
    form = RouteForm(request.POST)
    if form.is_valid():
        try:
            route, secret = routes.make(Actor.of(request), **form.arguments())
        except BadRoute as error:
            form.add_mistake(error)
        else:
            if secret:
                return _render_detail(request, route, secret=secret)
            messages.success(request, f"{route} created: send a test message")
            return redirect("signalbox:alarm-route", route.pk)
    return _list(request, form, status=400)


@require(RIGHT, globally=True)
def show(request: HttpRequest, id: int) -> HttpResponse:
    return _render_detail(request, routes.get(Actor.of(request), id))


def _render_detail(
    request: HttpRequest, route: AlarmRoute, *, secret: str = "", form: RouteForm | None = None, status: int = 200
) -> HttpResponse:
    state, before = DeliveryTerms.of_page(request).state, read_place(request)
    deliveries = route.receiver.deliveries.filter(**({"state": state} if state else {}))
    rows, further = cut_page(deliveries, before, SIZE)
    links = ListLinks("alarm-route", route.pk, state=state)
    context = {
        "section": "alarms",
        "route": route,
        "webhook": route.receiver,
        "address": routes.show_address(route.receiver.url),
        "posts": not apprise_post.is_apprise(route.receiver.url),
        "form": form or RouteForm.of(route),
        "secret": secret,
        "rows": rows,
        "tabs": links.tabs("state", [("", "all"), *Delivery.State.choices]),
    } | links.pages("before", before, further)
    return render_page(request, "signalbox/alarms/route.html", context, status=status)


@answer_form("alarm-route", RIGHT, "route.change", globally=True, target="id")
def change(request: HttpRequest, id: int) -> str | HttpResponse:
    route, form = routes.get(Actor.of(request), id), RouteForm(request.POST, written=True)
    if form.is_valid():
        try:
            routes.change(Actor.of(request), id, **form.arguments())
        except BadRoute as error:
            form.add_mistake(error)
        else:
            return "Saved"
    return _render_detail(request, route, form=form, status=400)


@answer_form("alarm-route", RIGHT, "route.rotate", refused=(BadRoute,), globally=True, target="id")
def rotate(request: HttpRequest, id: int) -> HttpResponse:
    route, secret = routes.rotate(Actor.of(request), id)
    return _render_detail(request, route, secret=secret)


@answer_form("alarm-route", RIGHT, "route.delete", refused=(BadRoute,), globally=True, target="id")
def delete(request: HttpRequest, id: int) -> HttpResponse:
    route = routes.get(Actor.of(request), id)
    if request.POST.get("name", "") != str(route):
        messages.error(request, "Not deleted: enter the name of the route to confirm")
        return redirect("signalbox:alarm-route", id)
    routes.delete(Actor.of(request), id)
    messages.success(request, f"{route} deleted with its delivery log")
    return redirect("signalbox:alarm-routes")


@answer_form("alarm-route", RIGHT, "route.redeliver", takes=("id",), globally=True, target="id")
def redeliver(request: HttpRequest, id: int, delivery: int) -> str:
    routes.redeliver(Actor.of(request), id, delivery)
    return "Resending with the same webhook-id"


def _make_view(action: str, act: Callable[[Actor, int], Any], message: str) -> View:
    @answer_form("alarm-route", RIGHT, action, refused=(BadRoute,), globally=True, target="id")
    def view(request: HttpRequest, id: int) -> str:
        act(Actor.of(request), id)
        return message

    return view


pause = _make_view("route.change", lambda actor, id: routes.switch(actor, id, False), "Paused: no alarms are sent")
resume = _make_view("route.change", lambda actor, id: routes.switch(actor, id, True), "Resumed")
test = _make_view("route.test", routes.test, "Test message queued: the log below has its result")
