"""Saved views: addresses of pages that a person keeps under a name."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Body, Mistaken, Out
from dashboard.models import SavedView

group = Group("views", "Saved views: named filters of a list.", recorded=False)


class ViewOut(Out):
    id: int
    name: str
    owner: str
    shared: bool
    page: str
    query: str
    url: str


class Views(Out):
    items: list[ViewOut]


class Saving(Body):
    name: str = Field(min_length=1, max_length=60)
    page: str = Field(max_length=300, description="the path of a page that only shows")
    query: str = Field("", max_length=2000)
    shared: bool = Field(False, description="every account that may see the page may see the view")


class Gone(Out):
    id: int


def _describe(view: SavedView) -> ViewOut:
    return ViewOut.build(view, owner=view.owner.get_username())


@group.get("/views", id="listViews", right="view", answers=Views, summary="List your own and shared views")
def list_all(request: HttpRequest) -> dict[str, Any]:
    """List saved views of pages the caller may open."""
    actor = actor_of(request)
    scope = actor.scope("view")
    found = SavedView.shown_to(actor.user, lambda machine: actor.may("reveal", machine))
    return {"items": [_describe(view) for view in found if not view.machine or view.machine in scope]}


@group.post(
    "/views", id="saveView", right="view", answers=ViewOut, summary="Save a view",
    example={"name": "stuck payments", "page": "/machines/payment/", "query": "state=paying&older=1h"},
)  # fmt: skip
def save(request: HttpRequest, body: Saving) -> ViewOut:
    view = SavedView(owner=actor_of(request).user, **body.model_dump())
    try:
        with transaction.atomic():
            view.save()
    except ValidationError as error:
        name, texts = next(iter(error.message_dict.items()))
        raise Mistaken(" ".join(texts), *([name] if name in Saving.model_fields else [])) from None
    except IntegrityError:
        raise Mistaken("you already have a view with this name", "name") from None
    return _describe(view)


@group.delete("/views/{int:view}", id="deleteView", right="view", answers=Gone, summary="Delete a view")
def delete(request: HttpRequest, view: int) -> dict[str, int]:
    count, _ = SavedView.objects.filter(pk=view, owner=actor_of(request).user).delete()
    if not count:
        raise Http404("View not found.")
    return {"id": view}
