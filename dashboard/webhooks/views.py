"""Webhooks: the list, one with its delivery log, and the actions on them. A secret is shown once, in the answer to the
form that created it. ``machines.webhooks.management`` does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.shared.access import View, require
from dashboard.shared.permissions import require_audited
from dashboard.shared.rendering import render_page
from dashboard.shared.times.times import in_ms
from machines.models import Delivery, LogGap, Webhook
from machines.people.actor import Actor
from machines.webhooks import management
from machines.webhooks.errors import BadWebhook, UnknownWebhook

from .forms import WebhookForm
from .presenters import make_row

RIGHT = "operate"
SIZE = 50  # deliveries on a page
GAPS = 20
STATES = [("", "all"), *Delivery.State.choices]
ONCE = "Copy the secret now and store it with the receiver. It will not be shown again."


@require(RIGHT, globally=True)
def show_all(request: HttpRequest) -> HttpResponse:
    return _list(request, WebhookForm(auto_id="webhook-%s"))


@require_audited(RIGHT, "webhook.make", globally=True)
def make(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return redirect("signalbox:webhooks")
    form = WebhookForm(request.POST, auto_id="webhook-%s")
    if form.is_valid():
        try:
            webhook, secret = management.make(Actor.of(request), **form.arguments())
        except BadWebhook as error:
            _add_error(form, error)
        else:
            return _render_detail(request, webhook, secret=secret)
    return _list(request, form, status=400)


@require(RIGHT, globally=True)
def show(request: HttpRequest, id: int) -> HttpResponse:
    return _render_detail(request, _get_webhook(request, id))


def _list(request: HttpRequest, form: WebhookForm, status: int = 200) -> HttpResponse:
    actor = Actor.of(request)
    context = {
        "section": "webhooks",
        "webhooks": list(management.list_webhooks(actor)),
        "gaps": [(gap, in_ms(gap.at)) for gap in _list_gaps(actor)],
        "form": form,
    }
    return render_page(request, "signalbox/webhooks/webhooks.html", context, status=status)


def _list_gaps(actor: Actor) -> list[LogGap]:
    return list(management.gaps(actor)[:GAPS])


def _render_detail(
    request: HttpRequest, webhook: Webhook, *, secret: str = "", form: WebhookForm | None = None, status: int = 200
) -> HttpResponse:
    state, before = request.GET.get("state", ""), request.GET.get("before", "")
    if state not in dict(STATES) or not (before == "" or (before.isascii() and before.isdigit() and len(before) < 19)):
        raise Http404("Unknown filter.")
    found = management.deliveries(Actor.of(request), webhook.pk, state=state, before=int(before) if before else None)
    rows = list(found[: SIZE + 1])
    address = reverse("signalbox:webhook", args=[webhook.pk])
    kept = {"state": state} if state else {}
    older = f"{address}?{urlencode(kept | {'before': rows[SIZE - 1].pk})}" if len(rows) > SIZE else ""
    context = {
        "section": "webhooks",
        "webhook": webhook,
        "form": form or WebhookForm(_make_initial(webhook), auto_id="webhook-%s"),
        "secret": secret,
        "once": ONCE,
        "former_until": in_ms(webhook.former_until) if webhook.former_until else None,
        "rows": [make_row(row) for row in rows[:SIZE]],
        "tabs": [(label, f"{address}?{urlencode({'state': value})}", value == state) for value, label in STATES],
        "older": older,
        "first": f"{address}?{urlencode(kept)}" if before else "",
    }
    return render_page(request, "signalbox/webhooks/webhook.html", context, status=status)


def _make_initial(webhook: Webhook) -> dict[str, str]:
    lists = {"machines": ", ".join(webhook.machines), "types": ", ".join(webhook.types)}
    return {"name": webhook.name, "url": webhook.url} | lists


def _get_webhook(request: HttpRequest, id: int) -> Webhook:
    try:
        return management.get(Actor.of(request), id)
    except UnknownWebhook as error:
        raise Http404(f"{error}.") from None


def _add_error(form: WebhookForm, error: BadWebhook) -> None:
    form.add_error(error.field if error.field in form.fields else None, f"{error.message} ({error.code})")


@require_audited(RIGHT, "webhook.change", globally=True, target="id")
def change(request: HttpRequest, id: int) -> HttpResponse:
    webhook = _get_webhook(request, id)
    if request.method != "POST":
        return redirect("signalbox:webhook", id)
    form = WebhookForm(request.POST, auto_id="webhook-%s")
    if form.is_valid():
        try:
            management.change(Actor.of(request), id, **form.arguments())
        except BadWebhook as error:
            _add_error(form, error)
        else:
            messages.success(request, "Saved")
            return redirect("signalbox:webhook", id)
    return _render_detail(request, webhook, form=form, status=400)


@require_audited(RIGHT, "webhook.rotate", globally=True, target="id")
def rotate(request: HttpRequest, id: int) -> HttpResponse:
    _get_webhook(request, id)
    if request.method != "POST":
        return redirect("signalbox:webhook", id)
    webhook, secret = management.rotate(Actor.of(request), id)
    return _render_detail(request, webhook, secret=secret)


@require_audited(RIGHT, "webhook.delete", globally=True, target="id")
def delete(request: HttpRequest, id: int) -> HttpResponse:
    webhook = _get_webhook(request, id)
    if request.method != "POST":
        return redirect("signalbox:webhook", id)
    if request.POST.get("name", "") != webhook.name:
        messages.error(request, "Not deleted: enter the webhook name to confirm")
        return redirect("signalbox:webhook", id)
    management.delete(Actor.of(request), id)
    messages.success(request, f"{webhook.name} deleted with its delivery log")
    return redirect("signalbox:webhooks")


@require_audited(RIGHT, "webhook.redeliver", globally=True, target="id")
def redeliver(request: HttpRequest, id: int, delivery: int) -> HttpResponse:
    _get_webhook(request, id)
    if request.method != "POST":
        return redirect("signalbox:webhook", id)
    try:
        management.redeliver(Actor.of(request), id, delivery)
    except UnknownWebhook as error:
        raise Http404(f"{error}.") from None
    messages.success(request, "Resending with the same webhook-id")
    return redirect("signalbox:webhook", id)


def _make_view(action: str, done: Callable[[Actor, int], Any], message: str) -> View:
    @require_audited(RIGHT, action, globally=True, target="id")
    def view(request: HttpRequest, id: int) -> HttpResponse:
        _get_webhook(request, id)
        if request.method == "POST":
            try:
                done(Actor.of(request), id)
            except BadWebhook as error:
                messages.error(request, f"Not done: {error.message} ({error.code})")
            else:
                messages.success(request, message)
        return redirect("signalbox:webhook", id)

    return view


pause = _make_view("webhook.change", management.pause, "Paused: messages emitted from now on are not sent")
resume = _make_view("webhook.change", management.resume, "Resumed: messages emitted from now on are sent")
test = _make_view("webhook.test", management.test, "Test message signalbox.test queued")
