"""Drafts, which version new instances get, and the figures of each version."""

from functools import partial
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query, Status
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of, charge, engine_key
from dashboard.api.framework.request_terms import Paging, read_expected, set_etag
from dashboard.api.framework.schemas import Acting, ApprovalOut, Body, Ms, Out, Page, Why, answers_of
from dashboard.catalog.api import FindingOut, Published
from dashboard.instances.api import INSTANCE, InstanceOut
from machines.catalog.submissions import FORMAT_NAMES
from machines.catalog.version_rules import Rule, read_policy
from machines.catalog.versions import drafts, rollouts
from machines.engine.limits import MAX_DEFINITION, VIEWERS_DEFINITION
from machines.engine.versions.rollout.records import Guard, Rollout, StateTime, VersionFigures, VersionPin, Withdrawal
from machines.models import Draft

rollouts_group = Group("rollouts", "Which version new instances get, and the figures of each version.")
ROLLOUT = "/machines/{name:machine}/rollout"
VERSION = "/machines/{name:machine}/versions/{int:version}"


class GuardOut(Out.derive(Guard, "factor refusals dead minimum least")):
    """It stops by itself when refusals or dead jobs per step are `factor` times those of the base version, after
    `minimum` steps of which `least` went wrong."""


class RolloutOut(Out.derive(Rollout, "version percent actor reason by_guard base figures turn", times="since changed")):
    """base: the version that all other new instances get
    figures: of both versions, where the guard stopped it
    turn: send it back as `expect`
    """

    guard: GuardOut | None
    stopped: Ms | None


class PinOut(Out.derive(VersionPin, "version actor reason next", times="since")):
    """next: becomes current when it is unpinned"""


class WithdrawalOut(Out.derive(Withdrawal, "version actor reason", times="since")):
    """A version that no new instance gets."""


class RuleOut(Out.derive(Rule, "action source")):
    """action: publish: every change of which version counts; migrate: moves of instances
    source: the version, the setting or the policy that asks for it
    """


class ChoiceOut(Out):
    machine: str
    current: int
    rollout: RolloutOut | None
    pin: PinOut | None
    withdrawn: list[WithdrawalOut]
    turn: int = Field(description="each change of this increments it; send it back as `expect`")
    policy: list[str] = Field(description="actions that take a second person whatever the definition says")
    approvers: dict[str, dict[str, Any]] = Field(description="who approves these: group, quorum, expires")
    rules: list[RuleOut] = Field(description="what needs approval now, by which rule: one for each action")


class StateTimeOut(Out.derive(StateTime, "sampled median exact")):
    """median: ms"""


class VersionFiguresOut(Out.derive(VersionFigures, "version instances created refusals flow role dead failed steps")):
    """role: current, rollout, withdrawn or empty
    dead: jobs out of attempts
    failed: steps of timers that failed
    steps: transitions that were taken
    """

    times: dict[str, StateTimeOut]


class VersionFiguresList(Out):
    items: list[VersionFiguresOut]
    missing: int = Field(0, description="partitions that did not answer: the figures are without them")


class ChangingVersions(Acting):
    expect: int | None = Field(None, ge=0, description="`turn` as it was seen")


class StartingRollout(ChangingVersions):
    version: int = Field(ge=1, description="a published version that is not the current one")
    percent: float = Field(ge=0, lt=100, description="of new instances, by a hash of their id")
    guard: dict[str, Any] | bool | None = Field(None, description="settings; false: never stop by itself")


class SettingRollout(ChangingVersions):
    percent: float = Field(ge=0, le=100, description="100 finishes it, 0 stops it")
    guard: dict[str, Any] | bool | None = None


class Pinning(ChangingVersions):
    version: int | None = Field(ge=1, description="stays current whatever is published; null: no longer")


class PolicySetting(ChangingVersions):
    actions: list[Literal["publish", "migrate"]] = Field(description="none: the definition and the settings decide")
    approvers: dict[str, dict[str, Any]] = Field({}, description="who approves these, as `approvers` of a definition")


