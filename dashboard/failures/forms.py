"""Filters of the error inbox, and the forms of the actions on a group."""

from __future__ import annotations

from typing import Any

from django import forms

from dashboard.jobs.queues.forms import FIGURE, PLAIN, Count, ReasonForm
from machines.engine import limits
from machines.failures.actions import MAX_RATE, RATE
from machines.failures.queries import MAX_PAGE
from machines.instances.forms.rendering import PageForm

STATES = (("open", "open"), ("muted", "muted"), ("resolved", "resolved"), ("all", "all"))


class InboxFilter(PageForm):
    state = forms.ChoiceField(choices=STATES, required=False)
    machine = forms.CharField(max_length=64, required=False)
    assignee = forms.CharField(max_length=150, required=False)
    query = forms.CharField(max_length=200, required=False)
    page = forms.IntegerField(min_value=1, max_value=MAX_PAGE, required=False)

    def terms(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {name: given[name] for name in ("machine", "assignee", "query")} | {
            "state": given["state"] or "open",
            "page": given["page"] or 1,
        }


class AssignForm(PageForm):
    """Asks for a user's name; empty: nobody."""

    def __init__(self, *args: Any, id: str, **more: Any) -> None:
        super().__init__(*args, auto_id=f"{id}-%s", label_suffix="", **more)

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


class SkipForm(RedriveForm):
    result = forms.JSONField(
        label="result (JSON)", required=False, help_text="what each job is taken to have returned; empty: nothing",
        widget=forms.Textarea({"rows": 2, "spellcheck": "false"}),
    )  # fmt: skip
    field_order = ("expect", "result", "rate", "reason")


FORMS: dict[str, type[forms.Form]] = {
    "assign": AssignForm,
    "mute": ReasonForm,
    "resolve": ReasonForm,
    "reopen": ReasonForm,
    "redrive": RedriveForm,
    "skip": SkipForm,
    "stop": ReasonForm,
}
