"""Filters of the error inbox, and the forms of the actions on a group."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from django import forms
from pydantic import Field

from dashboard.jobs.forms import FIGURE, PLAIN, ActionForm, Count, ReasonForm
from dashboard.shared import list_pages
from dashboard.shared.list_pages import Terms
from machines.engine import limits
from machines.engine.definitions.durations import HINT, parse_duration
from machines.jobs.failures.actions import MAX_RATE, RATE, Selection
from machines.jobs.failures.queries import MAX_PAGE, Listing, list_groups
from machines.people.actor import Actor

Text = Annotated[list_pages.Text, Field(max_length=200)]
TABS = [(state, state) for state in ("open", "muted", "resolved", "all")]


class InboxTerms(Terms):
    state: Literal["open", "muted", "resolved", "all"] = "open"
    machine: Text = ""
    assignee: Text = ""
    query: Text = ""
    limit: int = Field(50, ge=1, le=500)
    page: int = Field(1, ge=1, le=MAX_PAGE)

    def find(self, actor: Actor) -> Listing:
        return list_groups(actor, **self.model_dump(exclude={"limit"}), size=self.limit)


class RetryTerms(Terms):
    """Select open jobs. ``queue``: ``machine/queue``; ``error``: the number of a group, 0 for any."""

    machine: Text = ""
    queue: Text = ""
    error: int = Field(0, ge=0, lt=2**63)

    @property
    def selection(self) -> Selection:
        machine, _, queue = self.queue.partition("/")
        return Selection(self.error, machine or self.machine, queue)

    @property
    def address(self) -> str:
        return list_pages.ListLinks("error-retry", **self.model_dump()).url()


class AssignForm(ActionForm):
    assignee = forms.CharField(
        label="user", max_length=150, required=False, help_text="empty: nobody", widget=forms.TextInput(PLAIN)
    )


class RedriveForm(ReasonForm):
    """``expect``: how many jobs the page counted."""

    expect = Count(min_value=0, max_value=limits.MAX_INTEGER, widget=forms.HiddenInput)
    rate = Count(
        label="jobs per second, at most", min_value=1, max_value=MAX_RATE, initial=RATE, widget=forms.TextInput(FIGURE)
    )
    field_order = ("expect", "rate", "reason")


class DelayForm(RedriveForm):
    delay = forms.CharField(label="how long", max_length=20, help_text="such as 30m, 2h or 1d")
    field_order = ("expect", "delay", "rate", "reason")

    def clean_delay(self) -> int:
        ms = parse_duration(self.cleaned_data["delay"])
        if not ms:
            raise forms.ValidationError(HINT)
        return ms


class RerouteForm(RedriveForm):
    to = forms.ChoiceField(label="queue")
    field_order = ("expect", "to", "rate", "reason")

    def __init__(self, *args: Any, queues: Iterable[str], **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["to"].choices = [(name, name) for name in queues]  # type: ignore[attr-defined]


class SkipForm(RedriveForm):
    result = forms.JSONField(
        label="result (JSON)", required=False, help_text="used as the result of each job; empty: none",
        widget=forms.Textarea({"rows": 2, "spellcheck": "false"}),
    )  # fmt: skip
    field_order = ("expect", "result", "rate", "reason")


ACTIONS: dict[str, tuple[type[forms.Form], str, str]] = {
    "assign": (AssignForm, "Assign", "Names the person who takes care of this."),
    "mute": (ReasonForm, "Mute until it changes", "Until it fails in another version of a machine, or on another one."),
    "resolve": (ReasonForm, "Resolve", "The cause is gone. A later failure opens the group as a regression."),
    "reopen": (ReasonForm, "Open again", "Puts the group back among the open ones."),
    "redrive": (RedriveForm, "Retry {jobs}", "Makes {jobs} ready again with all attempts."),
    "skip": (
        SkipForm,
        "Skip {jobs} with a result",
        "Moves the instances of {jobs} as if these had completed with it.",
    ),
    "stop": (ReasonForm, "Stop", "Stops the running action. Jobs that were moved stay moved."),
}
"""Action -> its form, its button, and what it does."""
