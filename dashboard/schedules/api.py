"""Schedules: what happens at certain times, and the runs so far."""

from typing import Any

from django.http import HttpRequest
from ninja import Query
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of, engine_key
from dashboard.api.framework.schemas import Body, Data, Items, Out, Why
from machines.schedules import Row, describe_run, describe_time, queries
from machines.schedules import actions as schedules

group = Group("schedules", "Jobs, events and new instances at certain times.")
SCHEDULE = "/schedules/{str:name}"
MOMENT = "ISO 8601; without an offset in the zone of the schedule"


class ScheduleOut(Out.derive(Row, "name source state count pending waiting")):
    """source: people, or what declares it: such a schedule is changed there
    state: active, paused or ended
    count: runs so far
    pending: runs that are being carried out
    waiting: runs that wait, for the run before or in a backfill
    """

    next: str | None = Field(None, description="planned time of the next run")
    due: str | None = Field(None, description="the same with its jitter")
    last: dict[str, Any] | None = Field(None, description="the last run")
    error: str | None = Field(None, description="why a worker could not work on it")
    author: str
    schedule: dict[str, Any]


class SchedulesOut(Out):
    items: list[ScheduleOut]
    missing: int = Field(0, description="partitions that did not answer: their schedules are not in the list")


class NextRunsOut(Out):
    next: list[str] = Field(description="planned times, in the zone of the schedule")


class ScheduleRunOut(Out):
    planned: str
    at: str
    why: str = Field(description="due, catch_up, run or backfill")
    outcome: str = Field(description="done, failed, skipped, missed or unknown")
    count: int = Field(description="of missed runs, how many")
    led: dict[str, str] | None = Field(None, description="kind, machine and id of what it led to")
    by: str = ""
    error: str = ""


class BackfillOut(Out):
    count: int


class PutSchedule(Body):
    schedule: Data
    reason: Why = ""


class ScheduleReason(Body):
    reason: Why = ""


class BackfillRange(Body):
    start: str = Field(description=MOMENT)
    end: str = Field(description=f"the end itself is not run; {MOMENT}")
    reason: Why = ""


class ScheduleGone(Out):
    name: str


@group.get("/schedules", right="view", answers=SchedulesOut)
def list_schedules(request: HttpRequest, machine: str | None = None) -> dict[str, Any]:
    """List schedules.

    List schedules of the machines that you see, by name; a thousand at most.
    """
    rows = queries.list_schedules(actor_of(request), machine=machine)
    return {"items": [row.as_dict() for row in rows], "missing": len(rows.missing)}


@group.post(
    "/schedules", right="operate", answers=ScheduleOut,
    example={"schedule": {"name": "nightly-report", "when": {"cron": "30 2 * * *"}, "zone": "Europe/Zurich",
                          "what": {"do": "enqueue", "machine": "report", "src": "make_report"}}},
)  # fmt: skip
def put_schedule(request: HttpRequest, body: PutSchedule) -> dict[str, Any]:
    """Make or change a schedule.

    Make the schedule, or change the one of the same name. Events and new instances also need the right `fire`.
    """
    return schedules.put(actor_of(request), body.schedule, reason=body.reason).as_dict()


@group.get(SCHEDULE, right="view", answers=ScheduleOut)
def get_schedule(request: HttpRequest, name: str) -> dict[str, Any]:
    """Get a schedule."""
    return queries.get(actor_of(request), name).as_dict()


@group.get(f"{SCHEDULE}/next", right="view", answers=NextRunsOut)
def list_next_runs(request: HttpRequest, name: str, count: int = Query(5, ge=1, le=100)) -> dict[str, Any]:
    """List the next runs.

    List the next runs; none while the schedule is paused.
    """
    actor = actor_of(request)
    zone = queries.get(actor, name).schedule.zone
    return {"next": [describe_time(at, zone) for at in queries.list_next(actor, name, count)]}


@group.get(f"{SCHEDULE}/runs", right="view", answers=Items[ScheduleRunOut])
def list_runs(request: HttpRequest, name: str, limit: int = Query(100, ge=1, le=500)) -> dict[str, Any]:
    """List the runs so far.

    List runs, newest first; as many as the history of the schedule holds.
    """
    actor = actor_of(request)
    zone = queries.get(actor, name).schedule.zone
    return {"items": [describe_run(run, zone) for run in queries.history(actor, name, limit)]}


@group.post(
    f"{SCHEDULE}/backfill", right="operate", answers=BackfillOut, example={"start": "2026-11-01", "end": "2026-11-08"}
)
def backfill_schedule(request: HttpRequest, name: str, body: BackfillRange) -> dict[str, int]:
    """Run each occurrence of a range of the past.

    Run the occurrences of a time span, also those that have run; 10,000 at most.
    """
    found = schedules.backfill(
        actor_of(request), name, body.start, body.end, reason=body.reason, key=engine_key(request)
    )
    return {"count": found}


@group.delete(SCHEDULE, right="operate", answers=ScheduleGone)
def remove_schedule(request: HttpRequest, name: str) -> dict[str, str]:
    """Remove a schedule.

    Delete the schedule with its history. What its runs led to goes on.
    """
    schedules.remove(actor_of(request), name)
    return {"name": name}


def _declare(verb: str, summary: str, about: str) -> None:
    def operation(request: HttpRequest, name: str, body: ScheduleReason) -> dict[str, Any]:
        key = {"key": engine_key(request)} if verb == "run" else {}
        row: Row = getattr(schedules, verb)(actor_of(request), name, reason=body.reason, **key)
        return row.as_dict()

    operation.__name__, operation.__doc__ = f"{verb}_schedule", f"{summary}.\n\n{about}"
    group.post(
        f"{SCHEDULE}/{verb.replace('_', '-')}", right="operate", answers=ScheduleOut,
        example={"reason": "the printer is away"},
    )(operation)  # fmt: skip


_declare("pause", "Pause a schedule", "Nothing is due until it is resumed; what is under way ends.")
_declare("resume", "Resume a schedule", "Runs are planned from now on: what was planned meanwhile is not made up.")
_declare(
    "take_over", "Take a schedule over",
    "It runs in the caller's name from now on, and goes on where it was paused. It takes the rights to make it.",
)  # fmt: skip
_declare("run", "Run a schedule once now", "Also while it is paused.")
