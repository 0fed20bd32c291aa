"""Webhooks: the list, one with its delivery log, and the actions on them. A secret is shown once, in the answer to the
form that created it. ``machines.webhooks.management`` does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.shared.form_views import answer_form
from dashboard.shared.list_pages import ListLinks, cut_page, read_place
from dashboard.shared.permissions import View, require
from dashboard.shared.rendering import render_page
from machines.models import Delivery, Webhook
from machines.people.actor import Actor
from machines.webhooks import management
from machines.webhooks.errors import BadWebhook

from .forms import DeliveryTerms, WebhookForm

RIGHT = "operate"
SIZE = 50  # deliveries on a page
GAPS = 20


@require(RIGHT, globally=True)
def show_all(request: HttpRequest) -> HttpResponse:
    return _list(request, WebhookForm(auto_id="webhook-%s"))


@answer_form("webhooks", RIGHT, "webhook.make", globally=True)
def make(request: HttpRequest) -> HttpResponse:
    form = WebhookForm(request.POST, auto_id="webhook-%s")
    if form.is_valid():
        try:
            webhook, secret = management.make(Actor.of(request), **form.arguments())
        except BadWebhook as error:
            form.add_mistake(error)
        else:
            return _render_detail(request, webhook, secret=secret)
    return _list(request, form, status=400)


@require(RIGHT, globally=True)
def show(request: HttpRequest, id: int) -> HttpResponse:
    return _render_detail(request, management.get(Actor.of(request), id))


def _list(request: HttpRequest, form: WebhookForm, status: int = 200) -> HttpResponse:
    actor = Actor.of(request)
    context = {
        "section": "webhooks",
        "webhooks": list(management.list_webhooks(actor)),
        "gaps": list(management.gaps(actor)[:GAPS]),
        "form": form,
    }
    return render_page(request, "signalbox/webhooks/webhooks.html", context, status=status)


def _render_detail(
    request: HttpRequest, webhook: Webhook, *, secret: str = "", form: WebhookForm | None = None, status: int = 200
) -> HttpResponse:
    state, before = DeliveryTerms.of_page(request).state, read_place(request)
    rows, further = cut_page(management.deliveries(Actor.of(request), webhook.pk, state=state), before, SIZE)
    links = ListLinks("webhook", webhook.pk, state=state)
    context = {
        "section": "webhooks",
        "webhook": webhook,
        "form": form or WebhookForm(_make_initial(webhook), auto_id="webhook-%s"),
        "secret": secret,
        "rows": rows,
        "tabs": links.tabs("state", [("", "all"), *Delivery.State.choices]),
    } | links.pages("before", before, further)
    return render_page(request, "signalbox/webhooks/webhook.html", context, status=status)


def _make_initial(webhook: Webhook) -> dict[str, str]:
    lists = {"machines": ", ".join(webhook.machines), "types": ", ".join(webhook.types)}
    return {"name": webhook.name, "url": webhook.url} | lists


@answer_form("webhook", RIGHT, "webhook.change", globally=True, target="id")
def change(request: HttpRequest, id: int) -> str | HttpResponse:
    webhook, form = management.get(Actor.of(request), id), WebhookForm(request.POST, auto_id="webhook-%s")
    if form.is_valid():
        try:
            management.change(Actor.of(request), id, **form.arguments())
        except BadWebhook as error:
            form.add_mistake(error)
        else:
            return "Saved"
    return _render_detail(request, webhook, form=form, status=400)


@answer_form("webhook", RIGHT, "webhook.rotate", globally=True, target="id")
def rotate(request: HttpRequest, id: int) -> HttpResponse:
    webhook, secret = management.rotate(Actor.of(request), id)
    return _render_detail(request, webhook, secret=secret)


@answer_form("webhook", RIGHT, "webhook.delete", globally=True, target="id")
def delete(request: HttpRequest, id: int) -> HttpResponse:
    webhook = management.get(Actor.of(request), id)
    if request.POST.get("name", "") != webhook.name:
        messages.error(request, "Not deleted: enter the webhook name to confirm")
        return redirect("signalbox:webhook", id)
    management.delete(Actor.of(request), id)
    messages.success(request, f"{webhook.name} deleted with its delivery log")
    return redirect("signalbox:webhooks")


@answer_form("webhook", RIGHT, "webhook.redeliver", takes=("id",), globally=True, target="id")
def redeliver(request: HttpRequest, id: int, delivery: int) -> str:
    management.redeliver(Actor.of(request), id, delivery)
    return "Resending with the same webhook-id"


def _make_view(action: str, done: Callable[[Actor, int], Any], message: str) -> View:
    @answer_form("webhook", RIGHT, action, refused=(BadWebhook,), globally=True, target="id")
    def view(request: HttpRequest, id: int) -> str:
        done(Actor.of(request), id)
        return message

    return view


pause = _make_view("webhook.change", management.pause, "Paused: messages emitted from now on are not sent")
resume = _make_view("webhook.change", management.resume, "Resumed: messages emitted from now on are sent")
test = _make_view("webhook.test", management.test, "Test message signalbox.test queued")
