"""All machines together: one search for everything, and statistics."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query
from pydantic import BeforeValidator, Field

from dashboard.api.framework.operation import Group, actor_of, engine_of
from dashboard.api.framework.schemas import Out
from machines.engine.limits import MAX_INSTANCE_ID
from machines.insight.statistics.series import Gap, Line, Series, series

from . import search as global_search
from .search import Hit

group = Group("overview", "A search over everything.", right="view")


class HitOut(Out.derive(Hit, "kind name of exact url")):
    """kind: instance, archived instance, job, machine or queue
    of: its machine; empty for a machine
    exact: all of its name was asked for
    url: its page
    """


class Hits(Out):
    items: list[HitOut]
    more: bool = Field(description="the next `page` has more results")
    incomplete: list[str] = Field(description="machines with more instances of this prefix: list them by `id_prefix`")


@group.get("/search", answers=Hits)
def search(
    request: HttpRequest,
    q: str = Query(..., min_length=1, max_length=MAX_INSTANCE_ID),
    page: int = Query(1, ge=1, le=global_search.MAX_PAGE),
) -> dict[str, Any]:
    """Search everything.

    Find instances by their id, or its beginning where a definition indexes ids; archived instances and jobs by their
    id; machines and queues by part of their name. A page has up to 20 of each kind.
    """
    scope = actor_of(request).scope("view")
    found = global_search.search_page(request, q.strip(), page)
    hits = [hit for hit in found.hits if (hit.of or hit.name) in scope]
    return {
        "items": hits,
        "more": found.more,
        "incomplete": [rest.of for rest in found.remainders if rest.of in scope and rest.of],
    }


statistics_group = Group("statistics", "Metrics of the last hour, day or month.", right="view")
Spans = Literal["hour", "day", "month"]


class LineOut(Out.derive(Line, "name values total rest")):
    """values: one for each moment of `at`; null where nothing was measured
    total: how many in all that was measured
    rest: the sum of all that have no line of their own
    """


Seconds = Annotated[int, BeforeValidator(lambda seconds: seconds * 1000)]
"""A time of a record in seconds, which is answered in ms."""


class GapOut(Out.derive(Gap, "machine transitions")):
    """transitions: in all of it; when, nobody measured"""

    begin: Seconds = Field(description="milliseconds since the epoch")
    end: Seconds = Field(description="milliseconds since the epoch")


class SeriesOut(Out.derive(Series, "what span unit")):
    """unit: "/min", "ms", or empty for a count"""

    step: Seconds = Field(description="ms from one of `at` to the next")
    at: list[Seconds] = Field(description="where each step begins, ms")
    lines: list[LineOut]
    gaps: list[GapOut]
    measured: Seconds = Field(description="the last measurement, ms; 0 before the first")


@statistics_group.get("/statistics", answers=SeriesOut)
def get_statistics(
    request: HttpRequest, what: Literal["transitions", "work", "failures"] = "transitions", span: Spans = "hour"
) -> Series:
    """Get statistics of all machines.

    Return the figures of all machines the caller may see. Rates are a minute's.
    """
    return series(list(engine_of(request).machines()), span, what)


@statistics_group.get("/machines/{name:machine}/statistics", answers=SeriesOut)
def get_machine_statistics(
    request: HttpRequest,
    machine: str,
    what: Literal[
        "transitions", "work", "failures", "edges", "refused", "instances", "throughput", "waits", "runs", "times"
    ] = "edges",
    span: Spans = "hour",
    queue: str = "",
) -> Series:
    """Get statistics of a machine or a queue.

    Return the figures of one machine. `queue` narrows throughput and times. Times are p50, p95 and p99, right to a
    factor of two.
    """
    engine_of(request).live(machine)  # raises where there is none
    return series([machine], span, what, queue=queue)
