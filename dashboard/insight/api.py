"""Insight: what the histories of a machine's instances say."""

from functools import partial

from django.http import HttpRequest
from ninja import Query
from pydantic import BaseModel, ConfigDict, Field

from dashboard.api.framework.operation import Group, actor_of, engine_of
from dashboard.api.framework.schemas import Body, Mistaken
from dashboard.shared.version_view import load_version
from machines.engine.definitions import durations
from machines.insight import comparison, questions
from machines.insight.records import (
    Bottlenecks,
    Comparison,
    Conformance,
    Durations,
    Funnel,
    InstancePage,
    Paths,
    People,
    Search,
    ServiceLevels,
)

from .forms import GROUPS, NAMES, make_filter
from .presenters import choose_figure, choose_limits, find_definition

group = Group("insight", "How instances went: paths, times, people, changes. Times in ms, shares from 0 to 1.")
INSIGHT = "/machines/{name:machine}/insight"
OFF = (409,)


class SearchTerms(BaseModel):
    """Which instances. All that is given has to hold."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    version: str = Field("", description="of the definition: `3`, or `3, 4`")
    since: str = Field("", description="created from then on: 2026-11-21, or 2026-11-21T08:30, in UTC")
    until: str = Field("", description="created before then")
    state: str = Field("", description="is in it, or ended in it")
    tag: str = Field("", description="of the state where it is, or ended")
    by: str = Field("", description="an indexed data field, with `is`")
    is_: str = Field("", alias="is", description="its value")
    actor: str = Field("", description="took part; takes the right to see the audit")


class FunnelTerms(SearchTerms):
    stage: list[str] = Field(description="states in their order", min_length=2, max_length=20)
    within: str = Field("", description="of the first one, such as `2d`")


class PeopleTerms(SearchTerms):
    each: str = Field(
        "queue", description="queue, handler, worker, attempt, kind; actor takes the right to see the audit"
    )


class LevelTerms(SearchTerms):
    limit: str = Field("", description="for every state, such as `2h`; else the service levels of the definition")


class InstanceTerms(SearchTerms):
    at: str = Field("", description="was in this state")
    source: str = Field("", description="took a step from there, with `target` and `event`")
    target: str = ""
    event: str = ""
    path: list[str] = Field([], description="went exactly through these states")
    stage: list[str] = Field([], description="reached these states one after the other", max_length=20)
    within: str = Field("", description="of the first stage, such as `2d`")
    each: str = Field("", description="has a step of this queue, handler, worker, attempt, kind or actor: with `name`")
    name: str = ""
    limit: int = Field(100, ge=1, le=1000)
    after: str = Field("", description="`after` of the page before")


class Compared(Body):
    first: SearchTerms
    second: SearchTerms


def _read(request: HttpRequest, machine: str, terms: SearchTerms) -> Search:
    """Return the search. Raise Mistaken, Forbidden, Concealed."""
    view = load_version(machine, engine_of(request).live(machine).version)
    asked = terms.model_dump(include=set(SearchTerms.model_fields), by_alias=True)
    form = make_filter(actor_of(request), view, asked)
    if not form.is_valid():
        name, texts = next(iter(form.errors.items()))
        raise Mistaken(f"{name}: {' '.join(texts)}", name)
    return form.read_search()


def _read_duration(name: str, text: str) -> int | None:
    if text and not durations.parse_duration(text):
        raise Mistaken(f"{name}: {durations.HINT}", name)
    return durations.parse_duration(text) if text else None


def _check_group(request: HttpRequest, machine: str, each: str) -> None:
    if each not in GROUPS:
        raise Mistaken(f"each is one of {', '.join(GROUPS)}", "each")
    if each == "actor":
        actor_of(request).demand(NAMES, machine)


@group.get(f"{INSIGHT}/paths", right="view", refusals=OFF, answers=Paths)
def get_insight_paths(request: HttpRequest, machine: str, terms: Query[SearchTerms]) -> Paths:
    """Get paths, states and transitions with share, count and times.

    The commonest paths, and the rarer ones in one sum.
    """
    return questions.paths(_read(request, machine, terms))


@group.get(f"{INSIGHT}/durations", right="view", refusals=OFF, answers=Durations)
def get_insight_durations(request: HttpRequest, machine: str, terms: Query[SearchTerms]) -> Durations:
    """Get the time in each state as distributions."""
    return questions.durations(_read(request, machine, terms))


@group.get(f"{INSIGHT}/bottlenecks", right="view", refusals=OFF, answers=Bottlenecks)
def get_insight_bottlenecks(request: HttpRequest, machine: str, terms: Query[SearchTerms]) -> Bottlenecks:
    """Rank states by the time of all instances in them."""
    return questions.bottlenecks(_read(request, machine, terms))


@group.get(f"{INSIGHT}/funnel", right="view", refusals=OFF, answers=Funnel)
def get_insight_funnel(request: HttpRequest, machine: str, terms: Query[FunnelTerms]) -> Funnel:
    """Count who reached states one after the other."""
    search = _read(request, machine, terms)
    return questions.funnel(search, terms.stage, within=_read_duration("within", terms.within))


@group.get(f"{INSIGHT}/people", right="view", refusals=OFF, answers=People)
def get_insight_people(request: HttpRequest, machine: str, terms: Query[PeopleTerms]) -> People:
    """Get steps and times by queue, handler, worker, attempt, kind of step or person.

    `queued`, `running` and `retried` are of jobs whose times are known.
    """
    search = _read(request, machine, terms)
    _check_group(request, machine, terms.each)
    return questions.people(search, by=terms.each)


@group.get(f"{INSIGHT}/levels", right="view", refusals=OFF, answers=ServiceLevels)
def get_insight_levels(request: HttpRequest, machine: str, terms: Query[LevelTerms]) -> ServiceLevels:
    """Count stays that were longer than a limit."""
    search = _read(request, machine, terms)
    view = load_version(machine, engine_of(request).live(machine).version)
    return questions.service_levels(search, choose_limits(view, _read_duration("limit", terms.limit)))


@group.get(f"{INSIGHT}/conformance", right="view", refusals=OFF, answers=Conformance)
def get_insight_conformance(request: HttpRequest, machine: str, terms: Query[SearchTerms]) -> Conformance:
    """List steps that the definition of their version does not have."""
    return questions.conformance(_read(request, machine, terms), partial(find_definition, machine))


@group.get(f"{INSIGHT}/instances", right="view", refusals=OFF, answers=InstancePage)
def list_insight_instances(request: HttpRequest, machine: str, terms: Query[InstanceTerms]) -> InstancePage:
    """List the instances behind a figure.

    Without `at`, `event`, `path`, `stage` or `name`: all of the search, archived ones too.
    """
    search = _read(request, machine, terms)
    if terms.name:
        _check_group(request, machine, terms.each)
    step, within = (terms.source, terms.target, terms.event), _read_duration("within", terms.within)
    figure = choose_figure(terms.at, step, terms.path, terms.stage, within, (terms.each, terms.name))
    return questions.list_instances(search, **figure, limit=terms.limit, after=terms.after)


@group.post(
    f"{INSIGHT}/comparison", right="view", answers=Comparison, changes=False, refusals=OFF,
    example={"first": {"version": "3"}, "second": {"version": "4"}},
)  # fmt: skip
def compare_insight(request: HttpRequest, machine: str, body: Compared) -> Comparison:
    """Compare two searches.

    Differences with their interval of 95 %, and whether each is noise.
    """
    return comparison.compare(_read(request, machine, body.first), _read(request, machine, body.second))
