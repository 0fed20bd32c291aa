"""Activity: how many instances moved, how many people acted, and the scoreboards of a machine."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of, engine_of
from dashboard.api.framework.schemas import Ms, Out
from dashboard.shared.errors.panels import AWAY, Panels
from machines.audit.activity import activity, count_people
from machines.statistics import scoreboards

group = Group("activity", "Activity counts and scoreboards.")


class CountOut(Out):
    number: int
    exact: bool
    error: float = Field(description="relative standard error of an estimate; 0 where it is exact")
    begin: Ms = Field(description="where the period begins, UTC")


class CountsOut(Out):
    day: CountOut
    week: CountOut = Field(description="from Monday")
    month: CountOut


class ActivityOut(Out):
    moved: CountsOut = Field(description="unique instances that entered a state, of all these machines")
    machines: dict[str, CountsOut]
    operators: CountsOut | None = Field(
        None, description="people who acted; only for accounts that may see every machine"
    )
    away: dict[str, str] = Field({}, description=AWAY)


class PlaceOut(Out):
    rank: int = Field(description="equal scores share one: 1, 2, 2, 4")
    member: str = Field(description="`<version>:<transition>`, an event, or a state")
    score: float = Field(description="how often; of states the ms half of their instances have been there for longer")
    tied: bool


class BoardOut(Out):
    items: list[PlaceOut]


@group.get(
    "/activity", id="getActivity", right="view", answers=ActivityOut, summary="Count active instances and people"
)
def everywhere(request: HttpRequest) -> dict[str, Any]:
    """Count for today, this week and this month (UTC), on the machines the caller may see."""
    found, panels = activity(list(engine_of(request).machines())), Panels()
    people = panels.read("operators", count_people, None) if actor_of(request).scope("view").all else None
    return {
        "moved": found.moved,
        "machines": found.by_machine,
        "operators": people,
        "away": panels.away,
    }


@group.get(
    "/machines/{name:machine}/board", id="getBoard", right="view", answers=BoardOut,
    summary="Get a scoreboard of a machine",
)  # fmt: skip
def first(
    request: HttpRequest,
    machine: str,
    of: Literal["edges", "states", "refused"] = "edges",
    days: int = Query(1, ge=1, le=scoreboards.WEEK, description="how many days together, today among them"),
    limit: int = Query(5, ge=1, le=100),
) -> dict[str, Any]:
    """Rank the busiest edges, the most refused events, or the slowest states (now, whatever `days` says)."""
    engine_of(request).live(machine)  # raises where there is none
    if of == "states":
        return {"items": scoreboards.slowest(machine, limit)}
    return {"items": scoreboards.busiest(machine, of, limit, days=days)}
