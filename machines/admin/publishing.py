"""Publishes a definition in the admin: paste or upload, findings, confirmation."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import mark_safe

from machines.catalog import offload
from machines.catalog.models import Machine, MachineVersion
from machines.catalog.queries import list_changes
from machines.catalog.submissions import GUESS, Submission
from machines.engine import EngineUnavailable, SignalboxError
from machines.engine.definitions import find_embedded
from machines.formats import FORMATS, READERS
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.versions import publication

from .context import machine_url, screen, write_log_entry

LIMIT = 1 << 20  # bytes; the reader refuses more, and one more byte is enough for it to see that
CPU = 20.0  # seconds of processor time that reading a definition, or drawing it, may take
CODE = {"rows": 24, "cols": 100, "spellcheck": "false", "autocomplete": "off", "class": "vLargeTextField sb-code"}


class DefinitionForm(forms.Form):
    text = forms.CharField(required=False, strip=False, label="definition", widget=forms.Textarea(CODE))
    file = forms.FileField(required=False, label="or file", help_text="at most 1 MiB")
    format = forms.ChoiceField(
        choices=[(GUESS, "auto-detect"), *((name, FORMATS[name]) for name in READERS)], label="format"
    )
    notes = forms.CharField(
        label="notes",
        required=False,
        max_length=1000,
        help_text="what changed",
        widget=forms.TextInput({"class": "vTextField"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not cleaned.get("text", "").strip() and not cleaned.get("file") and "file" not in self.errors:
            raise forms.ValidationError("Paste a definition, or choose a file.", code="required")
        return cleaned

    def submission(self, who: str, **wanted: bool) -> Submission:
        """Return what was handed in, with what else is ``wanted`` of it: all that publishing it takes (``whole``), its
        diagram (``drawn``). A file goes before pasted text. Only after ``is_valid()``. Raises OffloadError."""
        uploaded = self.cleaned_data.get("file")
        handed = uploaded.read(LIMIT + 1) if uploaded else self.cleaned_data["text"]
        name = uploaded.name if uploaded else ""
        words = {"format": self.cleaned_data["format"], "name": name}
        done = offload.run("read", handed, who=who, cpu=CPU, **words, **wanted)
        return offload.read_submission(done)


def show(request: HttpRequest) -> HttpResponse:
    """Return the form; with ``?machine=<name>``, filled with that machine's current definition."""
    posted = request.method == "POST"
    Actor.of(request).demand("publish", request.GET.get("machine", ""), action="publish" if posted else "")
    if posted:
        return _handed_in(request)
    start = {"text": _current(request.GET.get("machine", "")), "format": GUESS}
    return _screen(request, DefinitionForm(initial=start))


def _handed_in(request: HttpRequest) -> HttpResponse:
    form = DefinitionForm(request.POST, request.FILES)
    if not form.is_valid():
        return _screen(request, form, status=400)
    publish = "publish" in request.POST
    submission = form.submission(Actor.of(request).id, whole=publish, drawn=not publish)
    if submission.errors:
        return _screen(request, _again(form, submission), submission, status=400)
    if not publish:
        return _screen(request, _again(form, submission), submission)
    known = set(MachineVersion.objects.values_list("pk", flat=True))
    changes = list_changes(submission.compiled) if submission.compiled is not None else []
    try:
        version = publication.publish(Actor.of(request), submission.compiled, reason=form.cleaned_data["notes"])
    except (EngineUnavailable, Forbidden):
        raise
    except SignalboxError as error:
        form.add_error(None, f"{error.message} ({error.code})")
        return _screen(request, form, submission, status=409)
    for finding in changes:
        messages.warning(request, f"{finding.message}: {finding.hint} ({finding.code}).")
    if version.pk in known:
        messages.info(request, f"No change: {version} already has this content.")
    else:
        names = [version.machine.name, *find_embedded(submission.definition)]
        written = MachineVersion.objects.filter(machine__name__in=names, published_by=request.user).exclude(
            pk__in=known
        )
        for made in written.select_related("machine").defer("definition", "drawing"):
            text = f"Published version {made.number} ({made.digest})."
            write_log_entry(request, made.machine, text, f"v{made.number}")
        messages.success(request, f"Published: {version} is the current version.")
    return HttpResponseRedirect(machine_url(version.machine))


def _again(form: DefinitionForm, submission: Submission) -> DefinitionForm:
    """Return the form with an uploaded file turned into text, because browsers forget chosen files."""
    if not form.cleaned_data.get("file") or submission.definition is None:
        return form
    text = json.dumps(submission.definition, indent=2, ensure_ascii=False)
    return DefinitionForm(initial={"text": text, "format": "json", "notes": form.cleaned_data["notes"]})


def _screen(
    request: HttpRequest, form: DefinitionForm, submission: Submission | None = None, *, status: int = 200
) -> HttpResponse:
    machine = Machine.objects.filter(name=request.GET.get("machine", "")).first()
    title = f"Publish a new version of {machine}" if machine else "Publish a definition"
    return screen(
        request,
        "publish.html",
        machine,
        title,
        status=status,
        form=form,
        submission=submission,
        drawing=mark_safe(submission.drawing) if submission else "",  # noqa: S308  our own drawing
        along=list(find_embedded(submission.definition)) if submission and not submission.errors else [],
        back=machine_url(machine) if machine else reverse("admin:machines_machine_changelist"),
    )


def _current(name: str) -> str:
    machine = Machine.objects.filter(name=name).first()
    return json.dumps(machine.version().definition, indent=2, ensure_ascii=False) if machine else ""
