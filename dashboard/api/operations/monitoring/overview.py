"""All machines together: what needs attention, and one search for everything."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Out
from dashboard.shared import global_search
from dashboard.shared.attention import collect_alarms
from machines.connections import get_engine
from machines.engine.limits import MAX_INSTANCE_ID
from machines.statistics import present

group = Group("overview", "What needs attention now, and a search over everything.")


class AlarmOut(Out):
    text: str
    url: str = Field(description="the page of what it is about")
    act: str = Field(description="the action that fixes it, or empty")
    act_url: str


class Alarms(Out):
    items: list[AlarmOut]


class HitOut(Out):
    kind: str = Field(description="instance, job, machine or queue")
    name: str
    of: str = Field(description="its machine; empty for a machine")
    exact: bool = Field(description="all of its name was asked for")
    url: str = Field(description="its page")


class Hits(Out):
    items: list[HitOut]


@group.get("/alarms", id="listAlarms", right="view", answers=Alarms, summary="List what needs attention")
def alarms(request: HttpRequest) -> dict[str, Any]:
    """As the overview shows it: dead jobs, missing handlers, service levels, storms of refusals, late timers,
    forgotten pauses, open approvals."""
    actor = actor_of(request)
    scope = actor.scope("view")
    survey = get_engine().survey().only(scope)
    raised = collect_alarms(scope, actor.scope("operate"), survey, present(survey.lives))
    return {"items": [AlarmOut.model_validate(alarm) for alarm in raised]}


@group.get("/search", id="search", right="view", answers=Hits, summary="Search everything")
def find(request: HttpRequest, q: str = Query(..., min_length=1, max_length=MAX_INSTANCE_ID)) -> dict[str, Any]:
    """Instances by their id, or its beginning where a definition indexes ids; jobs by their id; machines and queues by
    part of their name."""
    scope = actor_of(request).scope("view")
    hits = [hit for hit in global_search.search(request, q.strip()) if (hit.of or hit.name) in scope]
    return {"items": [HitOut.model_validate(hit) for hit in hits]}
