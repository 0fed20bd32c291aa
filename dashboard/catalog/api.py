"""Machines: published versions, diagrams, instance counts, and publishing."""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Status
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of, charge, engine_of
from dashboard.api.framework.schemas import Body, Items, Mistaken, Ms, Out, Why
from dashboard.shared import version_view
from dashboard.shared.rendering import answer_drawing
from machines.catalog import offload, queries, submissions
from machines.catalog.submissions import FORMAT_NAMES
from machines.catalog.versions import publication as definitions
from machines.engine import DefinitionError, Live
from machines.engine.definitions import Finding, outline
from machines.engine.limits import MAX_DEFINITION, VIEWERS_DEFINITION
from machines.models import Machine, MachineVersion

group = Group("machines", "Published machines, their versions and definitions.")
MACHINE = "/machines/{name:machine}"
VIEWERS_CPU, PUBLISHERS_CPU = 3.0, 20.0  # seconds of processor time that reading one definition may take
MONTH = 30 * 86400  # seconds: a published version never changes


class Figures(Out.derive(
    Live, "machine version total counts oldest flow queues breaches timers overdue mail", times="now"
)):  # fmt: skip
    """Absolute values of one moment.

    total: instances
    counts: leaf state -> instances in it
    oldest: leaf state -> when the one that is longest there entered, ms
    flow: transition -> how often it was taken, ever
    queues: queue -> jobs in each place
    breaches: state with a service level -> instances past it
    overdue: timers that are due and could not be carried out
    mail: messages that are not delivered yet
    """

    missing: int = Field(0, description="partitions that did not answer: the figures are without them")


class MachineOut(Out.derive(Live, "version total overdue")):
    """version: the current one
    total: instances
    """

    name: str
    description: str
    dead: int = Field(description="jobs out of attempts")
    breaches: int = Field(description="instances past a service level")
    missing: int = Field(0, description="partitions that did not answer: the figures are without them")


class Accepted(Out):
    """Who may send to the machine, and invoke it, beside itself, parents and children."""

    machine: str
    declared: list[str] | None = Field(description="by its current version, `*` for any machine; null: it says nothing")


class Machines(Out):
    items: list[MachineOut]
    unreadable: dict[str, str] = Field(description="machine -> why it cannot be read")


class VersionOut(Out.derive(MachineVersion, "number digest notes")):
    published: Ms = Field(validation_alias="published_at")
    published_by: str
    current: bool


class DefinitionOut(Out):
    machine: str
    version: int
    definition: dict[str, Any]


class FindingOut(Out.derive(Finding, "code path message severity")):
    hint: str | None = None


class Submitted(Body):
    """A definition, as an object or as text."""

    definition: dict[str, Any] | None = Field(None, description="the definition as an object")
    text: str | None = Field(None, max_length=MAX_DEFINITION, description="or its text, in `format`")
    format: str = Field("guess", description=f"of the text: {', '.join(FORMAT_NAMES)}")


class Publishing(Submitted):
    reason: Why = ""


class Checked(Out):
    """``publishable``: whether nothing in it keeps it from being published."""

    publishable: bool
    format: str
    findings: list[FindingOut]
    definition: dict[str, Any] | None = Field(None, description="as it would be published")


class Published(Out):
    machine: str
    version: int = Field(validation_alias="number")
    digest: str


@group.get("/machines", right="view", answers=Machines)
def list_machines(request: HttpRequest) -> dict[str, Any]:
    """List machines with their figures.

    List the machines the caller may see, by name.
    """
    survey = engine_of(request).survey()
    descriptions = dict(Machine.objects.values_list("name", "description"))
    return {
        "items": [_describe(live, descriptions.get(name, "")) for name, live in sorted(survey.lives.items())],
        "unreadable": {name: fault.code for name, fault in survey.faults.items()},
    }


def _describe(live: Live, description: str) -> MachineOut:
    dead = sum(places.get("dead", 0) for places in live.queues.values())
    breaches, missing = sum(live.breaches.values()), len(live.missing)
    return MachineOut.build(
        live, name=live.machine, description=description, dead=dead, breaches=breaches, missing=missing
    )


@group.get(MACHINE, right="view", answers=MachineOut)
def get_machine(request: HttpRequest, machine: str) -> MachineOut:
    """Get a machine."""
    live = engine_of(request).live(machine)
    description = Machine.objects.filter(name=machine).values_list("description", flat=True).first()
    return _describe(live, description or "")


@group.get(f"{MACHINE}/accepts", right="view", answers=Accepted)
def get_accepts(request: HttpRequest, machine: str) -> dict[str, Any]:
    """List accepted senders."""
    return {"machine": machine, "declared": outline(engine_of(request).definition(machine)).accepts}


