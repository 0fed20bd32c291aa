"""The form of a webhook, and what the form of a route of alarms shares with it."""

from __future__ import annotations

from typing import Any, Literal

from django import forms

from dashboard.shared.list_pages import Terms
from machines.alarms.errors import BadRoute
from machines.instances.forms import PageForm
from machines.webhooks import management
from machines.webhooks.errors import BadWebhook


class DeliveryTerms(Terms):
    state: Literal["", "waiting", "sending", "sent", "dead"] = ""


def split_words(text: str) -> list[str]:
    """Split ``a, b``."""
    return [word.strip() for word in text.split(",") if word.strip()]


class ReceiverForm(PageForm):
    def add_mistake(self, error: BadWebhook | BadRoute) -> None:
        """Mark the field that the service did not accept."""
        self.add_error(error.field if error.field in self.fields else None, f"{error.message} ({error.code})")


class WebhookForm(ReceiverForm):
    """Takes lists with commas. ``machines.webhooks.management`` checks the rest."""

    name = forms.CharField(label="name", max_length=management.LONGEST_NAME)
    url = forms.CharField(label="address", max_length=2000, widget=forms.URLInput({"placeholder": "https://"}))
    machines = forms.CharField(label="machines", required=False, help_text="comma-separated names; blank: all machines")
    types = forms.CharField(label="messages", initial="*", help_text="comma-separated types; * matches any characters")

    def arguments(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {"name": given["name"], "url": given["url"]} | {
            field: split_words(given[field]) for field in ("machines", "types")
        }
