"""The page: a text with its findings and its diagram. Without script it is a form that says all this after a submit."""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from django import forms
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_POST

from dashboard.shared.addresses import parse_number
from dashboard.shared.counts import describe_versions
from dashboard.shared.errors.statuses import status_of
from dashboard.shared.form_views import answer_form
from dashboard.shared.permissions import find_of_machine, require, require_audited
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import answer_json, render_page
from dashboard.shared.times import in_ms
from machines import formats
from machines.catalog import offload
from machines.catalog.editing.changes import FIELDS
from machines.catalog.editing.checking import WRITTEN, choose_folds
from machines.catalog.editing.starters import list_starters
from machines.catalog.errors import DraftChanged, DraftClosed
from machines.catalog.queries import find_latest, get_version
from machines.catalog.versions import drafts, editors
from machines.diagrams import DRAWING
from machines.engine import BadInput, SignalboxError
from machines.engine.errors import UnknownMachine
from machines.engine.limits import MAX_DEFINITION, MAX_REASON, check_machine_name
from machines.insight.discovery import discover
from machines.insight.errors import BadLog
from machines.instances.forms import PageForm
from machines.models import Draft, MachineVersion
from machines.people.actor import Actor
from machines.people.errors import TooFast

from . import checks
from .checks import read_format, refuse, refuse_error

CPU = 6.0
OPEN = 10  # drafts of others that are named
FIRST = 64 * 1024  # characters of a text whose diagram is in the page; a larger one is drawn by the first check


class TextForm(PageForm):
    text = forms.CharField(
        label="definition",
        strip=False,
        widget=forms.Textarea({"rows": 30, "spellcheck": "false", "autocapitalize": "off", "wrap": "off"}),
        error_messages={"required": "Enter a definition."},
    )
    note = forms.CharField(label="note", required=False, max_length=MAX_REASON, help_text="What changes, and why.")


@dataclass
class Workspace:
    """What is edited. ``machine`` is empty for one that has no name yet; ``base``: the version that it was made from;
    ``current``: the one that the next comes after; ``published``: the one whose text it is; ``drawn``: its stored
    diagram; ``theirs``: the text that another author wrote meanwhile."""

    machine: str
    text: str
    draft: Draft | None = None
    base: int | None = None
    current: int | None = None
    writable: bool = True
    note: str = ""
    format: str = ""
    checked: dict[str, Any] = field(default_factory=dict)
    published: MachineVersion | None = None
    drawn: str = ""
    mistake: str = ""
    theirs: Draft | None = None
    others: list[Any] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)

    @property
    def is_stale(self) -> bool:
        return self.draft is not None and self.draft.base != self.current

    @property
    def drawing(self) -> SafeString:
        return mark_safe(self.checked.get("svg", self.drawn))  # noqa: S308  our own drawing


@require("publish")
def new(request: HttpRequest) -> HttpResponse:
    """Show a machine that does not exist yet: empty, from a template, or from pasted text."""
    starters = list_starters()
    if request.method != "POST":
        starter = starters.get(request.GET.get("template", ""), starters["empty"])
        space = Workspace("", starter.text)
        _draw_first(request, space)
        return _render_page(request, space, chosen=starter.name)
    if "log" in request.FILES:
        return _discover(request, request.FILES["log"])
    space = Workspace("", request.POST.get("text", ""), note=request.POST.get("note", ""))
    return _submit(request, space)