class Withdrawing(ChangingVersions):
    withdrawn: bool = Field(True, description="false takes it back")
    instead: int | None = Field(None, ge=1, description="becomes current in place of a current one")


class PinningInstance(Acting):
    pinned: bool = Field(True, description="false takes it back")


CHANGED = answers_of(ChoiceOut)


def _describe(request: HttpRequest, machine: str) -> dict[str, Any]:
    found, policy = rollouts.get(actor_of(request), machine), read_policy(machine)
    return {
        "machine": machine,
        "current": found.current,
        "rollout": found.rollout,
        "pin": found.pin,
        "withdrawn": [found.withdrawn[number] for number in sorted(found.withdrawn)],
        "turn": found.turn,
        "policy": list(policy),
        "approvers": {name: terms for name, terms in policy.items() if terms},
        "rules": rollouts.find_rules(machine),
    }


@rollouts_group.get(ROLLOUT, right="view", answers=ChoiceOut)
def get_rollout(request: HttpRequest, machine: str) -> dict[str, Any]:
    """Get the version of new instances.

    Return the current version, the roll-out, the pin, and the withdrawn versions.
    """
    return _describe(request, machine)


@rollouts_group.get("/machines/{name:machine}/versions/figures", right="view", answers=VersionFiguresList)
def get_version_figures(request: HttpRequest, machine: str, sample: int = Query(100, ge=0, le=1000)) -> dict[str, Any]:
    """Get the figures of each version.

    Compare both versions side by side. `sample`: instances of each state whose time in it is read; 0 for none.
    """
    found = rollouts.figures(actor_of(request), machine, sample=sample)
    return {"items": [one.as_dict() for one in found], "missing": len(found.missing)}


@rollouts_group.post(
    ROLLOUT, right="publish", answers=CHANGED, example={"version": 3, "percent": 5, "reason": "first customers"}
)
def start_rollout(request: HttpRequest, machine: str, body: StartingRollout) -> dict[str, Any]:
    """Roll out a published version.

    Start a roll-out. To publish and roll out in one step, see `publishDraft`.
    """
    rollouts.start(actor_of(request), machine, body.version, body.percent, **_read_terms(body, "version", "percent"))
    return _describe(request, machine)


@rollouts_group.put(ROLLOUT, right="publish", answers=CHANGED, example={"percent": 20, "reason": "nothing is refused"})
def set_rollout(request: HttpRequest, machine: str, body: SettingRollout) -> dict[str, Any]:
    """Change the percentage of a roll-out.

    Change the percentage. An id that gets the version at a percentage gets it at each higher one. A stopped roll-out
    goes on.
    """
    rollouts.set_percent(actor_of(request), machine, body.percent, **_read_terms(body, "percent"))
    return _describe(request, machine)


@rollouts_group.post(f"{ROLLOUT}/stop", right="publish", answers=ChoiceOut)
def stop_rollout(request: HttpRequest, machine: str, body: ChangingVersions) -> dict[str, Any]:
    """Stop a roll-out.

    Stop the roll-out. New instances get the base version again; those that have the new one keep it.
    """
    rollouts.stop(actor_of(request), machine, **_read_terms(body))
    return _describe(request, machine)


@rollouts_group.post(f"{ROLLOUT}/finish", right="publish", answers=CHANGED)
def finish_rollout(request: HttpRequest, machine: str, body: ChangingVersions) -> dict[str, Any]:
    """Finish a roll-out.

    Make the version the current one.
    """
    rollouts.finish(actor_of(request), machine, **_read_terms(body))
    return _describe(request, machine)


@rollouts_group.post(
    "/machines/{name:machine}/pin", right="publish", answers=CHANGED,
    example={"version": 2, "reason": "until the audit is over"},
)  # fmt: skip
def pin_version(request: HttpRequest, machine: str, body: Pinning) -> dict[str, Any]:
    """Pin a version.

    Pin a version. It stays current whatever is published, and no plan moves its instances.
    """
    rollouts.pin(actor_of(request), machine, body.version, **_read_terms(body, "version"))
    return _describe(request, machine)


