"""Declares the filter parameters of instances. They have the names and the meaning of the filters on a machine's
page.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dashboard.shared.redacted_engine import RedactedEngine
from dashboard.shared.search import instance_filter
from machines.catalog.queries import outline_of
from machines.catalog.redaction import redactor_if
from machines.engine import UnknownMachine
from machines.people.actor import Actor


class Filter(BaseModel):
    """What is to be found. All that is given has to hold."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    state: str = Field("", description="active state; a compound one stands for all below it")
    older: str = Field("", description="at least so long in its state, such as `15m`")
    version: str = Field("", description="of the definition it runs")
    tag: str = Field("", description="some active state carries it")
    actor: str = Field("", description="the last actor; `ann*` for names that begin so")
    error: str = Field("", description="what holds it up: `any`, or the kind of an exception")
    id: str = Field("", description="ids that begin so")
    edge: str = Field("", description="the transition that led to its state, `3:t4` for t4 of version 3")
    created: str = Field(
        "", description="`24h`: within the last 24 hours; `>2026-01-31`, `<2026-01-31`, or a range with `..`"
    )
    suspended: str = Field("", description="`yes` or `no`")
    data: str = Field("", description="conditions on data fields, all of which hold: `amount>100 to:Rome`")
    query: str = Field("", description="the same filter as a line: `state:Waiting age>1h data.amount>100`")
    by: str = Field("", description="an indexed data field, with `is`")
    is_: str = Field("", alias="is", description="its value, a beginning like `ATV-*`, or a range like `5..10`")


class Terms(Filter):
    """The same, and how it is listed."""

    order: Literal["oldest", "newest"] = Field("oldest", description="by the time they entered their state")
    limit: int = Field(50, ge=1, le=500)
    cursor: str | None = Field(None, description="`next` of the page before")


def read_filter(actor: Actor, machine: str, terms: Filter) -> dict[str, Any]:
    """Return the terms as ``services.instances.find`` takes them. Raises BadInput, UnknownMachine."""
    machines = RedactedEngine(actor).machines()
    current = machines.get(machine)
    if current is None:
        raise UnknownMachine(machine, known=sorted(machines))
    hidden = redactor_if(actor.may("reveal", machine), machine).fields
    given = {
        name: text
        for name, text in terms.model_dump(by_alias=True).items()
        if name in (*instance_filter.NAMES, "query")
    }
    return instance_filter.parse_terms(given, outline_of(machine, current), hidden)
