"""Shared links: addresses that open a page with its filters, for a week."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest
from django.urls import reverse
from ninja import Status
from pydantic import AliasPath, Field

from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Body, Mistaken, Ms, Out

from .. import links
from ..links import Link

group = Group("links", "Shared links to filtered pages, valid for a week.", recorded=False)


class LinkOut(Out):
    id: str = Field(
        validation_alias="handle", description="its public name; it stays when the link gets another address"
    )
    page: str = Field(validation_alias=AliasPath("view", "page"))
    query: str = Field(validation_alias=AliasPath("view", "query"))
    made: Ms
    expires: Ms


class LinkMadeOut(LinkOut):
    url: str = Field(description="what to send to people; it cannot be shown again")


class LinksOut(Out):
    items: list[LinkOut]


class Linking(Body):
    page: str = Field(max_length=300, description="the path of a page that only shows")
    query: str = Field("", max_length=2000)


class LinkGone(Out):
    id: str


def _describe_with_url(request: HttpRequest, link: Link) -> LinkMadeOut:
    return LinkMadeOut.build(link, url=request.build_absolute_uri(reverse("signalbox:link", args=[link.token])))


@group.get("/links", id="listLinks", right="view", answers=LinksOut, summary="List your links")
def list_own(request: HttpRequest) -> dict[str, Any]:
    """List links to pages the caller may open; the one that ends first in front."""
    actor = actor_of(request)
    scope = actor.scope("view")
    found = [link for link in links.list_links(actor.user) if not link.view.machine or link.view.machine in scope]
    return {"items": found}


@group.post(
    "/links", id="makeLink", right="view", once=False, answers={201: LinkMadeOut}, refusals=(409,),
    summary="Create a link",
    example={"page": "/machines/payment/", "query": "state=paying&older=1h"},
)  # fmt: skip
def make(request: HttpRequest, body: Linking) -> Status[LinkMadeOut]:
    """Make a link that opens the page for every account that may open it, until `expires`."""
    try:
        made = links.make_link(actor_of(request).user, body.page, body.query)
    except ValidationError as error:
        name, texts = next(iter(error.message_dict.items()))
        raise Mistaken(" ".join(texts), *([name] if name in Linking.model_fields else [])) from None
    return Status(201, _describe_with_url(request, made))


@group.post(
    "/links/{str:link}/renew", id="renewLink", right="view", once=False, answers=LinkMadeOut, summary="Renew a link"
)
def renew(request: HttpRequest, link: str) -> LinkMadeOut:
    """Replace the address. The former one opens nothing from here on; its end stays."""
    return _describe_with_url(request, links.renew_link(actor_of(request).user, link))


@group.delete("/links/{str:link}", id="revokeLink", right="view", answers=LinkGone, summary="Revoke a link")
def revoke(request: HttpRequest, link: str) -> dict[str, str]:
    if not links.revoke_link(actor_of(request).user, link):
        raise Http404("Link not found.")
    return {"id": link}
