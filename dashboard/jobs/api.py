"""Jobs and queues: figures, input and attempts, and the actions of operators on a job or on a whole queue."""

from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of, engine_of
from dashboard.api.framework.request_terms import Paging, make_cursor
from dashboard.api.framework.schemas import Acting, Items, Out, Page
from machines.engine import Job, LookupFailed, Pause, QueueStats
from machines.engine.limits import MAX_CONCURRENCY, MAX_INTEGER
from machines.jobs import actions as jobs
from machines.jobs import groups
from machines.jobs import queries as job_queries
from machines.jobs import queue_actions as queues
from machines.jobs.groups import GroupFigures
from machines.jobs.search import find_jobs

from .presenters import SearchTerms

jobs_group = Group("jobs", "Single jobs.")
JOB = "/machines/{name:machine}/jobs/{job:job}"


class JobOut(Out.derive(
    Job,
    "id machine queue src instance invoke input attempt attempts priority group weight unique worker error kind "
    "trace lease timeout backoff progress place data log instance_is instance_state",
    times="created due started taken finished lease_until deadline handled",
)):  # fmt: skip
    """Times are 0 where there was no such moment. The token that fences its end is never shown.

    place: ready, leased, delayed, dead, or handled: dead, and its instance moved on
    data: field -> value
    log: the last ten attempts that ended, oldest first
    instance_is: present, finished, gone, later (the id belongs to a later instance), elsewhere; empty for none
    instance_state: its active states, of a present or finished instance
    handled: when its instance no longer waited for the dead job
    """


class Retrying(Acting):
    force: bool = Field(False, description="true: also a handled job, for whose result no instance waits")


class Done(Out):
    job: str
    done: str = Field(description="redriven, moved or withdrawn")


@jobs_group.get(JOB, right="view", answers=JobOut)
def get_job(request: HttpRequest, machine: str, job: str) -> Job:
    """Get a job.

    Return the job. Finished and withdrawn jobs are gone: 404.
    """
    return job_queries.get(actor_of(request), machine, job)


@jobs_group.post(f"{JOB}/redrive", right="operate", answers=Done)
def redrive_job(request: HttpRequest, machine: str, job: str, body: Retrying) -> dict[str, str]:
    """Retry a dead job.

    Make the job ready again. A handled job answers 409 with SB443 unless `force` is true.
    """
    jobs.redrive(actor_of(request), machine, job, reason=body.reason, force=body.force)
    return {"job": job, "done": "redriven"}


@jobs_group.post(f"{JOB}/move", right="operate", answers=Done)
def run_job_now(request: HttpRequest, machine: str, job: str, body: Acting) -> dict[str, str]:
    """Run a delayed job now."""
    jobs.move(actor_of(request), machine, job, reason=body.reason)
    return {"job": job, "done": "moved"}


@jobs_group.post(f"{JOB}/withdraw", right="operate", answers=Done)
def withdraw_job(request: HttpRequest, machine: str, job: str, body: Acting) -> dict[str, str]:
    """Withdraw a job.

    Withdraw the job. Its instance gets `error.invoke` with the kind Withdrawn.
    """
    jobs.withdraw(actor_of(request), machine, job, reason=body.reason)
    return {"job": job, "done": "withdrawn"}


queues_group = Group("queues", "Queues of the jobs that states create.")
QUEUE = "/machines/{name:machine}/queues/{name:queue}"


class PauseOut(Out.derive(Pause, "actor reason", times="since")):
    """The pause of a queue or of a group of jobs."""


class QueueOut(Out.derive(
    QueueStats,
    "queue enqueued taken completed failed lost died withdrawn purged waits runs depth rate oldest concurrency held",
)):  # fmt: skip
    """`waits` and `runs` are histograms: magnitude -> how many. Counters only grow.

    depth: place -> jobs there
    rate: such as "100/s"; empty without a limit
    held: ready jobs that wait for the limits of their groups
    oldest: since when the longest-waiting ready job waits, ms
    concurrency: jobs at a time; null without a limit
    """

    machine: str
    paused: PauseOut | None = None


class GroupOut(Out.derive(GroupFigures, "name waiting running recent weight rate is_own concurrency", times="oldest")):
    """name: empty: the jobs without a group
    waiting: ready jobs
    recent: ready jobs that were enqueued within the last minute
    oldest: since when its first job waits, 0 for none
    rate: such as "100/s"; empty without a limit
    is_own: whether the group has limits or a pause of its own
    concurrency: jobs at a time; null without a limit
    """

    paused: PauseOut | None = None


class Groups(Page[GroupOut]):
    looked: int = Field(description="ready jobs that were read; less than `ready`: figures are estimates")
    ready: int


class Jobs(Page[JobOut]):
    looked: int | None = Field(None, description="jobs that a search read, of those at and after its cursor")


class ActingOnGroup(Acting):
    group: str | None = Field(None, description="a group of jobs; null: the whole queue")


class Limiting(ActingOnGroup):
    concurrency: int | None = Field(None, ge=0, le=MAX_CONCURRENCY, description="0: none; null: as declared")
    rate: str | None = Field(None, max_length=40, description='"100/s", "5/s burst 20", "none"; null: as declared')


class Purging(Acting):
    place: Literal["ready", "delayed", "dead", "handled"]
    expect: int = Field(ge=1, le=MAX_INTEGER, description="the number of jobs the caller saw there")


class Moved(Out):
    jobs: int = Field(description="how many")


def _describe(machine: str, stats: QueueStats) -> QueueOut:
    return QueueOut.build(stats, machine=machine)


