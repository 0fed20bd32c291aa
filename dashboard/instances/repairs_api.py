"""Repairs: changes of an instance that no transition provides. Each has a preview and needs a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from dashboard.api.framework.approvals import answers_of
from dashboard.api.framework.operation import Group, actor_of, engine_key
from dashboard.api.framework.preconditions import read_expected, set_etag
from dashboard.api.framework.schemas import Body, Data, Out, Reason
from machines.engine import Instance, Preview
from machines.instances import actions as instances

from .api import INSTANCE, InstanceOut

group = Group("repairs", "Operator actions on one instance. Each has a preview that changes nothing.")
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


class PreviewOut(Out):
    """What it would do to the instance at `revision`; nothing was done."""

    machine: str
    id: str
    repair: str
    revision: int = Field(description="of the instance")
    before: list[str]
    configuration: list[str]
    moved: bool
    changes: dict[str, Any]
    withdrawn: list[dict[str, Any]] = Field(description="jobs that would be removed")
    added: list[dict[str, Any]] = Field(description="jobs that would be added")
    renewed: str = Field(description="the job that would be retried, or empty")
    disarmed: list[dict[str, Any]] = Field(description="timers that would be cancelled")
    armed: list[dict[str, Any]] = Field(description="timers that would be set")
    ended: list[dict[str, Any]] = Field(description="child instances that would be stopped")
    started: list[dict[str, Any]] = Field(description="child instances that would be started")
    transitions: list[str]
    messages: int
    held: int = Field(description="queued messages, delivered on resume")
    done: bool


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
    group.post(
        f"{INSTANCE}/repairs/{name}", id=f"{name}Instance", right="operate", answers=answers_of(InstanceOut),
        matches=True, summary=about, example=example | {"reason": "agreed with the customer"},
    )(_repair(name, with_reason))  # fmt: skip
    group.post(
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
