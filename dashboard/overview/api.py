"""All machines together: one search for everything."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Out
from machines.engine.limits import MAX_INSTANCE_ID

from . import search as global_search

group = Group("overview", "A search over everything.")


class HitOut(Out):
    kind: str = Field(description="instance, archived instance, job, machine or queue")
    name: str
    of: str = Field(description="its machine; empty for a machine")
    exact: bool = Field(description="all of its name was asked for")
    url: str = Field(description="its page")


class Hits(Out):
    items: list[HitOut]
    more: bool = Field(description="the next `page` has more results")
    incomplete: list[str] = Field(description="machines with more instances of this prefix: list them by `id_prefix`")


@group.get("/search", id="search", right="view", answers=Hits, summary="Search everything")
def find(
    request: HttpRequest,
    q: str = Query(..., min_length=1, max_length=MAX_INSTANCE_ID),
    page: int = Query(1, ge=1, le=global_search.MAX_PAGE),
) -> dict[str, Any]:
    """Find instances by their id, or its beginning where a definition indexes ids; archived instances and jobs by their
    id; machines and queues by part of their name. A page has up to 20 of each kind."""
    scope = actor_of(request).scope("view")
    found = global_search.search_page(request, q.strip(), page)
    hits = [hit for hit in found.hits if (hit.of or hit.name) in scope]
    return {
        "items": hits,
        "more": found.more,
        "incomplete": [rest.of for rest in found.remainders if rest.of in scope and rest.of],
    }
