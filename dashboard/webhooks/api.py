"""Webhooks: where emitted messages are sent, and the result of each delivery."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from ninja import Query, Status
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.request_terms import Paging
from dashboard.api.framework.schemas import Body, Items, Out, Page
from machines.models import Delivery, LogGap, Webhook
from machines.people.actor import Actor
from machines.webhooks import management

from .forms import DeliveryTerms

group = Group("webhooks", "External URLs that receive emitted messages.", right="operate", everywhere=True)
WEBHOOK = "/webhooks/{int:webhook}"


class WebhookOut(Out.derive(Webhook, "id name url active maker made_at stopped failures")):
    """stopped: why it was disabled automatically, or empty
    failures: attempts that failed since one got through
    """

    machines: list[str] = Field(description="names; none: every machine")
    types: list[str] = Field(description="of messages; * stands for any characters")


class WithSecret(WebhookOut):
    secret: str = Field(description="what messages are signed with; shown this once")


class DeliveryOut(Out.derive(Delivery, "id type machine instance state due tries made_at ended_at key")):
    """key: webhook-id: the same with each attempt"""

    attempts: list[dict[str, Any]]


class LogGapOut(Out.derive(LogGap, "machine after lost", times="at")):
    """after: the place in its log
    lost: messages; 0: the log was replaced by another one
    """


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


@group.get("/webhooks", answers=Items[WebhookOut])
def list_webhooks(request: HttpRequest) -> dict[str, Any]:
    """List webhooks."""
    return {"items": list(management.list_webhooks(actor_of(request)))}


@group.post(
    "/webhooks", once=False, answers={201: WithSecret},
    example={"name": "billing", "url": "https://billing.example.com/hook", "types": ["paid.*"]},
)  # fmt: skip
def make_webhook(request: HttpRequest, body: Making) -> Status:
    """Create a webhook.

    Make a webhook for what is emitted from now on. Its secret is in this answer and in no other.
    """
    made, secret = management.make(actor_of(request), **body.model_dump())
    return Status(201, WithSecret.build(made, secret=secret))


@group.get(WEBHOOK, answers=WebhookOut)
def get_webhook(request: HttpRequest, webhook: int) -> Webhook:
    """Get a webhook."""
    return management.get(actor_of(request), webhook)


@group.get("/webhooks/gaps", answers=Items[LogGapOut])
def list_log_gaps(request: HttpRequest) -> dict[str, Any]:
    """List log gaps.

    List gaps, the latest first; a hundred at most.
    """
    return {"items": list(management.gaps(actor_of(request))[:100])}


@group.post(WEBHOOK, answers=WebhookOut, example={"types": ["*"]})
def change_webhook(request: HttpRequest, webhook: int, body: Changing) -> Webhook:
    """Update a webhook.

    Change what is given; what is left out stays.
    """
    return management.change(actor_of(request), webhook, **body.model_dump(exclude_none=True))


@group.post(f"{WEBHOOK}/rotate", once=False, answers=WithSecret)
def rotate_webhook(request: HttpRequest, webhook: int) -> WithSecret:
    """Rotate the secret.

    Replace the secret. For a day messages carry a signature with the former one, too.
    """
    found, secret = management.rotate(actor_of(request), webhook)
    return WithSecret.build(found, secret=secret)


@group.delete(WEBHOOK, answers=Gone)
def delete_webhook(request: HttpRequest, webhook: int) -> dict[str, int]:
    """Delete a webhook.

    Delete the webhook with its delivery log.
    """
    management.delete(actor_of(request), webhook)
    return {"id": webhook}


@group.post(f"{WEBHOOK}/test", answers=DeliveryOut)
def test_webhook(request: HttpRequest, webhook: int) -> Delivery:
    """Send a test message.

    Send a message of the type `signalbox.test`; the delivery log has its result.
    """
    return management.test(actor_of(request), webhook)


@group.get(f"{WEBHOOK}/deliveries", answers=Page[DeliveryOut])
def list_deliveries(
    request: HttpRequest, webhook: int, terms: Query[DeliveryTerms], page: Query[Paging]
) -> dict[str, Any]:
    """List deliveries.

    List deliveries, newest first.
    """
    found = management.deliveries(actor_of(request), webhook, state=terms.state)
    return page.read_page("deliveries", found)


@group.post(f"{WEBHOOK}/deliveries/{{int:delivery}}/redeliver", answers=DeliveryOut)
def redeliver(request: HttpRequest, webhook: int, delivery: int) -> Delivery:
    """Resend a delivery.

    Deliver the message again now, with all its attempts, whatever its result was.
    """
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
