"""The handover note: a page to write it, and to merge two texts that were written at once."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.shared.addresses.numbers import REVISION_DIGITS, parse_number
from dashboard.shared.permissions import anywhere, require_audited
from dashboard.shared.rendering import render_page
from machines.engine import BadInput, EngineFault
from machines.patterns import Changed
from machines.people import notes
from machines.people.actor import Actor
from machines.people.notes import MAX_TEXT, Note


def read_note(request: HttpRequest) -> dict[str, object]:
    """Return the context of the note's panel."""
    found: dict[str, object] = {"note_limit": MAX_TEXT, "may_write": anywhere(request.user, "fire")}
    try:
        return found | {"note": notes.read(Actor.of(request))}
    except EngineFault as fault:  # the rest of the page is worth more
        return found | {"note_fault": f"{fault.message} ({fault.code})"}


@require_audited("fire", "note.write")
def show(request: HttpRequest) -> HttpResponse:
    """Show the form and save the note. A text that was saved meanwhile is shown beside one's own, to merge them."""
    actor = Actor.of(request)
    if request.method != "POST":
        standing = notes.read(actor)
        return _render_page(request, standing, standing.text)
    text = request.POST.get("text", "").replace("\r\n", "\n")
    seen = parse_number(request.POST.get("revision", ""), REVISION_DIGITS)
    try:
        if seen is None:
            raise BadInput("the form is incomplete: reload the page", code="SB402")
        notes.write(actor, text, expect=seen)
    except Changed as changed:
        standing = notes.note_of(changed.found)
        joined = f"{standing.text}\n\n{text}".strip()
        return _render_page(request, standing, joined if len(joined) <= MAX_TEXT else text, mine=text, status=409)
    except BadInput as error:
        return _render_page(request, notes.read(actor), text, mistake=f"{error.message} ({error.code})", status=400)
    messages.success(request, "Handover note saved")
    return redirect("signalbox:overview")


def _render_page(
    request: HttpRequest, standing: Note, text: str, *, mine: str | None = None, mistake: str = "", status: int = 200
) -> HttpResponse:
    """Render the form. ``mine``: the text that was not saved because ``standing`` was saved meanwhile."""
    context = {
        "section": "machines", "standing": standing, "text": text, "mine": mine, "mistake": mistake,
        "note_limit": MAX_TEXT,
    }  # fmt: skip
    return render_page(request, "signalbox/overview/note.html", context, status=status)