@rollouts_group.post(
    f"{VERSION}/withdraw", right="publish", answers=CHANGED, example={"instead": 2, "reason": "it charges twice"}
)
def withdraw_version(request: HttpRequest, machine: str, version: int, body: Withdrawing) -> dict[str, Any]:
    """Withdraw a version.

    Withdraw a version. No new instance gets it, and no plan leads to it.
    """
    rollouts.withdraw(actor_of(request), machine, version, **_read_terms(body))
    return _describe(request, machine)


@rollouts_group.put(
    "/machines/{name:machine}/version-policy", right="publish", answers=CHANGED, example={
        "actions": ["publish"], "approvers": {"publish": {"group": "release", "quorum": 2, "expires": "4h"}},
        "reason": "two people look at each version",
    },
)  # fmt: skip
def set_version_policy(request: HttpRequest, machine: str, body: PolicySetting) -> dict[str, Any]:
    """Set which changes of versions take a second person.

    Set what needs approval, beside what the definition and the settings ask for. Where any rule holds already,
    changing this needs approval, too.
    """
    rollouts.set_policy(actor_of(request), machine, body.actions, **_read_terms(body, "actions"))
    return _describe(request, machine)


@rollouts_group.post(
    f"{INSTANCE}/pin", right="operate", answers=InstanceOut, matches=True, example={"reason": "a case before court"}
)
def pin_instance(request: HttpRequest, response: HttpResponse, machine: str, id: str, body: PinningInstance) -> Any:
    """Pin an instance to its version.

    Pin an instance, so that no plan moves it. With `If-Match`, only if nothing has happened to it since.
    """
    after = rollouts.pin_instance(
        actor_of(request), machine, id, body.pinned, reason=body.reason, expect=read_expected(request),
        key=engine_key(request),
    )  # fmt: skip
    return set_etag(response, after)


def _read_terms(body: Acting, *without: str) -> dict[str, Any]:
    return body.model_dump(exclude=set(without))


drafts_group = Group("drafts", "Definitions that are not published yet.", right="publish")
DRAFT = "/drafts/{int:draft}"
DRAFTS = "/machines/{name:machine}/drafts"


class DraftRow(Out.derive(Draft, "id machine format note author revision base state published closed_by")):
    """A draft without its text.

    base: the version that it was made from; null: there was no such machine
    state: open, published or discarded
    published: the version it became
    closed_by: who published or discarded it
    """

    created: Ms = Field(validation_alias="created_at")
    updated: Ms = Field(validation_alias="updated_at")


class DraftOut(DraftRow):
    text: str
    digest: str = Field(description="of format and text: an approval covers exactly these")


class Drafting(Body):
    text: str = Field(max_length=MAX_DEFINITION, description="the definition, finished or not")
    format: str = Field("guess", description=f"of the text: {', '.join(FORMAT_NAMES)}")
    note: Why = ""


class NewDraft(Drafting):
    base: int | None = Field(None, ge=1, description="the version it is made from; the current one by default")


class Rebasing(Body):
    onto: int = Field(ge=1, description="the version that it was compared with: it has to be the current one")


class Discarding(Body):
    reason: Why = ""


class DraftPublishing(Body):
    reason: Why = Field("", description="kept with the version; the draft's note by default")
    rollout: float | None = Field(None, ge=0, le=100, description="per cent of new instances that get it; null: all")


class DraftCheck(Out.derive(drafts.Check, "publishable current")):
    """``publishable``: whether nothing in it, and no newer version, keeps it from being published.

    current: the machine's current version, or the one that is rolled out: another than `base` is a conflict
    """

    findings: list[FindingOut]
    base: int | None
    needs_approval: bool = Field(
        validation_alias="needs_second", description="whether publishing it takes a second person"
    )


