"""Bulk actions: one event or repair for every instance that a filter finds. The dry run comes first; nothing changes
before ``run``.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from ninja import Query, Status
from pydantic import Field

from dashboard.api.framework import request_terms
from dashboard.api.framework.operation import Group, actor_of, engine_key
from dashboard.api.framework.schemas import Acting, Body, Data, Out, Page, Reason, answers_of
from machines.engine import Instance
from machines.instances.bulks import Order
from machines.instances.bulks import actions as bulks
from machines.instances.bulks.order import ACTIONS, MAX_RATE
from machines.instances.bulks.store import Item, Note
from machines.people.actor import Actor
from machines.people.redaction import redactor_of

group = Group("bulks", "One event or repair on all instances that match a filter.")
BULK = "/bulks/{instance:id}"


class NoteOut(Out.derive(Note, "word why")):
    """word: done, refused, changed, gone, failed; of migrate also kept and already; of a dry run what it would be"""


class RowOut(Out.derive(Item, "id state revision", of="item")):
    """state: when it was found
    revision: of the instance when it was found
    """

    verdict: NoteOut | None = Field(None, description="of the dry run")
    outcome: NoteOut | None = None


class BulkOut(
    Out.derive(Order, "machine action target reason actor rate unchanged filter of"),
    Out.derive(Instance, "id state suspended revision", times="created", of="now"),
):
    """target: the event, the states, the invoke, or the version and the plan
    of: the bulk action whose failed instances it retries, or empty
    revision: of the bulk's own instance
    """

    found: int
    checked: int = Field(description="instances previewed so far")
    tried: int = Field(description="instances processed so far")
    verdicts: dict[str, int]
    outcomes: dict[str, int]


class Starting(Body):
    action: str = Field(description=f"one of {', '.join(ACTIONS)}")
    filter: request_terms.Filter = Field(default_factory=request_terms.Filter)
    event: str = ""
    payload: Data = Field(default_factory=dict)
    states: list[str] = Field(default_factory=list, description="for force")
    changes: Data = Field(default_factory=dict, description="for edit")
    result: Any = Field(None, description="for skip")
    invoke: str = Field("", description="for retry, skip and cancel")
    plan: Data = Field(default_factory=dict, description="for migrate: a migration plan as JSON")
    unchanged: bool = Field(False, description="skip instances that changed since they were matched")
    rate: int = Field(0, ge=0, le=MAX_RATE, description="max instances per second; 0: no limit")
    reason: Reason


class Rating(Body):
    rate: int = Field(ge=0, le=MAX_RATE, description="max instances per second; 0: no limit")


def describe(actor: Actor, now: Instance, order: Order) -> BulkOut:
    numbers = {name: now.data.get(name) or 0 for name in ("found", "checked", "tried")}
    counts = {name: now.data.get(name) or {} for name in ("verdicts", "outcomes")}
    terms = redactor_of(actor, order.machine).value(order.filter)
    return BulkOut.build(order, now=now, filter=terms, **numbers, **counts)


@group.post(
    "/machines/{name:machine}/bulks", right="operate", answers={201: BulkOut}, refusals=(404,),
    example={"action": "retry", "invoke": "charge", "filter": {"state": "paying", "older": "1h"}, "rate": 10,
             "reason": "the bank is back"},
)  # fmt: skip
def start_bulk(request: HttpRequest, machine: str, body: Starting) -> Status:
    """Start a bulk action: collect the matching instances and preview each.

    Start a bulk action and answers at once; workers make the dry run. An event also needs the right `fire`.
    """
    actor, key = actor_of(request), engine_key(request)
    # Before the filter is read: that takes the definition, which is none of the business of those without the right.
    actor.demand("operate", machine, action="bulk.start", reason=body.reason)
    asked = body.model_dump() | {"filter": request_terms.read_filter(actor, machine, body.filter)}
    made = bulks.start(actor, Order(machine, actor=actor.name, **asked), id=_make_id(key))
    return Status(201, describe(actor, *bulks.get(actor, made.id)))


def _make_id(key: str | None) -> str | None:
    """Return the name of the bulk. The same Idempotency-Key names the same bulk, even if the first answer was lost."""
    return hashlib.sha256(key.encode()).hexdigest()[:16] if key else None


@group.get(BULK, right="view", answers=BulkOut)
def get_bulk(request: HttpRequest, id: str) -> BulkOut:
    """Get progress."""
    actor = actor_of(request)
    return describe(actor, *bulks.get(actor, id))


@group.get(f"{BULK}/results", right="view", answers=Page[RowOut])
def list_bulk_results(request: HttpRequest, id: str, page: Query[request_terms.LongPaging]) -> dict[str, Any]:
    """List items with preview and result.

    List the items in the order in which they are moved.
    """
    actor = actor_of(request)
    now, _ = bulks.get(actor, id)
    start = page.read_offset("bulk")
    found = bulks.rows(actor, id, start, page.limit)
    further = start + len(found)
    end = further >= (now.data.get("found") or 0) or not found
    return {
        "items": found,
        "next": request_terms.make_cursor("bulk", None if end else further),
    }


OPERATIONS = {
    "run": ("Run it", "From its dry run. 202 if the definition requires approval."),
    "pause": ("Pause a bulk action", "Instances being processed are still finished."),
    "resume": ("Resume a bulk action", ""),
    "stop": ("Stop permanently", ""),
    "retry": ("Retry from the failure", ""),
    "remove": ("Remove it with its results", "One that is done, stopped or failed. A worker removes it."),
}
MOVING = ("run", "resume", "retry")  # instances are moved from there, which may take a second person


def _declare(name: str) -> None:
    summary, about = OPERATIONS[name]
    done = answers_of(BulkOut) if name in MOVING else BulkOut
    group.post(f"{BULK}/{name}", id=f"{name}Bulk", right="operate", answers=done, summary=summary)(
        _make_operation(getattr(bulks, name), about)
    )


def _make_operation(act: Callable[[Actor, str], Instance], about: str) -> Callable[..., Any]:
    def operation(request: HttpRequest, id: str) -> BulkOut:
        actor = actor_of(request)
        order = bulks.find_order(id)  # before: one that is removed may be gone afterwards
        now = act(actor, id)
        return describe(actor, now, order) if order else describe(actor, *bulks.get(actor, id))

    operation.__doc__ = about
    return operation


for _name in OPERATIONS:
    _declare(_name)


@group.post(f"{BULK}/rate", right="operate", answers=BulkOut, example={"rate": 10})
def rate_bulk(request: HttpRequest, id: str, body: Rating) -> BulkOut:
    """Update the rate limit."""
    actor = actor_of(request)
    bulks.rate(actor, id, body.rate)
    return describe(actor, *bulks.get(actor, id))


@group.post(f"{BULK}/again", right="operate", answers={201: BulkOut}, example={"reason": "the bank is back once more"})
def again_bulk(request: HttpRequest, id: str, body: Acting) -> Status:
    """Start a bulk action with the instances that were refused, changed or failed.

    Start a bulk action of the same kind, with a dry run of its own.
    """
    actor = actor_of(request)
    made = bulks.again(actor, id, reason=body.reason, new=_make_id(engine_key(request)))
    return Status(201, describe(actor, *bulks.get(actor, made.id)))