@queues_group.get("/queues", right="view", answers=Items[QueueOut])
def list_queues(request: HttpRequest) -> dict[str, Any]:
    """List all queues.

    List the queues of every machine the caller may see.
    """
    found = sorted(engine_of(request).survey().queues.items())
    return {"items": [_describe(name, stats) for name, held in found for stats in held.values()]}


@queues_group.get("/machines/{name:machine}/queues", right="view", answers=Items[QueueOut])
def list_machine_queues(request: HttpRequest, machine: str) -> dict[str, Any]:
    """List queues of a machine."""
    return {"items": [_describe(machine, stats) for stats in queues.stats(actor_of(request), machine).values()]}


@queues_group.get(QUEUE, right="view", answers=QueueOut)
def get_queue(request: HttpRequest, machine: str, queue: str) -> QueueOut:
    """Get a queue."""
    return _describe(machine, _find_queue(request, machine, queue))


def _find_queue(request: HttpRequest, machine: str, queue: str) -> QueueStats:
    found = queues.stats(actor_of(request), machine).get(queue)
    if found is None:
        raise LookupFailed(f"machine {machine!r} has no queue {queue!r}")
    return found


@queues_group.get(f"{QUEUE}/jobs", right="view", answers=Jobs)
def list_jobs(
    request: HttpRequest, machine: str, queue: str,
    place: Literal["ready", "leased", "delayed", "dead", "handled"] = "ready", *, search: Query[SearchTerms],
    page: Query[Paging],
) -> dict[str, Any]:  # fmt: skip
    """List jobs of a queue by state.

    List the jobs that come first; of the dead and handled, the newest. With terms such as `input`, those that match:
    one request reads 20,000 jobs, or as many as it can in a second, and `next` goes on, also where it found none.

    Jobs move while they are listed: a page shows one moment.
    """
    _find_queue(request, machine, queue)
    kind, actor = f"jobs:{place}", actor_of(request)
    about = {"place": place, "offset": page.read_offset(kind)}
    if search.given:
        hits = find_jobs(actor, machine, queue, search.terms, **about, limit=page.limit)
        return {"items": hits.jobs, "next": make_cursor(kind, hits.next), "looked": hits.looked}
    return page.cut(kind, job_queries.find(actor, machine, queue, **about, limit=page.limit + 1))


@queues_group.get(f"{QUEUE}/groups", right="view", answers=Groups)
def list_groups(
    request: HttpRequest, machine: str, queue: str, page: Query[Paging], order: groups.Order = "depth"
) -> dict[str, Any]:
    """List groups of a queue.

    List the groups of ready and leased jobs, and those with limits of their own: by ready jobs, by the longest wait or
    by new jobs. Of a queue with more than 10,000 ready jobs a sample is read.
    """
    _find_queue(request, machine, queue)
    kind, found = f"groups:{order}", groups.list_groups(actor_of(request), machine, queue, order=order)
    listed = page.cut(kind, found.items[page.read_offset(kind) :])
    return listed | {"looked": found.looked, "ready": found.ready}


@queues_group.post(f"{QUEUE}/pause", right="operate", answers=QueueOut)
def pause_queue(request: HttpRequest, machine: str, queue: str, body: ActingOnGroup) -> QueueOut:
    """Pause the queue.

    Pause the queue, or one group of it. Running jobs may finish, and new jobs may be enqueued.
    """
    queues.pause(actor_of(request), machine, queue, reason=body.reason, group=body.group)
    return get_queue(request, machine, queue)


@queues_group.post(f"{QUEUE}/resume", right="operate", answers=QueueOut)
def resume_queue(request: HttpRequest, machine: str, queue: str, body: ActingOnGroup) -> QueueOut:
    """Resume the queue."""
    queues.resume(actor_of(request), machine, queue, reason=body.reason, group=body.group)
    return get_queue(request, machine, queue)


@queues_group.post(
    f"{QUEUE}/limit", right="operate", answers=QueueOut,
    example={"concurrency": 4, "rate": "100/s", "reason": "the bank is slow today"},
)  # fmt: skip
def limit_queue(request: HttpRequest, machine: str, queue: str, body: Limiting) -> QueueOut:
    """Set limits.

    Set limits of the queue, or of one group of it, which hold before those of the definition.
    """
    given = body.model_dump(exclude={"group"})
    if body.group is None:
        return _describe(machine, queues.limit(actor_of(request), machine, queue, **given))
    queues.limit_group(actor_of(request), machine, queue, body.group, **given)
    return get_queue(request, machine, queue)


@queues_group.post(
    f"{QUEUE}/purge", right="operate", answers=Moved,
    example={"place": "dead", "expect": 12, "reason": "duplicates of yesterday"},
)  # fmt: skip
def purge_queue(request: HttpRequest, machine: str, queue: str, body: Purging) -> dict[str, int]:
    """Purge all jobs in one state.

    Delete the jobs for good. `expect` says that the caller saw how many go: another number answers 409.
    """
    return {"jobs": queues.purge(actor_of(request), machine, queue, **body.model_dump())}


@queues_group.post(f"{QUEUE}/redrive", right="operate", answers=Moved)
def redrive_queue(request: HttpRequest, machine: str, queue: str, body: Acting) -> dict[str, int]:
    """Retry all dead jobs.

    Make dead jobs ready again. Handled jobs stay: their instances no longer wait for them.
    """
    return {"jobs": queues.redrive(actor_of(request), machine, queue, reason=body.reason)}


@queues_group.post(f"{QUEUE}/move", right="operate", answers=Moved)
def run_queue_now(request: HttpRequest, machine: str, queue: str, body: Acting) -> dict[str, int]:
    """Run all delayed jobs now."""
    return {"jobs": queues.move(actor_of(request), machine, queue, reason=body.reason)}
