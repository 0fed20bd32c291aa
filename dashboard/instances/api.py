"""Instances: find, read, create, fire events, repair."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Status
from pydantic import Field

from dashboard.api.framework import request_terms
from dashboard.api.framework.operation import Group, actor_of, engine_key, engine_of
from dashboard.api.framework.request_terms import LongPaging, read_expected, set_etag
from dashboard.api.framework.schemas import Body, Data, Items, Out, Page, Reason, Why, answers_of
from dashboard.shared.errors.problems import redact_facts
from machines.engine import (
    Because,
    Candidate,
    EngineUnavailable,
    Explanation,
    Instance,
    Preview,
    Problem,
    SignalboxError,
    Step,
    Timer,
    Wait,
)
from machines.instances import actions as instances
from machines.instances import queries
from machines.instances.queries import find_problems
from machines.people.errors import Forbidden

group = Group("instances", "Instances of a machine, and firing events.")
INSTANCES = "/machines/{name:machine}/instances"
INSTANCE = f"{INSTANCES}/{{instance:id}}"
TOGETHER = 100  # events of one call


class TimerOut(Out.derive(Timer, "id event state target", times="due")):
    """A timer of an instance. `target`: the instance that an event is sent to; empty for itself."""


class OutcomeOut(Out):
    transitions: list[str]
    replayed: bool = Field(False, description="true if an idempotency key returned the first outcome again")
    replicas: int = Field(0, description="the replicas that the call waited for")
    replicated: int | None = Field(None, description="how many had the step in time; null if it waited for none")


class InstanceOut(Out.derive(
    Instance,
    "id machine done jobs parent configuration state data revision version children suspended archived archived_at",
    times="entered created",
)):  # fmt: skip
    """One instance at one moment. `revision` is what If-Match takes; `version` is that of its machine.

    configuration: the active leaf states
    state: the same as one line of text
    data: field -> value
    revision: the counter of its steps: what If-Match takes
    version: of its machine: the definition that it runs
    children: invoke -> the machine and id it runs
    suspended: since when, ms; null where it is not
    archived: true: of the archive; it can be read, and not changed
    archived_at: when it was archived, ms; null where it is not
    """

    timers: list[TimerOut]
    outcome: OutcomeOut | None = Field(None, description="what this call did; null where it only read")


class Instances(Page[InstanceOut]):
    missing: int = Field(0, description="partitions that did not answer: their instances are not on the page")


class Counts(Out):
    counts: dict[str, int] = Field(description="leaf state -> instances in it")
    total: int
    complete: bool = Field(description="false: there are at least as many")


class ProblemOut(Out.derive(Problem, "cause kind text")):
    """cause: a dead job, or what stands for a timer that could not be carried out
    kind: of the exception; `timer` for a timer
    """


class StepOut(Out.derive(
    Step, "event configuration transitions actor reason revision payload changes source", times="at"
)):  # fmt: skip
    """revision: of the instance after this step
    payload: field -> value
    changes: field -> its new value, null where it was unset
    source: null where the step before is not kept any more
    """


class BecauseOut(Out.derive(Because, "text verdict values message")):
    """One part of a guard that decided it, with the values that it read."""


class CandidateOut(Out.derive(Candidate, "id event target guard verdict allow")):
    because: list[BecauseOut]


class ExplanationOut(Out.derive(
    Explanation, "machine id event taken configuration why error outcome known_events work exhausted omitted revision"
)):  # fmt: skip
    """revision: of the instance"""

    candidates: list[CandidateOut]


class Creating(Body):
    id: str | None = Field(None, description="up to 200 bytes; else a new one, or that of the Idempotency-Key")
    data: Data = Field(default_factory=dict)
    reason: Why = ""


class Asking(Body):
    event: str
    payload: Data = Field(default_factory=dict)


class Firing(Asking):
    reason: Why = ""


class Call(Firing):
    id: str
    expect: int | None = Field(None, ge=0, description="the revision the caller saw")


class Firings(Body):
    calls: list[Call] = Field(min_length=1, max_length=TOGETHER)


class Fired(Out):
    """`instance` where it was taken, else the `error` with its facts."""

    id: str
    instance: InstanceOut | None = None
    error: dict[str, Any] | None = None


class AllFired(Out):
    items: list[Fired] = Field(description="one for each call, in order")


class JobLine(Out.derive(Wait, "invoke state src queue job place repairs")):
    """repairs: what can be done now"""


@group.get(INSTANCES, right="view", answers=Instances)
def find_instances(request: HttpRequest, machine: str, terms: Query[request_terms.Terms]) -> dict[str, Any]:
    """Find instances.

    Find instances, those that have been longest in their state first. All terms have to hold; one index leads, the
    rest is compared, so that a page may come back short, or empty, with a `next` that goes on.
    """
    page = queries.find(
        actor_of(request),
        machine,
        **request_terms.read_filter(actor_of(request), machine, terms),
        limit=terms.limit,
        cursor=request_terms.read_text("instances", terms.cursor),
        newest=terms.order == "newest",
    )
    return {
        "items": list(page),
        "next": request_terms.make_cursor("instances", page.cursor),
        "missing": len(page.missing),
    }


@group.get("/machines/{name:machine}/counts", right="view", answers=Counts)
def count_instances(request: HttpRequest, machine: str, terms: Query[request_terms.Filter]) -> Counts:
    """Count instances.

    Count the instances that `findInstances` would list for the same terms, by leaf state and in all.
    """
    found = engine_of(request).tally(machine, **request_terms.read_filter(actor_of(request), machine, terms))
    return Counts(counts=found.counts, total=found.total, complete=found.complete and not found.missing)


@group.post(
    INSTANCES, right="fire", answers={201: InstanceOut}, refusals=(404,), example={"id": "o-17", "data": {"amount": 20}}
)
def create_instance(request: HttpRequest, response: HttpResponse, machine: str, body: Creating) -> Status:
    """Create an instance.

    Create an instance in its initial state. An id that is taken answers 409.
    """
    made = instances.create(actor_of(request), machine, body.id, body.data, key=engine_key(request), reason=body.reason)
    return Status(201, set_etag(response, made))


@group.get(INSTANCE, right="view", answers=InstanceOut)
def get_instance(request: HttpRequest, response: HttpResponse, machine: str, id: str) -> Instance:
    """Get an instance.

    Return the instance. Its revision is also the ETag: give it back as If-Match with what changes it. An instance
    that Redis has let go comes from the archive, with `archived`.
    """
    return set_etag(response, queries.get(actor_of(request), machine, id))


@group.post(
    f"{INSTANCE}/events", right="fire", answers=answers_of(InstanceOut), matches=True,
    example={"event": "pay", "payload": {"amount": 20}, "reason": "paid by phone"},
)  # fmt: skip
def fire_event(request: HttpRequest, response: HttpResponse, machine: str, id: str, body: Firing) -> Instance:
    """Fire an event.

    Make one atomic step. Where no transition takes the event: 422, with every candidate and why it was not taken.
    Where the definition asks for a second person: 202 with the request that now waits for one.
    """
    after = instances.fire(
        actor_of(request), machine, id, body.event, body.payload,
        expect=read_expected(request), key=engine_key(request), reason=body.reason,
    )  # fmt: skip
    return set_etag(response, after)


@group.post(
    "/machines/{name:machine}/events", right="fire", answers=AllFired,
    example={"calls": [{"id": "o-17", "event": "pay"}, {"id": "o-18", "event": "pay"}]},
)  # fmt: skip
def fire_events(request: HttpRequest, machine: str, body: Firings) -> dict[str, Any]:
    """Fire many events.

    Fire up to a hundred events, each a step of its own: one that is refused does not stop the others. What asks for
    a second person is refused here; send it alone.
    """
    key = engine_key(request)
    return {"items": [_fire_one(request, machine, call, key and f"{key}:{n}") for n, call in enumerate(body.calls)]}


def _fire_one(request: HttpRequest, machine: str, call: Call, key: str | None) -> dict[str, Any]:
    try:
        after = instances.fire(
            actor_of(request), machine, call.id, call.event, call.payload,
            expect=call.expect, key=key, reason=call.reason,
        )  # fmt: skip
    except (Forbidden, EngineUnavailable):
        raise
    except SignalboxError as error:
        return {"id": call.id, "error": redact_facts(request, error)}
    return {"id": call.id, "instance": after}


@group.post(
    f"{INSTANCE}/explanations", right="view", answers=ExplanationOut, changes=False,
    example={"event": "pay", "payload": {"amount": 20}},
)  # fmt: skip
def explain_event(request: HttpRequest, machine: str, id: str, body: Asking) -> Explanation:
    """Preview an event.

    Run the same code as firing, without the commit.
    """
    return queries.explain(actor_of(request), machine, id, body.event, body.payload)


@group.get(f"{INSTANCE}/history", right="view", answers=Page[StepOut])
def get_history(request: HttpRequest, machine: str, id: str, page: Query[LongPaging]) -> dict[str, Any]:
    """List history steps, newest first.

    List the steps, as far as they are kept.
    """
    before = request_terms.read_number("history", page.cursor)
    steps = queries.history(actor_of(request), machine, id, limit=page.limit + 1, before=before)
    further = steps[page.limit - 1].revision if len(steps) > page.limit else None
    return {"items": steps[: page.limit], "next": request_terms.make_cursor("history", further)}


@group.get(f"{INSTANCE}/waits", right="view", answers=Items[JobLine])
def get_waits(request: HttpRequest, machine: str, id: str) -> dict[str, Any]:
    """List jobs it waits for.

    Return for each invoke of an active state where its job is, and which repairs make sense.
    """
    return {"items": engine_of(request).waits(machine, id)}


@group.get(f"{INSTANCE}/problems", right="view", answers=Items[ProblemOut])
def get_problems(request: HttpRequest, machine: str, id: str) -> dict[str, Any]:
    """List current failures.

    List what `error=` finds the instance by.
    """
    return {"items": find_problems(actor_of(request), machine, id)}


repairs_group = Group(
    "repairs", "Operator actions on one instance. Each has a preview that changes nothing.", right="operate"
)
Invoke = Annotated[str, Field(description="the invoke whose job is meant; see its waits")]


class Force(Body):
    state: str | list[str] = Field(description="a state, or several of different regions")
    data: Data | None = Field(None, description="fields to change; null unsets one")


class Edit(Body):
    changes: Data = Field(description="field -> new value; null unsets one")


class Reset(Body):
    keep_data: bool = False


class OfJob(Body):
    invoke: Invoke


class Skip(OfJob):
    result: Any = Field(None, description="what the job is taken to have ended with")


class Plain(Body):
    pass


class Resume(Body):
    overdue: Literal["fire", "shift"] = Field("fire", description="how overdue timers are handled")


class PreviewOut(Out.derive(
    Preview,
    "machine id repair before configuration moved changes transitions messages done revision withdrawn added "
    "renewed disarmed armed ended started held",
)):  # fmt: skip
    """What it would do to the instance at `revision`; nothing was done.

    revision: of the instance
    withdrawn: jobs that would be removed
    added: jobs that would be added
    renewed: the job that would be retried, or empty
    disarmed: timers that would be cancelled
    armed: timers that would be set
    ended: child instances that would be stopped
    started: child instances that would be started
    held: queued messages, delivered on resume
    """


KINDS: dict[str, tuple[type[Body], str, dict[str, Any]]] = {
    "force": (Force, "Force a state, ignoring the transitions", {"state": "paid"}),
    "edit": (Edit, "Edit its data, by the declared types", {"changes": {"amount": 20}}),
    "reset": (Reset, "Reset to the initial state and data", {"keep_data": False}),
    "retry": (OfJob, "Retry its dead or delayed job", {"invoke": "charge"}),
    "skip": (Skip, "Skip its job with a given result", {"invoke": "charge", "result": {"ok": True}}),
    "cancel": (OfJob, "Cancel its job", {"invoke": "charge"}),
    "suspend": (Plain, "Suspend: no events are accepted, timers are paused", {}),
    "resume": (Resume, "Resume a suspended instance", {"overdue": "fire"}),
    "delete": (Plain, "Delete it with its history and open jobs", {}),
}
"""repair -> what it takes beside a reason, what it does, an example."""


def _declare(name: str) -> None:
    asked, about, example = KINDS[name]
    with_reason: type[Body] = type(f"{name.title()}Repair", (asked,), {"__annotations__": {"reason": Reason}})
    look = type(f"{name.title()}Preview", (asked,), {})
    repairs_group.post(
        f"{INSTANCE}/repairs/{name}", id=f"{name}Instance", right="operate", answers=answers_of(InstanceOut),
        matches=True, summary=about, example=example | {"reason": "agreed with the customer"},
    )(_repair(name, with_reason))  # fmt: skip
    repairs_group.post(
        f"{INSTANCE}/repairs/{name}/preview", id=f"preview{name.title()}", right="operate", answers=PreviewOut,
        changes=False, summary=f"What `{name}` would do", example=example,
    )(_preview(name, look))  # fmt: skip


def _repair(name: str, body_type: type[Body]) -> Callable[..., Any]:
    def repair(request: HttpRequest, response: HttpResponse, machine: str, id: str, body: Any) -> Instance:
        asked = body.model_dump(exclude_unset=True)
        reason = asked.pop("reason")
        after = instances.repair(
            actor_of(request), name, machine, id,
            reason=reason, expect=read_expected(request), key=engine_key(request), **asked,
        )  # fmt: skip
        return after if name == "delete" else set_etag(response, after)

    repair.__doc__ = "The instance afterwards; of a deletion, as it was. 202 if the definition requires approval."
    return _annotate(repair, body_type)


def _preview(name: str, body_type: type[Body]) -> Callable[..., Any]:
    def preview(request: HttpRequest, machine: str, id: str, body: Any) -> Preview:
        return instances.preview(actor_of(request), name, machine, id, **body.model_dump(exclude_unset=True))

    preview.__doc__ = "Runs the repair without the commit; refused where the repair would be refused."
    return _annotate(preview, body_type)


def _annotate(view: Callable[..., Any], body_type: type[Body]) -> Callable[..., Any]:
    """Give the view the annotations that the framework reads: the type of the body differs from repair to repair."""
    view.__annotations__ = {
        "request": HttpRequest, "response": HttpResponse, "machine": str, "id": str, "body": body_type,
    }  # fmt: skip
    return view


for _name in KINDS:
    _declare(_name)
