"""Drafts of definitions: write one, see what it changes, publish it to a share of new instances."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.shared.addresses import parse_number
from dashboard.shared.counts import count_versions
from dashboard.shared.form_views import answer_form
from dashboard.shared.permissions import find_of_machine, require_audited
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.rendering import render_page
from machines.approvals import queries as approval_queries
from machines.catalog import offload
from machines.catalog.queries import stored_current
from machines.engine import BadInput, DefinitionError, Live
from machines.engine.errors import UnknownMachine
from machines.engine.limits import MAX_REASON
from machines.instances.forms import PageForm
from machines.models import Draft
from machines.people.actor import Actor
from machines.people.errors import DraftChanged, DraftClosed, DraftConflict
from machines.versions import drafts

from . import comparison
from .comparison import DRAFT, Side


class DraftForm(PageForm):
    text = forms.CharField(
        label="definition",
        widget=forms.Textarea({"rows": 28, "spellcheck": "false", "autocapitalize": "off"}),
        error_messages={"required": "Enter a definition."},
    )
    note = forms.CharField(label="note", required=False, max_length=MAX_REASON, help_text="What changes, and why.")


class PublishForm(PageForm):
    """``rollout``: percent of new instances; empty for all of them."""

    rollout = forms.FloatField(label="percent of new instances", required=False, min_value=0, max_value=100)
    reason = forms.CharField(label="note of the version", required=False, max_length=MAX_REASON)
    expect = forms.IntegerField(widget=forms.HiddenInput)


@require_audited("publish", "draft.save")
def new(request: HttpRequest, machine: str) -> HttpResponse:
    """Show the form for a new draft, filled with the current version; a POST keeps it."""
    if request.method != "POST":
        text = json.dumps(stored_current(machine).definition, indent=2, ensure_ascii=False)
        return _render_text_page(request, machine, DraftForm(initial={"text": text}))
    form = DraftForm(request.POST)
    if not form.is_valid():
        return _render_text_page(request, machine, form, status=400)
    try:
        made = drafts.save(Actor.of(request), machine, **form.cleaned_data)
    except BadInput as error:
        form.add_error(None, f"{error.message} ({error.code})")
        return _render_text_page(request, machine, form, status=400)
    return redirect("signalbox:draft", machine, made.pk)


def _render_text_page(
    request: HttpRequest, machine: str, form: DraftForm, *, draft: Draft | None = None, status: int = 200
) -> HttpResponse:
    engine = redacted_engine(request)
    live = _find_live(engine, machine)
    context = {
        "section": "machines", "machine": machine, "live": live, "form": form, "draft": draft,
        "versions": count_versions(engine, machine, live) if live is not None else None,
    }  # fmt: skip
    return render_page(request, "signalbox/versions/draft_text.html", context, status=status)


@require_audited("publish", "draft.save", target="id")
def edit(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    """Change the text. A draft that was changed meanwhile is not written over."""
    draft = _get(request, machine, id)
    if request.method != "POST":
        return _render_text_page(
            request, machine, DraftForm(initial={"text": draft.text, "note": draft.note}), draft=draft
        )
    form, expect = DraftForm(request.POST), parse_number(request.POST.get("expect", ""))
    if not form.is_valid():
        return _render_text_page(request, machine, form, draft=draft, status=400)
    try:
        drafts.save(
            Actor.of(request), machine, **form.cleaned_data, format=draft.format, id=id,
            expect=draft.revision if expect is None else expect,
        )  # fmt: skip
    except (BadInput, DraftChanged, DraftClosed) as error:
        form.add_error(None, f"{error.message} ({error.code})")
        return _render_text_page(
            request, machine, form, draft=draft, status=409 if not isinstance(error, BadInput) else 400
        )
    return redirect("signalbox:draft", machine, id)


@require_audited("publish", "draft.save", target="id")
def show(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    return draft_page(request, machine, id)


def _get(request: HttpRequest, machine: str, id: int) -> Draft:
    """Return a draft of this machine. Raises Http404."""
    return find_of_machine(lambda: drafts.get(Actor.of(request), id), machine, "draft")


def draft_page(
    request: HttpRequest,
    machine: str,
    id: int,
    *,
    form: PublishForm | None = None,
    mistake: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render a draft: its findings, what it changes, and how to publish it."""
    draft, actor = _get(request, machine, id), Actor.of(request)
    engine = redacted_engine(request)
    live = _find_live(engine, machine)
    try:
        check = drafts.check(actor, id)
    except offload.OffloadError as error:
        check, mistake = None, mistake or str(error)
    form = form or PublishForm(initial={"rollout": 5, "reason": draft.note, "expect": draft.revision})
    context: dict[str, Any] = {
        "section": "machines", "machine": machine, "live": live, "draft": draft, "check": check, "form": form,
        "versions": count_versions(engine, machine, live) if live is not None else None, "mistake": mistake,
        "requests": approval_queries.find_open().filter(machine=machine, action="publish", target=f"draft {id}"),
    }  # fmt: skip
    if check and check.submission.definition is not None and draft.base is not None and draft.is_open:
        context |= _compare(request, machine, draft, check.submission.definition, clean=not check.submission.errors)
    return render_page(request, "signalbox/versions/draft.html", context, status=status)


