"""Keeps what is written as a draft, for the script of the Studio, and says who else is writing."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_POST

from dashboard.shared.addresses.numbers import parse_number
from dashboard.shared.permissions import require, require_audited
from dashboard.shared.rendering import answer_json
from dashboard.shared.times.times import in_ms
from machines.catalog import queries
from machines.catalog.editing.checking import WRITTEN
from machines.engine import BadInput, SignalboxError
from machines.engine.limits import MAX_DEFINITION
from machines.models import Draft
from machines.people.actor import Actor
from machines.people.errors import DraftChanged, DraftClosed
from machines.versions import drafts

from .checks import read_format, refuse, refuse_error


@require_audited("publish", "draft.save")
@require_POST
def save(request: HttpRequest, machine: str) -> JsonResponse:
    """Keep the text of the body. ``?draft=N&expect=R``: in that draft, if it is at revision R; else in a new one, made
    from version ``base``. A draft that somebody else changed meanwhile answers 409, with what it is now."""
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
        drafts.end_editing(actor, machine)
        return answer_json({"others": []})
    others = [{"who": one.who, "draft": one.draft} for one in drafts.note_editing(actor, machine, id)]
    row = Draft.objects.defer("text").filter(pk=id, machine=machine).first() if id is not None else None
    return answer_json(
        {"others": others, "draft": _describe(row) if row else None, "current": queries.find_latest(machine)}
    )


def _describe(draft: Draft, *, text: bool = False) -> dict[str, Any]:
    facts = {
        "id": draft.pk, "revision": draft.revision, "base": draft.base, "state": draft.state, "editor": draft.editor,
        "at": in_ms(draft.updated_at), "note": draft.note,
    }  # fmt: skip
    return facts | ({"text": draft.text} if text else {})
