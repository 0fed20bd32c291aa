"""The form of a schedule: fields for what it does, when, and how it deals with overlaps and outages."""

import json
import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings

from dashboard.jobs.forms import ActionForm
from machines.instances.forms import PageForm
from machines.schedules import Finding
from machines.schedules.document import CATCH_UPS, MAX_BOUND, OVERLAPS

ACTIONS = {
    "enqueue": ("Enqueue a job", "A handler of a worker is called."),
    "fire": ("Fire an event at one instance", "The instance is named."),
    "fire_all": ("Fire an event at all that a search finds", "The search is made anew at each run, as a bulk action."),
    "create": ("Create an instance", "Its id is the name of the schedule and the planned time."),
}
"""What a schedule may do -> its label and a sentence about it."""
FIELDS = {
    "enqueue": ("src", "queue", "input"),
    "fire": ("instance", "event", "payload"),
    "fire_all": ("filter", "event", "payload", "rate"),
    "create": ("data",),
}
JSON_FIELDS = ("input", "payload", "data", "filter")
POLICY = ("overlap", "jitter", "catch_up", "bound", "start", "end")
MOMENT = re.compile(r"\d{4}-")
OVERLAP_LABELS = {
    "allow": "run anyway", "skip": "leave this run out", "queue": "wait for the run before",
}  # fmt: skip
CATCH_UP_LABELS = {"last": "run the latest", "none": "run none", "all": "run all, as many as the bound says"}


class ScheduleForm(PageForm):
    """Takes the texts of a person and makes the document; ``machines.schedules`` checks what it says."""

    name = forms.CharField(max_length=100, help_text="letters, digits and _ . : -")
    when = forms.CharField(
        max_length=200,
        widget=forms.TextInput({"placeholder": "30 2 * * MON-FRI", "autocapitalize": "none", "spellcheck": "false"}),
        help_text="cron: 30 2 * * MON-FRI · interval: every 61m · once: 2026-12-24T18:00",
    )
    zone = forms.CharField(label="Time zone", max_length=64, help_text="as Europe/Zurich")
    src = forms.CharField(label="Handler", max_length=200)
    queue = forms.CharField(required=False, max_length=200, help_text="blank: the queue of the handler's name")
    instance = forms.CharField(max_length=200)
    event = forms.CharField(max_length=200)
    filter = forms.CharField(
        label="Search", widget=forms.Textarea({"rows": 3}), help_text='as {"state": "Waiting", "older_than": 86400}'
    )
    input = forms.CharField(required=False, widget=forms.Textarea({"rows": 4}), help_text="JSON")
    payload = forms.CharField(required=False, widget=forms.Textarea({"rows": 4}), help_text="a JSON object")
    data = forms.CharField(required=False, widget=forms.Textarea({"rows": 4}), help_text="a JSON object")
    rate = forms.IntegerField(required=False, min_value=0, help_text="max instances per second; blank: no limit")
    overlap = forms.ChoiceField(
        label="If the previous run is still going", choices=[(name, OVERLAP_LABELS[name]) for name in OVERLAPS]
    )
    catch_up = forms.ChoiceField(
        label="Missed runs", choices=[(name, CATCH_UP_LABELS[name]) for name in CATCH_UPS], initial="last",
        help_text="runs that nobody carried out within a minute, as after an outage",
    )  # fmt: skip
    bound = forms.IntegerField(required=False, min_value=1, max_value=MAX_BOUND, help_text="missed runs at most")
    jitter = forms.CharField(required=False, max_length=20, help_text="as 30s: each run is up to so much later")
    start = forms.CharField(required=False, max_length=40, help_text="as 2026-12-24T18:00")
    end = forms.CharField(required=False, max_length=40, help_text="no run at or after it")
    description = forms.CharField(required=False, max_length=1000)
    reason = forms.CharField(required=False, max_length=500, help_text="kept in the audit")

    def __init__(self, machine: str, action: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, auto_id="schedule-%s", **kwargs)
        self.machine = machine
        self.action = action
        for name in {field for fields in FIELDS.values() for field in fields} - {*FIELDS[action]}:
            del self.fields[name]
        self.fields["zone"].initial = settings.TIME_ZONE

    @property
    def action_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in FIELDS[self.action]]

    @property
    def policy_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in POLICY]

    @property
    def has_policy(self) -> bool:
        """Whether a field of the folded part needs to be seen."""
        return any(self[name].errors or (self.is_bound and self.data.get(name)) for name in ("jitter", "start", "end"))

    def clean(self) -> dict[str, Any]:
        for name in JSON_FIELDS:
            if text := self.cleaned_data.get(name):
                try:
                    self.cleaned_data[name] = json.loads(text)
                except ValueError as error:
                    self.add_error(name, f"This is no JSON: {error}")
        return self.cleaned_data

    def document(self) -> dict[str, Any]:
        """Return the document of a valid form. What was left blank is left out."""
        given = {name: found for name, found in self.cleaned_data.items() if found not in ("", None)}
        what = {name: given[name] for name in FIELDS[self.action] if name in given}
        rest = {name: given[name] for name in ("name", "zone", "description", *POLICY) if name in given}
        return rest | {"when": read_when(given["when"]), "what": {"do": self.action, "machine": self.machine} | what}

    def blame(self, findings: list[Finding]) -> None:
        """Show each finding at the field it is about."""
        for finding in findings:
            parts = [part for part in finding.path.split(".") if part in self.fields]
            text = finding.message + (f": {finding.hint}" if finding.hint else "")
            self.add_error(parts[-1] if parts else None, text if parts else str(finding))


class ActForm(ActionForm):
    """Asks for a reason, if there is one to give."""

    reason = forms.CharField(required=False, max_length=500, help_text="kept in the audit")

    def __init__(self, *args: Any, zone: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        for name in {"start", "end"} & self.fields.keys():
            self.fields[name].label += f", in {zone}"


class KeyedActForm(ActForm):
    key = forms.CharField(widget=forms.HiddenInput)


class BackfillForm(KeyedActForm):
    """Asks for a range, in the zone of the schedule."""

    start = forms.CharField(label="from", widget=forms.DateTimeInput({"type": "datetime-local"}))
    end = forms.CharField(label="until", widget=forms.DateTimeInput({"type": "datetime-local"}))
    field_order = ("start", "end", "reason")


class RemoveForm(ActForm):
    name = forms.CharField(label="name of the schedule, to confirm", widget=forms.TextInput({"autocomplete": "off"}))
    field_order = ("name", "reason")


def read_when(text: str) -> dict[str, str]:
    """Read the one line that says when: an interval begins with "every", a moment with a year, all else is cron."""
    text = text.strip()
    if text.startswith("every "):
        return {"every": text.removeprefix("every ").strip()}
    return {"at": text} if MOMENT.match(text) else {"cron": text}


def write_when(when: Mapping[str, Any]) -> str:
    """Return the line that ``read_when`` reads."""
    return f"every {when['every']}" if "every" in when else str(when.get("at") or when.get("cron") or "")


def initial(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a form shows of a document."""
    what = document["what"]
    texts = {
        name: json.dumps(what[name], indent=2, ensure_ascii=False) if name in JSON_FIELDS else what[name]
        for names in FIELDS.values()
        for name in names
        if name in what
    }
    rest = {name: document[name] for name in ("name", "zone", "description", *POLICY) if name in document}
    return {"zone": "UTC"} | rest | texts | {"when": write_when(document["when"])}
