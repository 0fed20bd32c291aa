"""The filter of the list of approval requests, and the form of a decision."""

from typing import Literal

from django import forms
from django.db.models import QuerySet

from dashboard.shared.list_pages import Terms, Text
from machines.approvals.queries import find
from machines.instances.forms import REASON_LIMIT, PageForm
from machines.models import Approval
from machines.people.actor import Actor

TABS = [("open", "waiting"), ("decided", "decided"), ("any", "all")]


class RequestTerms(Terms):
    state: Literal["open", "running", "done", "failed", "declined", "withdrawn", "expired", "decided", "any"] = "open"
    machine: Text = ""
    asker: Text = ""

    def find(self, actor: Actor) -> QuerySet[Approval]:
        return find(actor, **self.model_dump() | {"state": "" if self.state == "any" else self.state})


class DecisionForm(PageForm):
    note = forms.CharField(required=False, max_length=REASON_LIMIT)
