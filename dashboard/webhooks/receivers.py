"""The pages of webhooks; what the pages of routes of alarms share with them: the list with a form, one with its
delivery log, and the actions on it. A secret is shown once, in the answer to the form that made it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path

from dashboard.shared.addresses import find_page_address
from dashboard.shared.form_views import Act, answer_form, list_action_paths
from dashboard.shared.list_pages import ListLinks, cut_page, read_place
from dashboard.shared.permissions import View, require
from dashboard.shared.rendering import render_page
from machines.models import Delivery, Webhook
from machines.people.actor import Actor
from machines.webhooks import management
from machines.webhooks.errors import BadReceiver
from machines.webhooks.management import RIGHT

from .forms import DeliveryTerms, ReceiverForm, WebhookForm

SIZE = 50  # deliveries on a page


@dataclass(frozen=True, slots=True)
class ReceiverPages:
    """Makes the pages of one kind of receivers.

    ``noun``: of one, in messages and in the audit; ``page``: the name of its address; ``service``: the module that does
    the work; ``describe_list``, ``describe``: the context of the list, and of one; ``said``: action -> its message.
    """

    noun: str
    page: str
    section: str
    service: Any
    form: type[ReceiverForm]
    describe_list: Callable[[Actor], dict[str, Any]]
    describe: Callable[[Any], dict[str, Any]]
    said: Mapping[str, str]

    def list_paths(self, address: str) -> list[URLPattern]:
        """Return the addresses of all pages. ``address``: of the list."""
        read, make = require(RIGHT, globally=True), self._answer("make", page=f"{self.page}s")
        one = f"{address}<int:id>/"
        actions = {
            name: self._answer(name, target="id")(getattr(self, name)) for name in ("change", "rotate", "delete")
        }
        actions |= {name: self._make_action(name) for name in self.said}
        again = self._answer("redeliver", target="id", takes=("id",))(self.redeliver)
        return [
            path(address, read(self.show_all), name=f"{self.page}s"),
            path(f"{address}new/", make(self.make), name=f"{self.page}-make"),
            path(one, read(self.show), name=self.page),
            path(f"{one}deliveries/<int:delivery>/again/", again, name=f"{self.page}-redeliver"),
            *list_action_paths(one, f"{self.page}-", actions),
        ]

    def _answer(self, action: str, page: str = "", **more: Any) -> Callable[[Act], View]:
        return answer_form(
            page or self.page, RIGHT, f"{self.noun}.{action}", refused=(BadReceiver,), globally=True, **more
        )

    def _make_action(self, name: str) -> View:
        def act(request: HttpRequest, id: int) -> str:
            getattr(self.service, name)(Actor.of(request), id)
            return self.said[name]

        return self._answer("test" if name == "test" else "change", target="id")(act)

    def show_all(self, request: HttpRequest) -> HttpResponse:
        return self._render_list(request, self.form.blank(request))

    def show(self, request: HttpRequest, id: int) -> HttpResponse:
        return self._render_one(request, self.service.get(Actor.of(request), id))

    def make(self, request: HttpRequest) -> HttpResponse:
        form = self.form(request.POST)
        if form.is_valid():
            try:
                made, secret = self.service.make(Actor.of(request), **form.arguments())
            except BadReceiver as error:
                form.add_mistake(error)
            else:
                if secret:
                    return self._render_one(request, made, secret=secret)
                messages.success(request, f"{made} created: send a test message")
                return redirect(f"signalbox:{self.page}", made.pk)
        return self._render_list(request, form, status=400)

    def change(self, request: HttpRequest, id: int) -> str | HttpResponse:
        found, form = self.service.get(Actor.of(request), id), self.form(request.POST, written=True)
        if form.is_valid():
            try:
                self.service.change(Actor.of(request), id, **form.arguments())
            except BadReceiver as error:
                form.add_mistake(error)
            else:
                return "Saved"
        return self._render_one(request, found, form=form, status=400)

    def rotate(self, request: HttpRequest, id: int) -> HttpResponse:
        found, secret = self.service.rotate(Actor.of(request), id)
        return self._render_one(request, found, secret=secret)

    def delete(self, request: HttpRequest, id: int) -> HttpResponse:
        found = self.service.get(Actor.of(request), id)
        if request.POST.get("name", "") != str(found):
            messages.error(request, f"Not deleted: enter the name of the {self.noun} to confirm")
            return redirect(f"signalbox:{self.page}", id)
        self.service.delete(Actor.of(request), id)
        messages.success(request, f"{found} deleted with its delivery log")
        return redirect(f"signalbox:{self.page}s")

    def redeliver(self, request: HttpRequest, id: int, delivery: int) -> str:
        self.service.redeliver(Actor.of(request), id, delivery)
        return "Resending with the same webhook-id"

    def _render_list(self, request: HttpRequest, form: ReceiverForm, *, status: int = 200) -> HttpResponse:
        context = {"section": self.section, "form": form} | self.describe_list(Actor.of(request))
        return render_page(request, f"signalbox/webhooks/{self.noun}s.html", context, status=status)

    def _render_one(
        self, request: HttpRequest, found: Any, *, secret: str = "", form: ReceiverForm | None = None, status: int = 200
    ) -> HttpResponse:
        state, before = DeliveryTerms.of_page(request).state, read_place(request)
        webhook: Webhook = getattr(found, "receiver", found)
        rows, further = cut_page(webhook.deliveries.filter(**({"state": state} if state else {})), before, SIZE)
        links = ListLinks(self.page, found.pk, state=state)
        context = {
            "section": self.section,
            "pages": self,
            "done": find_page_address(f"signalbox:{self.page}", found.pk),
            "found": found,
            "webhook": webhook,
            "form": form or self.form.of(found),
            "secret": secret,
            "rows": rows,
            "tabs": links.tabs("state", [("", "all"), *Delivery.State.choices]),
        }
        context |= links.pages("before", before, further) | self.describe(found)
        return render_page(request, "signalbox/webhooks/receiver.html", context, status=status)


GAPS = 20


def _describe_list(actor: Actor) -> dict[str, Any]:
    return {"webhooks": list(management.list_webhooks(actor)), "gaps": list(management.gaps(actor)[:GAPS])}


def _describe(webhook: Webhook) -> dict[str, Any]:
    return {"address": webhook.url, "posts": True}


PAGES = ReceiverPages(
    "webhook", "webhook", "webhooks", management, WebhookForm, _describe_list, _describe,
    said={
        "pause": "Paused: messages emitted from now on are not sent",
        "resume": "Resumed: messages emitted from now on are sent",
        "test": "Test message signalbox.test queued",
    },
)  # fmt: skip
