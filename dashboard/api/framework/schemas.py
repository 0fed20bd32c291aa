"""Base classes of request and response bodies, strict parsing of JSON, and the response of what needs approval.

How what goes in and comes out is written down: strict where it comes in, straight from the engine's records out.
"""

import json
from collections.abc import Collection
from dataclasses import is_dataclass
from datetime import datetime
from inspect import cleandoc
from typing import Annotated, Any, Generic, Self, TypeVar, get_type_hints

from django.db.models import BooleanField, DateTimeField, IntegerField, Model
from django.http import HttpRequest, HttpResponse
from ninja.parser import Parser
from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, create_model

from dashboard.shared.times import in_ms
from dashboard.site.mount_point import api_path
from machines.approvals import actions as approvals
from machines.approvals import queries as approval_queries
from machines.catalog.errors import ApprovalNeeded
from machines.models import Approval
from machines.people.actor import Actor


class Strict(Parser):
    """UTF-8 alone, as JSON is sent; no NaN and no Infinity, which it does not have; and no name twice, of which one
    would silently win."""

    def parse_body(self, request: HttpRequest) -> Any:
        text = request.body.decode("utf-8-sig")
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


Item = TypeVar("Item")
Ms = Annotated[
    int,
    BeforeValidator(lambda value: in_ms(value) if isinstance(value, datetime) else value),
    Field(description="milliseconds since the epoch"),
]
Reason = Annotated[str, Field(min_length=1, max_length=1000, description="why: it stays in history and audit")]
Why = Annotated[str, Field(max_length=1000, description="why, for history and audit; may be empty")]
Data = Annotated[dict[str, Any], Field(description="field -> value")]


class Body(BaseModel):
    """What a client sends: unknown names are mistakes, and nothing is guessed."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Acting(Body):
    """What needs nothing but a reason."""

    reason: Reason


class Out(BaseModel):
    """What is answered: the attributes of a record by name, or by the alias of a field.

    A line ``field: text`` of the docstring of a schema describes a field that it takes from a record.
    """

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe the schema and its fields by its docstring, and fields also by those of its bases."""
        reference = handler(core)
        schema = handler.resolve_ref_schema(reference)
        for kind in reversed(cls.__mro__[: cls.__mro__.index(Out)]):
            schema["description"], fields = _read_docstring(kind, schema["properties"])
            for name, text in fields.items():
                schema["properties"][name]["description"] = text
        if not schema["description"]:
            del schema["description"]
        return reference

    @classmethod
    def derive(cls, record: type[Any], names: str, *, times: str = "", of: str = "") -> type[Self]:
        """Make a base of it with fields and properties of a record, a dataclass or a model: those called ``names``,
        with its types, and ``times``, which are ms. ``of``: the attribute that holds the record, if what is answered
        is not the record itself."""
        types = get_type_hints(record) if is_dataclass(record) else _list_column_types(record)
        fields = {name: types.get(name) or _read_property_type(record, name) for name in names.split()}
        fields |= dict.fromkeys(times.split(), Ms)
        paths = {name: Field(validation_alias=AliasPath(of, name)) if of else ... for name in fields}
        return create_model(record.__name__, __base__=cls, **{name: (fields[name], paths[name]) for name in fields})

    @classmethod
    def build(cls, record: object, **more: Any) -> Self:
        """Make it of a record, and of what the record does not hold or holds otherwise."""
        return cls.model_validate(_ExtendedRecord(record, more))


def _read_property_type(record: type[Any], name: str) -> Any:
    return get_type_hints(getattr(record, name).fget)["return"]