def _find_live(engine: RedactedEngine, machine: str) -> Live | None:
    """Return None for a machine that has drafts and no version yet."""
    try:
        return engine.live(machine)
    except UnknownMachine:
        return None


def _compare(
    request: HttpRequest, machine: str, draft: Draft, definition: dict[str, Any], *, clean: bool
) -> dict[str, Any]:
    """Return what the draft changes; nothing for one with errors, which cannot be compared."""
    if not clean:
        return {}
    old = comparison.read_side(Actor.of(request), machine, str(draft.base))
    new = Side(f"{DRAFT}{draft.pk}", f"draft {draft.pk}", definition, draft=draft.pk)
    return comparison.describe(redacted_engine(request), old, new, machine, who=str(request.user.pk))


@answer_form("draft", "publish", "publish", target="id")
def publish(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    """Publish a draft, to a share of new instances or to all."""
    draft, form = _get(request, machine, id), PublishForm(request.POST)
    if not form.is_valid():
        return draft_page(request, machine, id, form=form, status=400)
    given = form.cleaned_data
    percent = given["rollout"] if given["rollout"] is not None and given["rollout"] < 100 else None
    try:
        version = drafts.publish(
            Actor.of(request), draft.pk, reason=given["reason"], rollout=percent, expect=given["expect"]
        )
    except DefinitionError:
        return draft_page(
            request, machine, id, form=form, mistake="The draft has errors: see the findings.", status=400
        )
    except (DraftConflict, DraftChanged, DraftClosed, BadInput) as error:
        return draft_page(request, machine, id, form=form, mistake=f"{error.message} ({error.code})", status=409)
    messages.success(request, f"Version {version.number} published" + _describe_share(percent))
    return redirect("signalbox:version", machine, version.number)


def _describe_share(percent: float | None) -> str:
    if percent is None:
        return ": every new instance gets it"
    return f": {percent:g} % of new instances get it" if percent else ": no new instance gets it yet"


@answer_form("draft", "publish", "draft.rebase", target="id")
def rebase(request: HttpRequest, machine: str, id: int) -> str | HttpResponse:
    """Say that the draft was compared with the current version, and is to replace it."""
    if onto := parse_number(request.POST.get("onto", "")):
        said = f"Rebased: draft {id}"
        return _change(request, machine, id, lambda actor: drafts.rebase(actor, id, onto=onto)) or said
    return redirect("signalbox:draft", machine, id)


@answer_form("draft", "publish", "draft.discard", target="id")
def discard(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    if failed := _change(request, machine, id, lambda actor: drafts.discard(actor, id)):
        return failed
    messages.success(request, f"Discarded: draft {id}")
    live = _find_live(redacted_engine(request), machine)
    return redirect("signalbox:versions", machine) if live is not None else redirect("signalbox:overview")


def _change(request: HttpRequest, machine: str, id: int, act: Callable[[Actor], Draft]) -> HttpResponse | None:
    """Change a draft. Return the page that says why it was not changed; None where it was."""
    _get(request, machine, id)
    try:
        act(Actor.of(request))
    except (DraftConflict, DraftChanged, DraftClosed) as error:
        return draft_page(request, machine, id, mistake=f"{error.message} ({error.code})", status=409)
    return None
