"""The filter of the page: which instances a question is about, and what else the question takes."""

from collections.abc import Collection, Mapping
from typing import Any

from django import forms

from dashboard.audit.filter import TimeField
from dashboard.shared.addresses import parse_number
from dashboard.shared.times import in_ms
from dashboard.shared.version_view import VersionView
from machines.audit.redaction import strict_redactor
from machines.engine.definitions import Outline, durations
from machines.engine.definitions.reading.machine_settings import FACTS
from machines.engine.limits import MAX_ACTOR
from machines.insight.records import Search
from machines.instances.forms import PageForm
from machines.instances.queries import demand_findable
from machines.people.actor import Actor

QUESTIONS = {
    "paths": "Paths",
    "times": "Time in state",
    "bottlenecks": "Bottlenecks",
    "funnel": "Funnel",
    "people": "People and workers",
    "levels": "Service levels",
    "compare": "Compare",
    "conformance": "Conformance",
}
STAGES = ("stage1", "stage2", "stage3", "stage4")
SECOND = "second-"
GROUPS = {
    "queue": "queue", "handler": "handler", "worker": "worker", "attempt": "attempt", "kind": "kind of step",
    "actor": "person",
}  # fmt: skip
MAX_TEXT = 200  # characters of a term

NAMES = "audit"
"""The right to see who did what."""


class DurationField(forms.CharField):
    """Reads ``15m`` as ms."""

    def clean(self, value: Any) -> int | None:
        text = super().clean(value)
        if text and not (ms := durations.parse_duration(text)):
            raise forms.ValidationError(f"Not a duration: {durations.HINT}.")
        return ms if text else None


class VersionsField(forms.CharField):
    """Reads ``3, 4`` as numbers."""

    def clean(self, value: Any) -> tuple[int, ...]:
        numbers = [parse_number(word) for word in super().clean(value).replace(",", " ").split()]
        if not all(numbers):
            raise forms.ValidationError("Write numbers of versions, such as 3 or 3, 4.")
        return tuple(number for number in numbers if number)


def _make_state_field(label: str) -> forms.CharField:
    """Return a field for a state of any version, or of a machine with regions for all that are active at once."""
    widget = forms.TextInput(attrs={"list": "insight-states", "autocomplete": "off", "spellcheck": "false"})
    return forms.CharField(label=label, required=False, max_length=MAX_TEXT, widget=widget)


class InsightFilter(PageForm):
    """The terms of an address. ``show``: the question; ``names``: whether the person may see who did what."""

    show = forms.ChoiceField(required=False, choices=[*QUESTIONS.items(), ("instances", "")], widget=forms.HiddenInput)
    figure = forms.CharField(required=False, max_length=20, widget=forms.HiddenInput)

    def __init__(self, asked: Mapping[str, str], outline: Outline, hidden: Collection[str], names: bool) -> None:
        super().__init__(asked, auto_id="insight-%s")
        self.question = asked["show"] if asked.get("show") in (*QUESTIONS, "instances") else "paths"
        self._outline, self._names = outline, names
        self._indexed = [name for name in outline.index if name not in FACTS and name not in hidden]
        self._add_search("")
        self.common = tuple(self.fields)  # the terms that every question has
        getattr(self, f"_add_{self.question}", lambda: None)()

    def _add_search(self, prefix: str) -> None:
        second = "second: " if prefix else ""
        hint = forms.TextInput(attrs={"placeholder": "3, 4", "autocomplete": "off"})
        found: dict[str, forms.Field] = {
            "version": VersionsField(label="versions", max_length=MAX_TEXT, widget=hint),
            "since": TimeField(label="created from", max_length=40),
            "until": TimeField(label="created before", max_length=40),
            "state": _make_state_field("is or ended in"),
        }
        if tags := sorted({tag for state in self._outline.states for tag in state.tags}):
            found["tag"] = forms.ChoiceField(label="tag", choices=[("", "any"), *((tag, tag) for tag in tags)])
        if self._indexed:
            found["by"] = forms.ChoiceField(
                label="data field", choices=[("", "none"), *((name, name) for name in self._indexed)]
            )
            found["is"] = forms.CharField(label="value", max_length=MAX_TEXT, strip=False)
        if self._names:
            found["actor"] = forms.CharField(label="person took part", max_length=MAX_ACTOR)
        for name, field in found.items():
            field.label, field.required = f"{second}{field.label}", False
            self.fields[f"{prefix}{name}"] = field

    def _add_funnel(self) -> None:
        for number, name in enumerate(STAGES):
            label = f"then {number + 1}" if number else "from"
            self.fields[name] = _make_state_field(label)
        self.fields["within"] = DurationField(label="within", required=False, max_length=40, help_text="such as 2d")

    def _add_people(self) -> None:
        groups = [(name, label) for name, label in GROUPS.items() if name != "actor" or self._names]
        self.fields["each"] = forms.ChoiceField(label="by", required=False, choices=groups)

    def _add_levels(self) -> None:
        self.fields["limit"] = DurationField(label="limit for every state", required=False, max_length=40)

    def _add_compare(self) -> None:
        self._add_search(SECOND)

    @property
    def given(self) -> dict[str, str]:
        """Return the terms of the search alone, which links to other questions keep."""
        return {name: self.data[name] for name in self.common if self.data.get(name)} | {"show": "", "figure": ""}

    def read_search(self, prefix: str = "") -> Search:
        """Return the search. Call it after ``is_valid()``. Raise BadSearch."""

        def read(name: str) -> Any:
            return self.cleaned_data.get(f"{prefix}{name}")

        return Search(
            self._outline.id,
            versions=read("version") or (),
            begin=in_ms(read("since")) if read("since") else None,
            end=in_ms(read("until")) if read("until") else None,
            where=((read("by"), read("is") or ""),) if read("by") else (),
            tag=read("tag") or "",
            actor=read("actor") or "",
            state=read("state") or "",
        )


def make_filter(actor: Actor, view: VersionView, asked: Mapping[str, str]) -> InsightFilter:
    """Make the filter for a person. Raise Forbidden and Concealed where it would tell what the person may not see."""
    names, machine = actor.may(NAMES, view.machine), view.machine
    if any(asked.get(name) for name in ("actor", f"{SECOND}actor")) or asked.get("each") == "actor":
        actor.demand(NAMES, machine)
    for name in ("by", f"{SECOND}by"):
        if asked.get(name):
            demand_findable(actor.may("reveal", machine), machine, {"where": {asked[name]: ""}})
    # Facts lack sensitive fields, also for people who may reveal them
    return InsightFilter(asked, view.outline, strict_redactor(machine).fields, names)
