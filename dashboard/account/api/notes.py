"""The handover note."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.preconditions import read_expected, set_etag
from dashboard.api.framework.schemas import Body, Ms, Out
from machines.people import notes
from machines.people.notes import MAX_TEXT, Note

group = Group("note", "Handover note between shifts.")


class NoteOut(Out):
    text: str
    author: str = Field(description="of its last change; empty where nobody ever wrote one")
    at: Ms
    revision: int = Field(description="what If-Match takes")


class NoteWriting(Body):
    text: str = Field(max_length=MAX_TEXT, description="plain; empty clears it")


@group.get("/note", id="getNote", right="view", answers=NoteOut, summary="Get the note")
def read(request: HttpRequest, response: HttpResponse) -> Note:
    """Return the note; `ETag` is its revision."""
    note = notes.read(actor_of(request))
    set_etag(response, note)
    return note


@group.put(
    "/note", id="putNote", right="fire", answers=NoteOut, matches=True, summary="Update the note",
    example={"text": "lamp 7 is being replaced until noon"},
)  # fmt: skip
def write(request: HttpRequest, response: HttpResponse, body: NoteWriting) -> Note:
    """Replace the whole note. With `If-Match`, only if nobody wrote since."""
    note = notes.write(actor_of(request), body.text, expect=read_expected(request))
    set_etag(response, note)
    return note
