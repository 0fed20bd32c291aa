"""Drafts: definitions that are not published yet."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Status
from pydantic import Field

from dashboard.api.framework import cursors
from dashboard.api.framework.approvals import ApprovalOut
from dashboard.api.framework.operation import Group, actor_of, charge
from dashboard.api.framework.preconditions import read_expected, set_etag
from dashboard.api.framework.schemas import Body, Listed, Ms, Out, Why
from dashboard.machines.api import FindingOut, Published
from machines.catalog.submissions import FORMAT_NAMES
from machines.engine.limits import MAX_DEFINITION, VIEWERS_DEFINITION
from machines.models import Draft
from machines.versions import drafts

group = Group("drafts", "Definitions that are not published yet.")
DRAFT = "/drafts/{int:draft}"
DRAFTS = "/machines/{name:machine}/drafts"


class DraftRow(Out):
    """A draft without its text."""

    id: int
    machine: str
    base: int | None = Field(description="the version that it was made from; null: there was no such machine")
    format: str
    note: str
    author: str
    created: Ms = Field(validation_alias="created_at")
    updated: Ms = Field(validation_alias="updated_at")
    revision: int
    state: str = Field(description="open, published or discarded")
    published: int | None = Field(description="the version it became")
    closed_by: str = Field(description="who published or discarded it")


class DraftOut(DraftRow):
    text: str
    digest: str = Field(description="of format and text: an approval covers exactly these")


class Drafts(Listed[DraftRow]):
    pass


class Drafting(Body):
    text: str = Field(max_length=MAX_DEFINITION, description="the definition, finished or not")
    format: str = Field("guess", description=f"of the text: {', '.join(FORMAT_NAMES)}")
    note: Why = ""


class NewDraft(Drafting):
    base: int | None = Field(None, ge=1, description="the version it is made from; the current one by default")


class Rebasing(Body):
    onto: int = Field(ge=1, description="the version that it was compared with: it has to be the current one")


class Discarding(Body):
    reason: Why = ""


class DraftPublishing(Body):
    reason: Why = Field("", description="kept with the version; the draft's note by default")
    rollout: float | None = Field(None, ge=0, le=100, description="per cent of new instances that get it; null: all")


class DraftCheck(Out):
    """``publishable``: whether nothing in it, and no newer version, keeps it from being published."""

    publishable: bool
    findings: list[FindingOut]
    base: int | None
    current: int | None = Field(
        description="the machine's current version, or the one that is rolled out: another than `base` is a conflict"
    )
    needs_approval: bool = Field(
        validation_alias="needs_second", description="whether publishing it takes a second person"
    )


@group.get(DRAFTS, id="listDrafts", right="publish", answers=Drafts, summary="List drafts")
def list_all(
    request: HttpRequest, machine: str, state: Literal["open", "published", "discarded", "any"] = "open",
    limit: int = Query(50, ge=1, le=500), cursor: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """List drafts, newest first."""
    found = drafts.list_drafts(actor_of(request), machine, state="" if state == "any" else state)
    return cursors.read_page("drafts", found, limit, cursor)


@group.post(
    DRAFTS, id="saveDraft", right="publish", answers={201: DraftOut}, refusals=(404,), summary="Save a draft",
    costly=True, most=VIEWERS_DEFINITION,
    example={"text": '{"id": "door", "initial": "shut", "states": {"shut": {}}}', "note": "first try"},
)  # fmt: skip
def save(request: HttpRequest, response: HttpResponse, machine: str, body: NewDraft) -> Status:
    """Save a draft of a machine that is there, or of a new one. Anything may be in the text; `check` says what is
    wrong."""
    made = drafts.save(actor_of(request), machine, body.text, format=body.format, note=body.note, base=body.base)
    return Status(201, set_etag(response, made))


@group.get(DRAFT, id="getDraft", right="publish", answers=DraftOut, summary="Get a draft")
def one(request: HttpRequest, response: HttpResponse, draft: int) -> Draft:
    """Return the draft; `ETag` is its revision."""
    return set_etag(response, drafts.get(actor_of(request), draft))


@group.put(
    DRAFT, id="changeDraft", right="publish", answers=DraftOut, matches=True, summary="Change a draft", costly=True,
    most=VIEWERS_DEFINITION,
    example={"text": '{"id": "door", "initial": "shut", "states": {"shut": {}}}', "note": "second try"},
)  # fmt: skip
def change(request: HttpRequest, response: HttpResponse, draft: int, body: Drafting) -> Draft:
    """Replace the whole text. With `If-Match`, only if nobody changed it since."""
    actor = actor_of(request)
    machine = drafts.get(actor, draft, action="draft.save").machine
    made = drafts.save(
        actor, machine, body.text, format=body.format, note=body.note, id=draft, expect=read_expected(request)
    )
    return set_etag(response, made)


@group.post(
    f"{DRAFT}/check", id="checkDraft", right="publish", answers=DraftCheck, changes=False, summary="Check a draft"
)
def check(request: HttpRequest, draft: int) -> DraftCheck:
    """Return every finding, and whether the draft could be published now."""
    found = drafts.check(actor_of(request), draft, charge=partial(charge, request))
    return DraftCheck.build(found, findings=found.submission.findings, base=found.draft.base)


@group.post(
    f"{DRAFT}/rebase", id="rebaseDraft", right="publish", answers=DraftOut, matches=True, summary="Rebase a draft",
    example={"onto": 3},
)  # fmt: skip
def rebase(request: HttpRequest, response: HttpResponse, draft: int, body: Rebasing) -> Draft:
    """Record that the draft was compared with the current version and is to replace it. The text stays as it is."""
    made = drafts.rebase(actor_of(request), draft, onto=body.onto, expect=read_expected(request))
    return set_etag(response, made)


@group.post(
    f"{DRAFT}/discard", id="discardDraft", right="publish", answers=DraftOut, matches=True, summary="Discard a draft"
)
def discard(request: HttpRequest, response: HttpResponse, draft: int, body: Discarding) -> Draft:
    """Discard the draft. Its text can still be read."""
    made = drafts.discard(actor_of(request), draft, expect=read_expected(request), reason=body.reason)
    return set_etag(response, made)


@group.post(
    f"{DRAFT}/publish", id="publishDraft", right="publish", answers={201: Published, 202: ApprovalOut}, matches=True,
    summary="Publish a draft", example={"reason": "the door can be locked"},
)  # fmt: skip
def publish(request: HttpRequest, draft: int, body: DraftPublishing) -> Status:
    """Publish the draft. It becomes its machine's current version, or with `rollout` that of a part of the new
    instances. 409 (`SB640`) where its base is no longer the current version. Where it takes a second person, 202 and
    the request."""
    version = drafts.publish(
        actor_of(request), draft, reason=body.reason, rollout=body.rollout, expect=read_expected(request),
        charge=partial(charge, request),
    )  # fmt: skip
    return Status(201, Published.build(version, machine=version.machine.name))
