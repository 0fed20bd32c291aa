"""Comparing versions, and plans that move instances from one to another."""

from functools import partial
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Query, Status
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of, charge
from dashboard.api.framework.request_terms import Paging
from dashboard.api.framework.schemas import ApprovalOut, Body, Mistaken, Ms, Out, Page, Reason, Why
from dashboard.catalog.api import FindingOut
from machines.catalog.versions import comparison
from machines.engine import Change, DefinitionDiff, Instance, Replay
from machines.instances import plans
from machines.instances.bulks.order import MAX_RATE
from machines.models import StoredPlan
from machines.people.actor import Actor

group = Group("plans", "Comparing versions, and moving instances from one to another.")
PLAN = "/plans/{int:plan}"
PLANS = "/machines/{name:machine}/plans"


class ChangeOut(Out.derive(Change, "path before after reason kind verb verdict match")):
    """kind: state, transition, guard, action, data, timer, invoke, queue or machine
    verb: added, removed, changed or renamed
    verdict: compatible, needs a mapping, or changes what runs
    match: how both sides were found to be one thing: id, path, shape, or empty
    """


class DiffOut(Out.derive(DefinitionDiff, "machine a b verdict counts text")):
    """a: the old version
    b: the new version; null for a draft
    verdict: the gravest one
    counts: verdict -> changes
    text: a unified diff of both definitions as JSON
    """

    changes: list[ChangeOut]


class PlanTerms(Body):
    """What is not said is mapped by name and path; see the table of policies in the docs."""

    to: int | None = Field(None, ge=1, description="the version that instances get")
    from_versions: list[int] | None = Field(None, description="by default every other version")
    states: dict[str, str | list[str] | None] = Field(
        default_factory=dict, description="state of an old version -> its place, several for regions; null: none"
    )
    data: dict[str, Any] = Field(default_factory=dict, description="field -> expression over the old data")
    unmapped: Literal["refuse", "keep", "suspend"] = "refuse"
    timers: Literal["entry", "now"] = "entry"
    removed: Literal["drop", "keep"] = "drop"
    suspended: Literal["move", "refuse"] = "move"
    actions: list[Literal["exit", "entry"]] = Field(default_factory=list, description="which run on the way")
    keep_undo: str = Field("7d", description="how long an undo restores every byte")


class NewPlan(PlanTerms):
    plan: dict[str, Any] | None = Field(None, description="or a whole plan, as it was answered or written to a file")
    note: Why = ""


class PlanOut(Out):
    """A plan that is not stored."""

    machine: str
    to: int
    plan_id: str = Field(
        validation_alias="id", description="stands for what the plan does; the same content has the same id"
    )
    plan: dict[str, Any]
    findings: list[FindingOut]


class ProgressOut(Out.derive(Instance, "id state")):
    """id: of the bulk action: see /bulks"""

    found: int
    tried: int
    outcomes: dict[str, int]


class StoredRow(Out.derive(StoredPlan, "id machine to plan_id note author approved_by bulk back")):
    """bulk: the bulk action that moves instances by it, or empty
    back: the one that takes it back, or empty
    """

    created: Ms = Field(validation_alias="created_at")
    tried_at: Ms | None = Field(validation_alias="dry_run_at", description="when the dry run was made")
    outcome: dict[str, Any] | None = Field(description="of the bulk action that is over")


class StoredOut(StoredRow):
    plan: dict[str, Any]
    dry_run: dict[str, Any] | None = Field(
        description="total, classes whose counts add up to it, and the refused instances, 1000 at most"
    )
    needs_approval: bool = Field(description="whether letting it run takes a second person")
    moving: ProgressOut | None = None
    moving_back: ProgressOut | None = None


class Migrating(Body):
    reason: Reason
    rate: int = Field(0, ge=0, le=MAX_RATE, description="max instances per second; 0: no limit")
    version: int | None = Field(None, ge=1, description="instances of this old version alone")


class TakingBack(Body):
    reason: Reason
    rate: int = Field(0, ge=0, le=MAX_RATE, description="max instances per second; 0: no limit")
    make_current: bool = Field(
        False, description="also make the older version current now, and pin it: takes the right to publish"
    )


class Replaying(Body):
    version: int = Field(ge=1, description="the version on which recorded histories run again")
    sample: int | None = Field(None, ge=1, le=comparison.MOST_SAMPLE, description="instances; the most by default")


class ReplayingDraft(Body):
    sample: int | None = Field(None, ge=1, le=comparison.MOST_SAMPLE, description="instances; the most by default")


class ReplayOut(Out.derive(Replay, "machine instances steps skipped version recorded")):
    """Recorded steps are `steps` (run and compared), `skipped` (after the first difference of their instance) and
    `untold` (the history does not tell enough).

    version: null for a draft
    """

    untold: dict[str, int] = Field(description="reason -> steps")
    divergences: list[dict[str, Any]] = Field(description="steps that end differently, by class, with an example each")


def _describe_stored(actor: Actor, row: StoredPlan) -> StoredOut:
    now = plans.progress(actor, row)
    return StoredOut.build(
        row, plan=comparison.hide_document(actor, row.plan), needs_approval=now.needs_second,
        moving=now.bulk and _describe_progress(now.bulk), moving_back=now.back and _describe_progress(now.back),
    )  # fmt: skip


def _describe_progress(bulk: Instance) -> ProgressOut:
    counts = {name: bulk.data.get(name) or 0 for name in ("found", "tried")}
    return ProgressOut.build(bulk, outcomes=bulk.data.get("outcomes") or {}, **counts)


def _read_terms(body: PlanTerms) -> dict[str, Any]:
    return body.model_dump(exclude={"to", "plan", "note"})