def _read_docstring(kind: type[Any], names: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return the docstring of a schema without its lines about fields, and these lines by the name of the field."""
    about, fields, name = list[str](), dict[str, str](), ""
    for line in cleandoc(kind.__doc__ or "").splitlines():
        head, colon, text = line.partition(": ")
        if colon and head in names:
            name, fields[head] = head, text
        elif name and line.startswith(" "):
            fields[name] += f" {line.strip()}"
        else:
            about.append(line)
    return "\n".join(about).strip(), fields


def _list_column_types(model: type[Model]) -> dict[str, Any]:
    kinds = ((IntegerField, int), (BooleanField, bool), (DateTimeField, Ms))
    found = {}
    for column in model._meta.concrete_fields:
        kind = next((kind for of, kind in kinds if isinstance(column, of)), str)
        found[column.name] = kind | None if column.null else kind
    return found


class _ExtendedRecord:
    def __init__(self, record: object, more: dict[str, Any]) -> None:
        self._record, self._more = record, more

    def __getattr__(self, name: str) -> Any:
        return self._more[name] if name in self._more else getattr(self._record, name)


class Items(Out, Generic[Item]):
    """A whole list."""

    items: list[Item]

    @classmethod
    def model_parametrized_name(cls, params: tuple[type[Any], ...]) -> str:
        """Return the name of the schema: ``WebhookItems``, ``DeliveryPage``."""
        return f"{params[0].__name__.removesuffix('Out')}{cls.__name__}"


class Page(Items[Item], Generic[Item]):
    """One page of a list."""

    next: str | None = Field(None, description="the cursor of the page after; null on the last")


class Problem(Out):
    """An error (RFC 9457). Facts of the error stand beside these members."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["/api/v1/docs#SB421"])
    title: str = Field(examples=["No such instance"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["machine 'order' has no instance 'o-17'"])
    instance: str = Field(examples=["/api/v1/machines/order/instances/o-17"])
    code: str = Field(examples=["SB421"])
    request: str = Field(examples=["0b5c2jw000c07"], description="the id to quote to an administrator of this site")


class Mistaken(Exception):
    """Parts of a body that fit by themselves and not together. ``path`` leads to the one to change."""

    def __init__(self, message: str, *path: str) -> None:
        super().__init__(message)
        self.path = path


class ApprovalOut(Out.derive(
    Approval,
    "id machine target reason asker asked_at expires_at decider decided_at instance bulk quorum state note outcome "
    "code",
)):  # fmt: skip
    """A request for a second person.

    instance: empty for a bulk
    bulk: empty for an instance
    quorum: how many people have to approve
    state: open, running, done, failed, declined, withdrawn or expired
    note: the decision note
    outcome: the outcome
    code: of the error it failed with
    """

    action: str = Field(examples=["force", "fire:refund"])
    asked: dict[str, Any] = Field(
        description="what the action takes, of an event also the transitions it selects; empty once it is decided"
    )
    expect: int | None = Field(None, description="the revision it was asked for")
    groups: list[str] = Field(description="those that decide; empty: whoever holds the right")
    empty_groups: list[str] = Field([], description="of these, those in which nobody but the requester is")
    approvers: list[str] = Field(description="with a quorum: who have approved and still count")


def answers_of(done: Any) -> dict[int, Any]:
    """Return the responses of an operation that may need approval. ``done``: its response when it runs at once."""
    return {200: done, 202: ApprovalOut}


def describe(actor: Actor, approval: Approval) -> ApprovalOut:
    return ApprovalOut.build(
        approval, asked=approval_queries.show_asked(actor, approval),
        approvers=[vote.voter for vote, counts in approval_queries.list_votes(approval) if counts],
        empty_groups=approval_queries.list_empty_groups(approval),
    )  # fmt: skip


def file_request(request: HttpRequest, needed: ApprovalNeeded) -> HttpResponse:
    """Ask for approval of the request. Return 202 with the request, and its address in ``Location``."""
    actor: Actor = request.caller.actor  # type: ignore[attr-defined]
    approval = approvals.ask(actor, needed)
    response = HttpResponse(
        describe(actor, approval).model_dump_json(), status=202, content_type="application/json; charset=utf-8"
    )
    response["Location"] = f"{api_path()}approvals/{approval.pk}"
    return response