def _discover(request: HttpRequest, log: UploadedFile) -> HttpResponse:
    """Show the draft that the event log of a process makes. Raises TooFast."""
    if wait := checks.spend(request, 1 + (log.size or 0) // checks.PER_BYTES):
        raise TooFast(f"{checks.CHECKS}/{checks.PER}s", "account", wait)
    space, status = Workspace("", ""), 200
    try:
        made = discover(log.read().decode(), PurePath(log.name or "").stem)
        messages.info(request, f"{made.kept:.0%} of the steps of {made.cases:,} cases are in the draft")
        space.text = made.text
        _draw_first(request, space)
    except (BadLog, UnicodeDecodeError) as error:
        space.mistake = f"{error.message} ({error.code})" if isinstance(error, BadLog) else "The log is not UTF-8."
        status = 400
    return _render_page(request, space, status=status)


@require("view")
def edit(request: HttpRequest, machine: str) -> HttpResponse:
    """Show a machine's definition: the draft of the address, else the newest that this person wrote, else the current
    version. An account that may not publish can read it."""
    space = _open(request, Actor.of(request), machine)
    _draw_first(request, space)
    return _render_page(request, space)


@answer_form("studio", "publish", "draft.save")
def submit(request: HttpRequest, machine: str) -> HttpResponse:
    """Save the text as a draft, as the form does without a script."""
    space = _open(request, Actor.of(request), machine)
    space.text, space.note = request.POST.get("text", ""), request.POST.get("note", "")
    return _submit(request, space)


def _open(request: HttpRequest, actor: Actor, machine: str) -> Workspace:
    may, current = actor.may("publish", machine), find_latest(machine)
    asked = request.POST.get("draft") or request.GET.get("draft", "")
    mine: list[Draft] = list(drafts.list_drafts(actor, machine)[:OPEN]) if may else []
    draft = None
    if asked:
        draft = _find(actor, machine, asked)
    elif may and "version" not in request.GET:
        own = next((one for one in mine if actor.id and actor.id in (one.editor_id, one.author_id)), None)
        draft = drafts.get(actor, own.pk) if own is not None else None
    if draft is None and current is None:
        raise UnknownMachine(machine)
    base = draft.base if draft is not None else current
    published = get_version(machine, current or 0) if draft is None else None
    text = draft.text if published is None else _write(published)
    return Workspace(
        machine, text, draft, base, current, may and (draft is None or draft.is_open),
        note=draft.note if draft is not None else "", format=draft.format if draft is not None else "json",
        drafts=[one for one in mine if draft is None or one.pk != draft.pk],
        others=editors.list_editors(actor, machine) if may else [], published=published,
    )  # fmt: skip


def _find(actor: Actor, machine: str, asked: str) -> Draft:
    """Return a draft of this machine. Raises Http404."""
    if (number := parse_number(asked)) is None:
        raise Http404("The number of a draft is a whole number.")
    return find_of_machine(lambda: drafts.get(actor, number), machine, "draft")


def _write(version: MachineVersion) -> str:
    return json.dumps(version.definition, indent=2, ensure_ascii=False) + "\n"


def _draw_first(request: HttpRequest, space: Workspace) -> None:
    """Draw and check the text that the page opens with: a published one as it is stored, any other in a helper process
    that is free. The page waits for none: what it opens without comes with the first check. ``?check``: it waits, since
    there is no script."""
    version, waits = space.published, "check" in request.GET
    run = offload.run if waits else offload.pool.run_if_free
    if len(space.text) > FIRST and not waits:
        return
    if version is not None and version.drawing_format == DRAWING:
        space.drawn = "" if choose_folds(version.outline) else version.drawing
    elif not checks.spend(request, 1):
        with suppress(offload.OffloadError):
            done = run("study", space.text, who=Actor.of(request).id, cpu=checks.VIEWERS_CPU)
            space.checked = done.answer if done is not None else {}


def _submit(request: HttpRequest, space: Workspace) -> HttpResponse:
    form, actor, draft = TextForm(request.POST), Actor.of(request), space.draft
    space.text = space.text.replace("\r\n", "\n")
    if not form.is_valid():
        return _render_page(request, space, form=form, status=400)
    machine = space.machine or _name(request, space)
    if space.mistake:
        return _render_page(request, space, status=400)
    try:
        made = drafts.save(
            actor, machine, space.text, format=_format_of(space), note=space.note,
            id=draft.pk if draft is not None else None,
            expect=parse_number(request.POST.get("expect", "")),
            base=space.base if draft is None else None,
        )  # fmt: skip
    except (DraftChanged, DraftClosed, BadInput) as error:
        space.mistake = f"{error.message} ({error.code})"
        space.theirs = Draft.objects.get(pk=draft.pk) if draft is not None and isinstance(error, DraftChanged) else None
        return _render_page(request, space, status=status_of(type(error)))
    messages.success(request, f"Draft {made.pk} saved")
    return redirect(f"{reverse('signalbox:studio', args=[machine])}?{urlencode({'draft': made.pk, 'check': ''})}")


def _format_of(space: Workspace) -> str:
    found = formats.guess(space.text)
    return found if found in formats.READERS else "guess"


def _name(request: HttpRequest, space: Workspace) -> str:
    """Return the name that a new text gives its machine."""
    try:
        space.checked = offload.run("study", space.text, who=Actor.of(request).id, cpu=CPU).answer
    except offload.OffloadError as error:
        space.mistake = f"{error.message} ({error.code})"
    name = str(space.checked.get("machine", ""))
    if not name or check_machine_name(name) is not None:
        space.mistake = space.mistake or 'The text does not name its machine: write "id" at its beginning. (SB106)'
    return name


def _render_page(
    request: HttpRequest, space: Workspace, *, form: TextForm | None = None, chosen: str = "", status: int = 200
) -> HttpResponse:
    form = form or TextForm(initial={"text": space.text, "note": space.note})
    context = {
        "section": "machines", "space": space, "machine": space.machine, "form": form, "chosen": chosen,
        "starters": [] if space.machine else list_starters().values(), "fields": FIELDS,
    }  # fmt: skip
    context |= describe_versions(redacted_engine(request), space.machine) if space.machine else {"live": None}
    return render_page(request, "signalbox/studio/studio.html", context, status=status)


@require_audited("publish", "draft.save")
@require_POST
def save(request: HttpRequest, machine: str) -> JsonResponse:
    """Keep the text of the body. ``?draft=N&expect=R``: in that draft, if it is at revision R; else in a new one, made
    from version ``base``. A draft that another author changed meanwhile answers 409, with what it is now."""
    actor, asked = Actor.of(request), request.GET
    id, expect, base = (parse_number(asked.get(name, "")) for name in ("draft", "expect", "base"))
    format, note = asked.get("format", ""), asked.get("note", "")
    if int(request.META.get("CONTENT_LENGTH") or 0) > MAX_DEFINITION:
        return refuse(413, "SB713", f"A draft has at most {MAX_DEFINITION:,} bytes.")
    try:
        text = request.body.decode()
    except UnicodeDecodeError:
        return refuse(400, "SB700", "The text is not valid UTF-8.")
    format = read_format(format, WRITTEN)
    try:
        if id is None:
            made = drafts.save(actor, machine, text, format=format, note=note, base=base)
        else:
            made = drafts.autosave(actor, machine, text, format=format, note=note, id=id, expect=expect or 0)
    except Draft.DoesNotExist:
        return refuse(404, "SB704", f"Machine {machine} has no draft {id}.")
    except (DraftChanged, DraftClosed) as error:
        return refuse(409, error.code, error.message, draft=_describe(Draft.objects.get(pk=id), text=True))
    except (BadInput, SignalboxError) as error:
        return refuse_error(error)
    return answer_json(_describe(made))


@require("publish")
@require_POST
def note_presence(request: HttpRequest, machine: str) -> JsonResponse:
    """Say that this person is editing; answer who else is, and whether the draft was changed meanwhile."""
    actor, id = Actor.of(request), parse_number(request.GET.get("draft", ""))
    if "leave" in request.GET:
        editors.end_editing(actor, machine)
        return answer_json({"others": []})
    line, state = parse_number(request.GET.get("line", "")), request.GET.get("state", "")
    others = [
        {"who": one.who, "draft": one.draft, "line": one.line, "state": one.state}
        for one in editors.note_editing(actor, machine, id, line, state)
    ]
    row = Draft.objects.defer("text").filter(pk=id, machine=machine).first() if id is not None else None
    return answer_json({"others": others, "draft": _describe(row) if row else None, "current": find_latest(machine)})


def _describe(draft: Draft, *, text: bool = False) -> dict[str, Any]:
    facts = {
        "id": draft.pk, "revision": draft.revision, "base": draft.base, "state": draft.state, "editor": draft.editor,
        "at": in_ms(draft.updated_at), "note": draft.note,
    }  # fmt: skip
    return facts | ({"text": draft.text} if text else {})