def _read_version(body: PlanTerms) -> int:
    if body.to is None:
        raise Mistaken("say which version instances get", "to")
    return body.to


@group.get("/machines/{name:machine}/diff", right="view", answers=DiffOut)
def compare_versions(request: HttpRequest, machine: str, a: int = Query(ge=1), b: int = Query(ge=1)) -> dict[str, Any]:
    """Compare versions.

    List the changes; each says what it means for instances of version `a`.
    """
    return comparison.diff(actor_of(request), machine, a, b).as_dict()


@group.get("/drafts/{int:draft}/diff", right="publish", answers=DiffOut)
def compare_draft(request: HttpRequest, draft: int) -> dict[str, Any]:
    """Compare a draft.

    Compare the draft with the current version of its machine.
    """
    return comparison.diff_draft(actor_of(request), draft, charge=partial(charge, request)).as_dict()


@group.post(
    "/machines/{name:machine}/plan", right="view", answers=PlanOut, changes=False, costly=True,
    example={"to": 2, "states": {"Paying": "Charging"}},
)  # fmt: skip
def make_plan(request: HttpRequest, machine: str, body: PlanTerms) -> PlanOut:
    """Plan a migration.

    Show where instances of other versions would stand in version `to`, with suggestions for states without a place.
    Nothing is stored. 422 with every finding where no plan can be made.
    """
    actor = actor_of(request)
    plan = plans.make(actor, machine, _read_version(body), **_read_terms(body))
    return PlanOut.build(plan, plan=comparison.hide_plan(actor, plan).as_dict() | {"id": plan.id})


@group.get(PLANS, right="view", answers=Page[StoredRow])
def list_plans(request: HttpRequest, machine: str, page: Query[Paging]) -> dict[str, Any]:
    """List stored plans.

    List plans, newest first.
    """
    return page.read_page("plans", plans.list_plans(actor_of(request), machine))


@group.post(
    PLANS, right="operate", answers={201: StoredOut}, refusals=(404,), costly=True,
    example={"to": 2, "states": {"Paying": "Charging"}, "note": "charges are a state of their own"},
)  # fmt: skip
def store_plan(request: HttpRequest, machine: str, body: NewPlan) -> Status:
    """Store a plan.

    Store a plan by its terms, or as a whole `plan`, as `makePlan` and `machine plan` answer it. It never changes.
    """
    actor = actor_of(request)
    actor.demand("operate", machine, action="plan.store", reason=body.note)
    if body.plan is not None:
        plan = plans.read(actor, machine, body.plan)
    else:
        plan = plans.make(actor, machine, _read_version(body), **_read_terms(body))
    return Status(201, _describe_stored(actor, plans.store(actor, plan, note=body.note)))


@group.get(PLAN, right="view", answers=StoredOut)
def get_plan(request: HttpRequest, plan: int) -> StoredOut:
    """Get a stored plan.

    Return the plan with its last dry run, and how far its bulk actions are.
    """
    actor = actor_of(request)
    return _describe_stored(actor, plans.get(actor, plan))


@group.post(f"{PLAN}/dry-run", right="operate", answers=StoredOut)
def try_plan(request: HttpRequest, plan: int) -> StoredOut:
    """Try a plan on the whole fleet.

    Count every instance once; nothing changes. For fleets of up to 50,000 instances: of more (`SB648`), the preview
    of `movePlan` is the same, made by workers.
    """
    actor = actor_of(request)
    return _describe_stored(actor, plans.try_out(actor, plan))


@group.post(
    f"{PLAN}/move", right="operate", answers={201: StoredOut},
    example={"rate": 100, "reason": "charges are a state of their own"},
)  # fmt: skip
def move_plan(request: HttpRequest, plan: int, body: Migrating) -> Status:
    """Start to move by a plan.

    Start a bulk action, which collects and previews the instances. `/bulks/<bulk>/run` lets it move them, with a
    second person where a version, or the site, asks for one.
    """
    actor = actor_of(request)
    versions = [] if body.version is None else [body.version]
    return Status(
        201, _describe_stored(actor, plans.move(actor, plan, reason=body.reason, rate=body.rate, versions=versions))
    )


@group.post(
    f"{PLAN}/back", right="operate", answers={201: StoredOut, 202: ApprovalOut},
    example={"reason": "the bank does not know this state"},
)  # fmt: skip
def move_plan_back(request: HttpRequest, plan: int, body: TakingBack) -> Status:
    """Start to take a plan back.

    Start the bulk action of the inverse plan. It is for the instances that the plan moved; all others stay. An
    instance that took no step since is as it was before. Where `make_current` needs approval, nothing moves: 202 and
    the request to pin that version.
    """
    actor = actor_of(request)
    given = {"reason": body.reason, "rate": body.rate, "make_current": body.make_current}
    return Status(201, _describe_stored(actor, plans.move_back(actor, plan, **given)))


@group.post(
    "/machines/{name:machine}/replay", right="operate", answers=ReplayOut, changes=False,
    example={"version": 2, "sample": 100},
)  # fmt: skip
def replay_version(request: HttpRequest, machine: str, body: Replaying) -> dict[str, Any]:
    """Replay recorded histories on a version.

    Replay histories without writing: event, payload, time and job results as they were recorded.
    """
    actor = actor_of(request)
    return comparison.replay(actor, machine, body.version, sample=body.sample).as_dict()


@group.post("/drafts/{int:draft}/replay", right="publish", answers=ReplayOut, changes=False, example={"sample": 100})
def replay_draft(request: HttpRequest, draft: int, body: ReplayingDraft) -> dict[str, Any]:
    """Replay recorded histories on a draft.

    Replay histories on the draft, before it is published.
    """
    actor = actor_of(request)
    return comparison.replay_draft(actor, draft, sample=body.sample, charge=partial(charge, request)).as_dict()
