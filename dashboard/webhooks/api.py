"""Webhooks: where emitted messages are sent, and the result of each delivery."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Status
from pydantic import Field

from dashboard.api.framework import cursors
from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Body, Listed, Ms, Out
from dashboard.shared.times.times import in_ms
from machines.models import Delivery, Webhook
from machines.people.actor import Actor
from machines.webhooks import management

group = Group("webhooks", "External URLs that receive emitted messages.")
WEBHOOK = "/webhooks/{int:webhook}"
States = Literal["", "waiting", "sending", "sent", "dead"]


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


def _convert_to_ms(moment: datetime | None) -> int | None:
    return moment and in_ms(moment)


def _describe(webhook: Webhook) -> dict[str, Any]:
    names = ("id", "name", "url", "machines", "types", "active", "stopped", "failures", "maker")
    return {name: getattr(webhook, name) for name in names} | {"made_at": _convert_to_ms(webhook.made_at)}


def _describe_delivery(row: Delivery) -> dict[str, Any]:
    names = ("id", "key", "type", "machine", "instance", "state", "tries", "attempts")
    times = {name: _convert_to_ms(getattr(row, name)) for name in ("due", "made_at", "ended_at")}
    return {name: getattr(row, name) for name in names} | times


@group.get("/webhooks", id="listWebhooks", right="operate", everywhere=True, answers=Webhooks, summary="List webhooks")
def list_all(request: HttpRequest) -> dict[str, Any]:
    return {"items": [_describe(webhook) for webhook in management.list_webhooks(actor_of(request))]}


@group.post(
    "/webhooks", id="makeWebhook", right="operate", everywhere=True, once=False, answers={201: WithSecret},
    summary="Create a webhook",
    example={"name": "billing", "url": "https://billing.example.com/hook", "types": ["paid.*"]},
)  # fmt: skip
def make(request: HttpRequest, body: Making) -> Status:
    """Make a webhook for what is emitted from now on. Its secret is in this answer and in no other."""
    webhook, secret = management.make(actor_of(request), **body.model_dump())
    return Status(201, _describe(webhook) | {"secret": secret})


@group.get(WEBHOOK, id="getWebhook", right="operate", everywhere=True, answers=WebhookOut, summary="Get a webhook")
def one(request: HttpRequest, webhook: int) -> dict[str, Any]:
    return _describe(management.get(actor_of(request), webhook))


@group.get(
    "/webhooks/gaps", id="listLogGaps", right="operate", everywhere=True, answers=LogGaps,
    summary="List log gaps",
)  # fmt: skip
def gaps(request: HttpRequest) -> dict[str, Any]:
    """List gaps, the latest first; a hundred at most."""
    found = management.gaps(actor_of(request))[:100]
    names = ("machine", "after", "lost")
    return {"items": [{name: getattr(gap, name) for name in names} | {"at": _convert_to_ms(gap.at)} for gap in found]}


@group.post(
    WEBHOOK, id="changeWebhook", right="operate", everywhere=True, answers=WebhookOut, summary="Update a webhook",
    example={"types": ["*"]},
)  # fmt: skip
def change(request: HttpRequest, webhook: int, body: Changing) -> dict[str, Any]:
    """Change what is given; what is left out stays."""
    return _describe(management.change(actor_of(request), webhook, **body.model_dump(exclude_none=True)))


@group.post(
    f"{WEBHOOK}/rotate", id="rotateWebhook", right="operate", everywhere=True, once=False, answers=WithSecret,
    summary="Rotate the secret",
)  # fmt: skip
def rotate(request: HttpRequest, webhook: int) -> dict[str, Any]:
    """Replace the secret. For a day messages carry a signature with the former one, too."""
    found, secret = management.rotate(actor_of(request), webhook)
    return _describe(found) | {"secret": secret}


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
def test(request: HttpRequest, webhook: int) -> dict[str, Any]:
    """Send a message of the type `signalbox.test`; the delivery log has its result."""
    return _describe_delivery(management.test(actor_of(request), webhook))


@group.get(
    f"{WEBHOOK}/deliveries", id="listDeliveries", right="operate", everywhere=True, answers=Deliveries,
    summary="List deliveries",
)  # fmt: skip
def deliveries(
    request: HttpRequest, webhook: int, state: States = "", limit: int = Query(50, ge=1, le=500),
    cursor: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """List deliveries, newest first."""
    before = cursors.number("deliveries", cursor)
    rows = list(management.deliveries(actor_of(request), webhook, state=state, before=before)[: limit + 1])
    further = rows[limit - 1].pk if len(rows) > limit else None
    return {"items": [_describe_delivery(row) for row in rows[:limit]], "next": cursors.give("deliveries", further)}


@group.post(
    f"{WEBHOOK}/deliveries/{{int:delivery}}/redeliver", id="redeliver", right="operate", everywhere=True,
    answers=DeliveryOut, summary="Resend a delivery",
)  # fmt: skip
def redeliver(request: HttpRequest, webhook: int, delivery: int) -> dict[str, Any]:
    """Deliver the message again now, with all its attempts, whatever its result was."""
    return _describe_delivery(management.redeliver(actor_of(request), webhook, delivery))


def _switch(name: str, summary: str, about: str, turn: Callable[[Actor, int], Webhook]) -> None:
    def switch(request: HttpRequest, webhook: int) -> dict[str, Any]:
        return _describe(turn(actor_of(request), webhook))

    switch.__doc__ = about
    group.post(
        f"{WEBHOOK}/{name}", id=f"{name}Webhook", right="operate", everywhere=True, answers=WebhookOut, summary=summary
    )(switch)


_switch("pause", "Send nothing", "What waits stays; what is emitted meanwhile is never sent.", management.pause)
_switch("resume", "Send again", "What waited, and what is emitted from now on.", management.resume)
