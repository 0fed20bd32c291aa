"""The pages of webhooks. ``machines.webhooks.management`` does the work."""

from __future__ import annotations

from typing import Any

from machines.models import Webhook
from machines.people.actor import Actor
from machines.webhooks import management

from .forms import WebhookForm
from .receivers import ReceiverPages

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