@group.get(f"{MACHINE}/live", right="view", answers=Figures)
def get_figures(request: HttpRequest, machine: str) -> Figures:
    """Get counts, transitions, queues and service levels.

    Read each partition in one atomic call. Flow is absolute: rates are differences of two readings.
    """
    found = engine_of(request).live(machine)
    return Figures.build(found, missing=len(found.missing))


@group.get(f"{MACHINE}/versions", right="view", answers=Items[VersionOut])
def list_versions(request: HttpRequest, machine: str) -> dict[str, Any]:
    """List versions.

    List versions, newest first, with those that only Redis has.
    """
    engine = engine_of(request)
    current, numbers = engine.live(machine).version, engine.versions(machine)
    found = MachineVersion.objects.filter(machine__name=machine).select_related("published_by")
    rows = {version.number: version for version in found.defer("definition", "drawing")}
    every = (rows.get(number) or queries.make_version(machine, number) for number in sorted({*rows, *numbers})[::-1])
    return {"items": [_describe_version(version, current) for version in every]}


def _describe_version(version: MachineVersion, current: int) -> VersionOut:
    by = version.published_by
    return VersionOut.build(version, published_by=by.get_username() if by else "", current=version.number == current)


@group.get(f"{MACHINE}/definition", right="view", answers=DefinitionOut)
def get_definition(request: HttpRequest, machine: str, version: int | None = Query(None, ge=1)) -> dict[str, Any]:
    """Get a definition.

    Return the definition as it was published; of the current version unless `version` names another.
    """
    engine = engine_of(request)
    number = engine.live(machine).version if version is None else version
    return {"machine": machine, "version": number, "definition": engine.definition(machine, number)}


@group.get(f"{MACHINE}/diagram.svg", right="view", answers=None, media_type="image/svg+xml")
def get_diagram(request: HttpRequest, machine: str, version: int | None = Query(None, ge=1)) -> HttpResponse:
    """Get the diagram as SVG.

    Return the bare drawing of one version, with its own style.
    """
    number = engine_of(request).live(machine).version if version is None else version
    found = version_view.load_version(machine, number, who=str(request.user.pk), full=True)
    return answer_drawing(found.svg, cache=f"private, max-age={MONTH if version else 0}")


@group.post(
    "/definitions/check", right="view", answers=Checked, changes=False, costly=True, most=VIEWERS_DEFINITION,
    example={"definition": {"id": "door", "initial": "shut", "states": {"shut": {"on": {"open": "opn"}}}}},
)  # fmt: skip
def check_definition(request: HttpRequest, body: Submitted) -> Checked:
    """Check a definition without publishing it.

    Return every finding at once, each with a code, a path and a hint. One check at a time for each person; its size,
    and what it took to read it, count in the budget of requests. A body of more than 128 kB takes the right to
    publish.
    """
    found = _read(request, body)
    return Checked.build(found, publishable=found.definition is not None and not found.errors)


@group.post(
    "/machines", right="publish", everywhere=True, answers={201: Published}, costly=True, most=VIEWERS_DEFINITION,
    example={"definition": {"id": "door", "initial": "shut", "states": {"shut": {}}}, "reason": "first try"},
)  # fmt: skip
def publish_machine(request: HttpRequest, body: Publishing) -> Status:
    """Publish a definition.

    Publish a definition. It becomes its machine's current version; the same document again is the same version.
    Findings that are errors answer 422 with all of them.
    """
    found = _read(request, body, whole=True)
    if (found.definition is None or found.errors) and actor_of(request).may("publish"):
        raise DefinitionError(found.findings)
    version = definitions.publish(actor_of(request), found.compiled or found.definition, reason=body.reason)
    return Status(201, Published.build(version, machine=version.machine.name))


def _read(request: HttpRequest, body: Submitted, *, whole: bool = False) -> submissions.Submission:
    """Read the submitted definition. ``whole``: with all that publishing it takes."""
    if (body.definition is None) == (body.text is None):
        raise Mistaken("give either definition or text")
    actor = actor_of(request)
    limits = {"who": actor.id, "cpu": PUBLISHERS_CPU if actor.anywhere("publish") else VIEWERS_CPU, "whole": whole}
    if body.text is None:
        done = offload.run("check", json.dumps(body.definition), **limits)
    elif body.format in FORMAT_NAMES:
        done = offload.run("read", body.text, format=body.format, **limits)
    else:
        raise Mistaken(f"format is one of {', '.join(FORMAT_NAMES)}", "format")
    charge(request, done.cpu)
    return offload.read_submission(done)
