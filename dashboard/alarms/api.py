"""Alarms: what needs attention now, who takes care of it, and the history."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of, engine_of
from dashboard.api.framework.request_terms import Paging
from dashboard.api.framework.schemas import Body, Ms, Out, Page, Reason
from dashboard.shared.errors.redis_outage import AWAY, Panels
from dashboard.shared.list_pages import Terms, Text
from machines.alarms import actions as alarms
from machines.alarms.alarm import Alarm
from machines.alarms.models import KEY_LENGTH, AlarmEvent
from machines.people.actor import Actor

from .queries import collect_alarms, link_alarms

group = Group("alarms", "What needs attention now, who takes care of it, and the history.")
Key = Annotated[str, Field(min_length=1, max_length=KEY_LENGTH, description="of an alarm that stands now")]


class AlarmOut(Out.derive(
    Alarm,
    "text act_url acknowledged_by snoozed_by snooze_reason severity machine machines since count causes advice url "
    "error error_url act owner acknowledged_at snoozed_until",
)):  # fmt: skip
    """severity: critical, warning or info
    machine: empty for an alarm of the whole installation
    machines: further machines that it affects
    since: milliseconds since the epoch; 0 where nobody knows
    count: jobs, instances or others that it counts
    causes: what one alarm joins, such as the queues that wait for one worker
    advice: what to do first
    url: the page of what it is about
    error: how many of its dead jobs have the most frequent error, or empty
    error_url: the page of that error's group, or empty
    act: the action that fixes it, or empty
    owner: user name, or empty
    acknowledged_at: milliseconds since the epoch; 0 for not
    snoozed_until: milliseconds since the epoch; 0 for not
    """

    key: str = Field(description="stays the same while the cause does", examples=["dead:order/payment"])
    kind: str = Field(examples=["dead"])


class Alarms(Out):
    items: list[AlarmOut]
    away: dict[str, str] = Field({}, description=f"{AWAY}; without `rates`, storms of refusals are not in the list")


class AlarmEventOut(Out.derive(AlarmEvent, "id at key kind machine severity text reason event actor owner")):
    """event: raised, worsened, cleared, acknowledged, assigned, snoozed, woken or expired
    actor: empty for what a worker noticed
    owner: of an assignment; empty where the alarm was given up
    """

    until: Ms | None = Field(None, description="of a snooze")


class EventTerms(Terms):
    machine: Text = ""
    kind: Text = ""
    event: Literal["", "raised", "worsened", "cleared", "acknowledged", "assigned", "snoozed", "woken", "expired"] = ""
    key: Text = ""


class OfAlarm(Body):
    key: Key


class AlarmAssigning(OfAlarm):
    owner: str = Field(max_length=150, description="user name; empty for none")


class Snoozing(OfAlarm):
    minutes: int = Field(ge=1, le=10_080)
    reason: Reason


@group.get("/alarms", right="view", answers=Alarms)
def list_alarms(request: HttpRequest, snoozed: bool = False) -> dict[str, Any]:
    """List what needs attention.

    List alarms as the overview shows them, the worst first and the oldest of each severity first: dead jobs, missing
    handlers, service levels, storms of refusals, late timers, forgotten pauses, open approvals. `snoozed`: those that
    are snoozed in place of the others.
    """
    actor = actor_of(request)
    survey, panels = engine_of(request).survey(), Panels()
    found = collect_alarms(actor.scope("view"), actor.scope("operate"), survey, panels)
    return {"items": found.snoozed if snoozed else list(found), "away": panels.away}


@group.get("/alarms/history", right="view", answers=Page[AlarmEventOut])
def list_alarm_events(request: HttpRequest, terms: Query[EventTerms], page: Query[Paging]) -> dict[str, Any]:
    """List the history of alarms.

    List events of alarms, newest first. Events of the whole installation are for accounts that see every machine.
    """
    return page.read_page("alarms", alarms.history(actor_of(request), **terms.model_dump()))


def _link(actor: Actor, alarm: Alarm) -> Alarm:
    return link_alarms([alarm], actor.scope("operate"))[0]


@group.post("/alarms/acknowledge", right="operate", answers=AlarmOut, refusals=(404,))
def acknowledge_alarm(request: HttpRequest, body: OfAlarm) -> Alarm:
    """Acknowledge an alarm.

    Record that this account knows of the alarm, until it is over. A second time changes nothing.
    """
    actor = actor_of(request)
    return _link(actor, alarms.acknowledge(actor, body.key))


@group.post("/alarms/assign", right="operate", answers=AlarmOut, refusals=(404,))
def assign_alarm(request: HttpRequest, body: AlarmAssigning) -> Alarm:
    """Assign an alarm.

    Assign the alarm to an active account that may see the machine, or to nobody.
    """
    actor = actor_of(request)
    return _link(actor, alarms.assign(actor, body.key, body.owner))


@group.post("/alarms/snooze", right="operate", answers=AlarmOut, refusals=(404,))
def snooze_alarm(request: HttpRequest, body: Snoozing) -> Alarm:
    """Snooze an alarm.

    Hide the alarm for a minute to seven days, or until its severity rises.
    """
    actor = actor_of(request)
    return _link(actor, alarms.snooze(actor, body.key, timedelta(minutes=body.minutes), reason=body.reason))


@group.post("/alarms/wake", right="operate", answers=AlarmOut, refusals=(404,))
def wake_alarm(request: HttpRequest, body: OfAlarm) -> Alarm:
    """End the snooze of an alarm.

    End the snooze before its time.
    """
    actor = actor_of(request)
    return _link(actor, alarms.wake(actor, body.key))
