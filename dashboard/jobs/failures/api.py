"""The error inbox: groups of dead jobs, and what operators do with a group."""

from collections.abc import Callable
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Status
from pydantic import Field

from dashboard.api.framework import request_terms
from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Acting, Body, Items, Ms, Out, Reason, Why
from dashboard.jobs.api import QUEUE
from dashboard.jobs.presenters import SearchTerms
from machines.engine.limits import MAX_DELAY
from machines.jobs.failures import actions as failures
from machines.jobs.failures import queries
from machines.jobs.failures.actions import MAX_RATE, RATE
from machines.jobs.failures.found_jobs import JobsOrder, start
from machines.jobs.failures.queries import GroupView
from machines.models import FailureAction, FailureGroup

from .forms import InboxTerms

group = Group("errors", "Dead jobs, grouped by handler, exception and message shape.")
GROUP = "/errors/{int:group}"


class QueueOf(Out):
    machine: str
    queue: str


class FailureGroupOut(
    Out.derive(GroupView, "count attempts open recent trend machines versions", times="first_seen last_seen"),
    Out.derive(FailureGroup, "id handler kind shape assignee", of="group"),
):
    """kind: exception class
    shape: message with placeholders; empty for a machine with sensitive fields
    count: deaths of jobs, on machines the caller may see
    open: jobs that are still dead
    recent: deaths in the last 24 hours
    trend: deaths by hour, the oldest first
    """

    state: Literal["open", "muted", "resolved"]
    resolved_at: Ms | None = None
    regressed_at: Ms | None = Field(None, description="its first failure after it was resolved")
    queues: list[QueueOf]


class FailureGroups(Out):
    items: list[FailureGroupOut]
    total: int
    more: bool


class FailureActionTerms(Out):
    machine: str = Field("", description="of this machine alone; empty: of several")
    queue: str = Field("", description="of this queue alone; empty: of several")
    place: str = Field("", description="where a search found the jobs; empty: counted failures")
    to: str = Field("", description="the queue to which `reroute` moves them")
    delay: int = Field(0, description="ms that `delay` has each wait")


class FailureActionOut(Out.derive(FailureAction, "id rate position done passed error total", times="started")):
    """rate: max jobs per second
    position: jobs dealt with
    done: jobs moved or withdrawn
    passed: jobs that had left their place, were due later, or were refused
    error: code of the last refusal, or empty
    """

    action: Literal["redrive", "skip", "move", "withdraw", "delay", "reroute"]
    state: Literal["running", "done", "stopped"]
    terms: FailureActionTerms


class FailureGroupDetail(FailureGroupOut):
    actions: list[FailureActionOut]


class StoppedAction(Out):
    stopped: FailureActionOut | None


class Assigning(Body):
    assignee: str = Field(description="name of a user; empty for nobody")
    reason: Why = ""


class Redriving(Body):
    reason: Reason
    rate: int = Field(RATE, ge=1, le=MAX_RATE, description="max jobs per second")
    machine: str = Field("", description="of one machine alone; empty: of all on which the caller may operate")
    expect: int | None = Field(None, ge=0, description="how many open jobs the caller saw; 409 for another number")


class RedrivingAny(Redriving):
    queue: str = Field("", max_length=200, description="of this queue of the machine alone; empty: of all")
    error: int = Field(0, ge=0, lt=2**63, description="of this failure group alone; 0: of any")


class ActingOnFound(SearchTerms, Acting):
    place: Literal["ready", "delayed", "dead", "handled"]
    action: Literal["redrive", "move", "withdraw", "delay", "reroute"]
    delay: int = Field(
        0, ge=0, le=MAX_DELAY, description="ms that `delay` has each job wait from then on; one due later stays"
    )
    to: str = Field("", max_length=64, description="the queue of the machine to which `reroute` moves the jobs")
    rate: int = Field(RATE, ge=1, le=MAX_RATE, description="max jobs per second")
    expect: int | None = Field(None, ge=0, description="how many jobs the caller found; 409 for another number")
    cursor: str | None = Field(None, description="`next` of a search of these jobs, which the action goes on from")


class Skipping(Redriving):
    result: Any = Field(None, description="what each job is taken to have returned")


def _describe(view: GroupView, answer: type[FailureGroupOut] = FailureGroupOut, **more: Any) -> FailureGroupOut:
    queues = [{"machine": machine, "queue": queue} for machine, queue in view.queues]
    times = {"resolved_at": view.group.resolved_at or None, "regressed_at": view.regressed_at or None}
    return answer.build(view, state=view.group.state, queues=queues, **times, **more)


@group.get("/errors", right="view", answers=FailureGroups)
def list_errors(request: HttpRequest, terms: Query[InboxTerms]) -> dict[str, Any]:
    """List failure groups.

    List regressions first, then groups with open jobs, then by the failures of the last day. `assignee` takes a
    user, `me` or `none`; `query` finds in handler, exception and shape.
    """
    found = terms.find(actor_of(request))
    return {"items": [_describe(view) for view in found.items], "total": found.total, "more": found.more}


