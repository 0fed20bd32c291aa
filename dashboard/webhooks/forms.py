"""The form of a webhook, and what the form of a route of alarms shares with it."""

from typing import Any, ClassVar, Literal, Self

from django import forms
from django.http import HttpRequest

from dashboard.shared.list_pages import Terms
from machines.instances.forms import PageForm
from machines.webhooks import management
from machines.webhooks.errors import BadReceiver


class DeliveryTerms(Terms):
    state: Literal["", "waiting", "sending", "sent", "dead"] = ""


class ReceiverForm(PageForm):
    """Takes lists with commas; the service checks the rest. ``written``: the form changes a receiver."""

    noun: ClassVar[str]
    lists: ClassVar[tuple[str, ...]]

    def __init__(self, *args: Any, written: bool = False, **more: Any) -> None:
        super().__init__(*args, auto_id=f"{self.noun}-%s", **more)

    @classmethod
    def blank(cls, request: HttpRequest) -> Self:
        return cls()

    @classmethod
    def of(cls, found: Any) -> Self:
        """Return the form of a receiver as it is."""
        held = {name: getattr(found, name, None) for name in cls.base_fields} | {"name": str(found)}
        texts = {name: ", ".join(value) if isinstance(value, list) else value for name, value in held.items()}
        return cls(written=True, initial=texts)

    def arguments(self) -> dict[str, Any]:
        given = {name: value for name, value in self.cleaned_data.items() if name != "url" or value}
        return given | {name: [word.strip() for word in given[name].split(",") if word.strip()] for name in self.lists}

    def add_mistake(self, error: BadReceiver) -> None:
        """Mark the field that the service did not accept."""
        self.add_error(error.field if error.field in self.fields else None, f"{error.message} ({error.code})")


class WebhookForm(ReceiverForm):
    noun, lists = "webhook", ("machines", "types")

    name = forms.CharField(label="name", max_length=management.LONGEST_NAME)
    url = forms.CharField(label="address", max_length=2000, widget=forms.URLInput({"placeholder": "https://"}))
    machines = forms.CharField(label="machines", required=False, help_text="comma-separated names; blank: all machines")
    types = forms.CharField(label="messages", initial="*", help_text="comma-separated types; * matches any characters")
