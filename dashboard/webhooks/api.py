"""Webhooks: where emitted messages are sent, and the result of each delivery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from ninja import Query, Status
from pydantic import Field

from dashboard.api.framework import request_terms
from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Body, Listed, Ms, Out
from machines.models import Delivery, Webhook
from machines.people.actor import Actor
from machines.webhooks import management

from .forms import DeliveryTerms

group = Group("webhooks", "External URLs that receive emitted messages.")
WEBHOOK = "/webhooks/{int:webhook}"


class WebhookOut(Out):
    id: int
    name: str
    url: str
    machines: list[str] = Field(description="names; none: every machine")
    types: list[str] = Field(description="of messages; * stands for any characters")
    active: bool
    stopped: str = Field(description="why it was disabled automatically, or empty")
    failures: int = Field(description="attempts that failed since one got through")
    maker: str
    made_at: Ms


class Webhooks(Out):
    items: list[WebhookOut]


class WithSecret(WebhookOut):
    secret: str = Field(description="what messages are signed with; shown this once")


class DeliveryOut(Out):
    id: int
    key: str = Field(description="webhook-id: the same with each attempt")
    type: str
    machine: str
    instance: str
    state: str
    due: Ms
    tries: int
    attempts: list[dict[str, Any]]
    made_at: Ms
    ended_at: Ms | None = None


class Deliveries(Listed[DeliveryOut]):
    pass


class LogGapOut(Out):
    machine: str
    after: str = Field(description="the place in its log")
    lost: int = Field(description="messages; 0: the log was replaced by another one")
    at: Ms


class LogGaps(Out):
    items: list[LogGapOut]


class Making(Body):
    name: str
    url: str
    machines: list[str] = Field(default_factory=list)
    types: list[str] = Field(default_factory=lambda: ["*"])


class Changing(Body):
    name: str | None = None
    url: str | None = None
    machines: list[str] | None = None
    types: list[str] | None = None


class Gone(Out):
    id: int


@group.get("/webhooks", id="listWebhooks", right="operate", everywhere=True, answers=Webhooks, summary="List webhooks")
def list_all(request: HttpRequest) -> dict[str, Any]:
    return {"items": list(management.list_webhooks(actor_of(request)))}


@group.post(
    "/webhooks", id="makeWebhook", right="operate", everywhere=True, once=False, answers={201: WithSecret},
    summary="Create a webhook",
    example={"name": "billing", "url": "https://billing.example.com/hook", "types": ["paid.*"]},
)  # fmt: skip
def make(request: HttpRequest, body: Making) -> Status:
    """Make a webhook for what is emitted from now on. Its secret is in this answer and in no other."""
    made, secret = management.make(actor_of(request), **body.model_dump())
    return Status(201, WithSecret.build(made, secret=secret))


@group.get(WEBHOOK, id="getWebhook", right="operate", everywhere=True, answers=WebhookOut, summary="Get a webhook")
def one(request: HttpRequest, webhook: int) -> Webhook:
    return management.get(actor_of(request), webhook)


@group.get(
    "/webhooks/gaps", id="listLogGaps", right="operate", everywhere=True, answers=LogGaps,
    summary="List log gaps",
)  # fmt: skip
def gaps(request: HttpRequest) -> dict[str, Any]:
    """List gaps, the latest first; a hundred at most."""
    return {"items": list(management.gaps(actor_of(request))[:100])}


@group.post(
    WEBHOOK, id="changeWebhook", right="operate", everywhere=True, answers=WebhookOut, summary="Update a webhook",
    example={"types": ["*"]},
)  # fmt: skip
def change(request: HttpRequest, webhook: int, body: Changing) -> Webhook:
    """Change what is given; what is left out stays."""
    return management.change(actor_of(request), webhook, **body.model_dump(exclude_none=True))


@group.post(
    f"{WEBHOOK}/rotate", id="rotateWebhook", right="operate", everywhere=True, once=False, answers=WithSecret,
    summary="Rotate the secret",
)  # fmt: skip
def rotate(request: HttpRequest, webhook: int) -> WithSecret:
    """Replace the secret. For a day messages carry a signature with the former one, too."""
    found, secret = management.rotate(actor_of(request), webhook)
    return WithSecret.build(found, secret=secret)


@group.delete(WEBHOOK, id="deleteWebhook", right="operate", everywhere=True, answers=Gone, summary="Delete a webhook")
def delete(request: HttpRequest, webhook: int) -> dict[str, int]:
    """Delete the webhook with its delivery log."""
    management.delete(actor_of(request), webhook)
    return {"id": webhook}


@group.post(
    f"{WEBHOOK}/test",
    id="testWebhook",
    right="operate",
    everywhere=True,
    answers=DeliveryOut,
    summary="Send a test message",
)
def test(request: HttpRequest, webhook: int) -> Delivery:
    """Send a message of the type `signalbox.test`; the delivery log has its result."""
    return management.test(actor_of(request), webhook)


@group.get(
    f"{WEBHOOK}/deliveries", id="listDeliveries", right="operate", everywhere=True, answers=Deliveries,
    summary="List deliveries",
)  # fmt: skip
def deliveries(
    request: HttpRequest, webhook: int, terms: Query[DeliveryTerms], limit: int = Query(50, ge=1, le=500),
    cursor: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """List deliveries, newest first."""
    found = management.deliveries(actor_of(request), webhook, state=terms.state)
    return request_terms.read_page("deliveries", found, limit, cursor)


@group.post(
    f"{WEBHOOK}/deliveries/{{int:delivery}}/redeliver", id="redeliver", right="operate", everywhere=True,
    answers=DeliveryOut, summary="Resend a delivery",
)  # fmt: skip
def redeliver(request: HttpRequest, webhook: int, delivery: int) -> Delivery:
    """Deliver the message again now, with all its attempts, whatever its result was."""
    return management.redeliver(actor_of(request), webhook, delivery)


def _switch(name: str, summary: str, about: str, turn: Callable[[Actor, int], Webhook]) -> None:
    def switch(request: HttpRequest, webhook: int) -> Webhook:
        return turn(actor_of(request), webhook)

    switch.__doc__ = about
    group.post(
        f"{WEBHOOK}/{name}", id=f"{name}Webhook", right="operate", everywhere=True, answers=WebhookOut, summary=summary
    )(switch)


_switch("pause", "Send nothing", "What waits stays; what is emitted meanwhile is never sent.", management.pause)
_switch("resume", "Send again", "What waited, and what is emitted from now on.", management.resume)