@group.post(
    "/errors/redrive", right="operate", answers={201: FailureActionOut}, refusals=(409,),
    example={"reason": "the provider is back", "machine": "order", "queue": "payment", "rate": 20},
)  # fmt: skip
def redrive_errors(request: HttpRequest, body: RedrivingAny) -> Status:
    """Retry dead jobs of any group.

    Make a worker retry open jobs at the rate, those of a queue, a machine or a group, or all.
    """
    terms = body.model_dump()
    return Status(201, failures.redrive(actor_of(request), terms.pop("error"), **terms))


@group.get("/errors/retries", right="view", answers=Items[FailureActionOut])
def list_retries(request: HttpRequest) -> dict[str, Any]:
    """List retries of any group.

    List the latest retries of jobs of any group, with their progress.
    """
    return {"items": queries.running_actions(actor_of(request), None)}


@group.post(
    "/errors/retries/{int:number}/stop", right="operate", answers=StoppedAction,
    example={"reason": "it makes things worse"},
)  # fmt: skip
def stop_retry(request: HttpRequest, number: int, body: Acting) -> dict[str, Any]:
    """Stop a retry of any group.

    Stop it. What was moved stays moved. `stopped` is null where it does not run.
    """
    return {"stopped": failures.stop_retry(actor_of(request), number, reason=body.reason)}


@group.post(
    f"{QUEUE}/act", right="operate", answers={201: FailureActionOut}, refusals=(409,),
    example={"place": "delayed", "action": "move", "group": "acme", "reason": "they paid"},
)  # fmt: skip
def act_on_jobs(request: HttpRequest, machine: str, queue: str, body: ActingOnFound) -> Status:
    """Act on the jobs that a search finds.

    Make a worker retry (dead), run now (delayed), delay or move (ready and delayed), or withdraw the jobs, at the
    rate. `GET /errors/retries` has the progress, and stops it. A job that left its place meanwhile is passed over.
    """
    given = body.model_dump()
    offset = request_terms.read_number(f"jobs:{body.place}", given.pop("cursor")) or 0
    search = SearchTerms(**{name: given.pop(name) for name in SearchTerms.model_fields})
    order = JobsOrder(offset=offset, **given)
    return Status(201, start(actor_of(request), machine, queue, search.terms, order))


@group.get(GROUP, right="view", answers=FailureGroupDetail)
def get_error(request: HttpRequest, group: int) -> FailureGroupOut:
    """Get a failure group.

    Return the group with its latest actions.
    """
    actor = actor_of(request)
    return _describe(queries.get(actor, group), FailureGroupDetail, actions=queries.running_actions(actor, group))


@group.post(f"{GROUP}/assign", right="operate", answers=FailureGroupOut, example={"assignee": "ann"})
def assign_error(request: HttpRequest, group: int, body: Assigning) -> FailureGroupOut:
    """Assign a group.

    Assign the group. Needs the right on every machine of the group.
    """
    return _describe(failures.assign(actor_of(request), group, body.assignee, reason=body.reason))


def _change(name: str, summary: str, about: str, change: Callable[..., GroupView]) -> None:
    def view(request: HttpRequest, group: int, body: Acting) -> FailureGroupOut:
        return _describe(change(actor_of(request), group, reason=body.reason))

    view.__doc__ = f"{about} Needs the right on every machine of the group."
    group.post(
        f"{GROUP}/{name}", id=f"{name}Error", right="operate", answers=FailureGroupOut, summary=summary,
        example={"reason": "a known outage"},
    )(view)  # fmt: skip


_change("mute", "Mute a group", "Until it fails in another version of a machine, or on another one.", failures.mute)
_change("resolve", "Resolve a group", "A later failure makes it a regression.", failures.resolve)
_change("reopen", "Open a group again", "Ends the mute, or takes back that it is resolved.", failures.reopen)


@group.post(
    f"{GROUP}/redrive", right="operate", answers={201: FailureActionOut}, refusals=(409,),
    example={"reason": "the provider is back", "rate": 20},
)  # fmt: skip
def redrive_error(request: HttpRequest, group: int, body: Redriving) -> Status:
    """Retry the open jobs.

    Make a worker retry the jobs at the rate. Jobs of machines without the right are left out.
    """
    return Status(201, failures.redrive(actor_of(request), group, **body.model_dump()))


@group.post(
    f"{GROUP}/skip", right="operate", answers={201: FailureActionOut}, refusals=(409,),
    example={"reason": "done by hand", "result": {"ok": True}},
)  # fmt: skip
def skip_error(request: HttpRequest, group: int, body: Skipping) -> Status:
    """Skip the open jobs with a result.

    Move the waiting instances as if the jobs had returned `result`. Jobs without an instance are passed over.
    """
    return Status(201, failures.skip(actor_of(request), group, **body.model_dump()))


@group.post(f"{GROUP}/stop", right="operate", answers=StoppedAction, example={"reason": "it makes things worse"})
def stop_error_action(request: HttpRequest, group: int, body: Acting) -> dict[str, Any]:
    """Stop the running action.

    Stop a retry. What was moved stays moved. `stopped` is null where none runs.
    """
    return {"stopped": failures.stop(actor_of(request), group, reason=body.reason)}