@drafts_group.get(DRAFTS, answers=Page[DraftRow])
def list_drafts(
    request: HttpRequest, machine: str, page: Query[Paging],
    state: Literal["open", "published", "discarded", "any"] = "open",
) -> dict[str, Any]:  # fmt: skip
    """List drafts.

    List drafts, newest first.
    """
    found = drafts.list_drafts(actor_of(request), machine, state="" if state == "any" else state)
    return page.read_page("drafts", found)


@drafts_group.post(
    DRAFTS, answers={201: DraftOut}, refusals=(404,), costly=True, most=VIEWERS_DEFINITION,
    example={"text": '{"id": "door", "initial": "shut", "states": {"shut": {}}}', "note": "first try"},
)  # fmt: skip
def save_draft(request: HttpRequest, response: HttpResponse, machine: str, body: NewDraft) -> Status:
    """Save a draft.

    Save a draft of a machine that is there, or of a new one. Anything may be in the text; `check` says what is
    wrong.
    """
    made = drafts.save(actor_of(request), machine, body.text, format=body.format, note=body.note, base=body.base)
    return Status(201, set_etag(response, made))


@drafts_group.get(DRAFT, answers=DraftOut)
def get_draft(request: HttpRequest, response: HttpResponse, draft: int) -> Draft:
    """Get a draft.

    Return the draft; `ETag` is its revision.
    """
    return set_etag(response, drafts.get(actor_of(request), draft))


@drafts_group.put(
    DRAFT, answers=DraftOut, matches=True, costly=True, most=VIEWERS_DEFINITION,
    example={"text": '{"id": "door", "initial": "shut", "states": {"shut": {}}}', "note": "second try"},
)  # fmt: skip
def change_draft(request: HttpRequest, response: HttpResponse, draft: int, body: Drafting) -> Draft:
    """Change a draft.

    Replace the whole text. With `If-Match`, only if nobody changed it since.
    """
    actor = actor_of(request)
    machine = drafts.get(actor, draft, action="draft.save").machine
    made = drafts.save(
        actor, machine, body.text, format=body.format, note=body.note, id=draft, expect=read_expected(request)
    )
    return set_etag(response, made)


@drafts_group.post(f"{DRAFT}/check", answers=DraftCheck, changes=False)
def check_draft(request: HttpRequest, draft: int) -> DraftCheck:
    """Check a draft.

    Return every finding, and whether the draft could be published now.
    """
    found = drafts.check(actor_of(request), draft, charge=partial(charge, request))
    return DraftCheck.build(found, findings=found.submission.findings, base=found.draft.base)


@drafts_group.post(f"{DRAFT}/rebase", answers=DraftOut, matches=True, example={"onto": 3})
def rebase_draft(request: HttpRequest, response: HttpResponse, draft: int, body: Rebasing) -> Draft:
    """Rebase a draft.

    Record that the draft was compared with the current version and is to replace it. The text stays as it is.
    """
    made = drafts.rebase(actor_of(request), draft, onto=body.onto, expect=read_expected(request))
    return set_etag(response, made)


@drafts_group.post(f"{DRAFT}/discard", answers=DraftOut, matches=True)
def discard_draft(request: HttpRequest, response: HttpResponse, draft: int, body: Discarding) -> Draft:
    """Discard a draft.

    Discard the draft. Its text can still be read.
    """
    made = drafts.discard(actor_of(request), draft, expect=read_expected(request), reason=body.reason)
    return set_etag(response, made)


@drafts_group.post(
    f"{DRAFT}/publish", answers={201: Published, 202: ApprovalOut}, matches=True,
    example={"reason": "the door can be locked"},
)  # fmt: skip
def publish_draft(request: HttpRequest, draft: int, body: DraftPublishing) -> Status:
    """Publish a draft.

    Publish the draft. It becomes its machine's current version, or with `rollout` that of a part of the new
    instances. 409 (`SB640`) where its base is no longer the current version. Where it takes a second person, 202 and
    the request.
    """
    version = drafts.publish(
        actor_of(request), draft, reason=body.reason, rollout=body.rollout, expect=read_expected(request),
        charge=partial(charge, request),
    )  # fmt: skip
    return Status(201, Published.build(version, machine=version.machine.name))
