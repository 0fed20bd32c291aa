"""Presents a queue: a page of its jobs, and the actions on a queue or a job with their forms and errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, QueryDict
from pydantic import Field, field_validator

from dashboard.shared.addresses import find_page_address
from dashboard.shared.counts import PLACES, Figures
from dashboard.shared.errors.statuses import MISTAKE
from dashboard.shared.list_pages import Terms, Text
from machines.engine import Job, errors
from machines.engine.definitions.durations import HINT, parse_duration
from machines.insight.statistics.series import recent_times
from machines.jobs import queue_actions
from machines.jobs.groups import GroupFigures
from machines.jobs.search import JobTerms
from machines.people.actor import Actor

from .forms import PURGED, GroupLimitForm, HandledForm, LimitForm, PurgeForm, ReasonForm

SIZE = 50  # jobs on a page
Posted = Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Action:
    """Holds an action with its form. ``label``: of its button; ``about``: what it does; ``back``: hidden fields to
    return by.
    """

    name: str
    label: str
    about: str
    url: str
    form: Any
    id: str
    danger: bool = False
    back: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class FailedAction:
    """Holds an action that failed.

    ``status``: 400 for an invalid form, 409 if the queue has changed. ``act``: the action, to try it again.
    """

    status: int
    title: str
    message: str
    code: str
    act: Action | None = None


def make_failure(act: Action, error: errors.SignalboxError | None = None) -> FailedAction:
    """Describe an invalid form. ``error``: the error of the engine, if the form got that far."""
    message = error.message if error else "Correct the marked fields."
    return FailedAction(400, f"Not done: {act.label.lower()}", message, error.code if error else MISTAKE, act)


@dataclass(frozen=True, slots=True)
class QueueActions:
    """Makes the actions of one queue, or of a group of it. ``back``: hidden fields to return by; ``id``: the prefix of
    their forms' ids."""

    of: Figures
    back: tuple[tuple[str, str], ...] = ()
    id: str = "act"
    group: GroupFigures | None = None

    def make(self, name: str, place: str = "", posted: Posted = None) -> Action:
        """Make an action by its name. ``place``: of the jobs to purge; empty for any."""
        return getattr(self, name)(posted, place) if name == "purge" else getattr(self, name)(posted)

    def everything(self) -> list[Action]:
        """List all actions that make sense now, for a page that shows no place."""
        depth = self.of.stats.depth
        names = ["resume" if self.of.paused else "pause"]
        names += ["move"] if depth["delayed"] else []
        names += ["purge"] if any(depth[place] for place in PURGED) else []
        return [self.make(name) for name in names]

    def of_place(self, place: str) -> list[Action]:
        """List the actions on all jobs of one place."""
        if place not in PURGED or not self.of.stats.depth[place]:
            return []
        return [self.make(name, place) for name in (["move", "purge"] if place == "delayed" else ["purge"])]

    def pause(self, posted: Posted = None) -> Action:
        about = f"Workers take no jobs from {self._subject} until it is resumed."
        about += " Running jobs finish; new jobs can be added."
        return self._ask_reason("pause", "Pause" if self.group else "Pause queue", about, posted)

    def resume(self, posted: Posted = None) -> Action:
        about = f"Workers take jobs from {self._subject} again."
        return self._ask_reason("resume", "Resume" if self.group else "Resume queue", about, posted)

    @property
    def _subject(self) -> str:
        return f"the group {self.group.name}" if self.group else "this queue"

    def move(self, posted: Posted = None) -> Action:
        return self._ask_reason("move", "Run all delayed jobs now", "All delayed jobs become ready at once.", posted)

    def limit(self, posted: Posted = None) -> Action:
        about = f"Limits of {self._subject} apply across all workers and override the definition."
        held = self.group or self.of.stats
        form = LimitForm(posted, id=f"{self.id}-limit", initial={"concurrency": held.concurrency, "rate": held.rate})
        return self._act("limit", "Set limits", about, form)

    def limit_group(self, posted: Posted = None) -> Action:
        """Make the action that asks for the group."""
        about = "Apply across all workers and override the definition, also before the group has jobs."
        return self._act("limit", "Limit a group", about, GroupLimitForm(posted, id=f"{self.id}-group"))

    def purge(self, posted: Posted = None, place: str = "") -> Action:
        depth = self.of.stats.depth
        held = {name: depth[name] for name in ([place] if place in PURGED else PURGED) if depth[name] or name == place}
        form = PurgeForm(posted, id=f"{self.id}-purge", places=held, initial={"place": place})
        about = "Removes the jobs permanently. An instance waiting for one receives error.invoke with the kind Purged."
        return self._act("purge", f"Purge all {place} jobs" if place else "Purge jobs", about, form, danger=True)

    def _ask_reason(self, name: str, label: str, about: str, posted: Posted) -> Action:
        return self._act(name, label, about, ReasonForm(posted, id=f"{self.id}-{name}"))

    def _act(self, name: str, label: str, about: str, form: ReasonForm, *, danger: bool = False) -> Action:
        url = find_page_address(f"signalbox:queue-{name}", self.of.machine, self.of.queue)
        named = (("group", self.group.name),) if self.group else ()
        back = tuple((field, value) for field, value in self.back + named if field not in form.fields)
        return Action(name, label, about, url, form, form.auto_id.removesuffix("-%s"), danger, back)


def list_group_actions(of: QueueActions) -> list[Action]:
    """List the actions on a group; none on the jobs without one."""
    if of.group is None:
        return []
    return [of.resume() if of.group.paused else of.pause(), of.limit()]


JOB_ACTIONS = {
    "redrive": ("Retry", "The job becomes ready again, with its attempts reset."),
    "move": ("Run now", "The job becomes ready immediately."),
    "delay": ("Delay", "Each job waits for this long from when a worker delays it. A job due later stays as it is."),
    "reroute": ("Move", "The jobs move to the other queue, with their state and attempts."),
    "withdraw": (
        "Withdraw",
        "Removes the job permanently. Its instance receives error.invoke with the kind Withdrawn; a worker that"
        " runs it learns of it with its next heartbeat.",
    ),
}
HANDLED_ACTIONS = {
    "redrive": "The instance moved on when this job died, or later. The job runs again with its attempts reset; no"
    " instance receives its result.",
    "withdraw": "Removes the job permanently. Its instance no longer waits for it and receives nothing.",
}
BY_PLACE = {"dead": ("redrive", "withdraw"), "handled": ("redrive", "withdraw"), "delayed": ("move", "withdraw")}


def list_job_actions(job: Job, back: tuple[tuple[str, str], ...] = ()) -> list[Action]:
    return [make_job_action(job, name, back=back) for name in BY_PLACE.get(job.place, ("withdraw",))]


def make_job_action(job: Job, name: str, posted: Posted = None, back: tuple[tuple[str, str], ...] = ()) -> Action:
    label, about = JOB_ACTIONS[name]
    form: type[ReasonForm] = ReasonForm
    if job.place == "handled":
        about = HANDLED_ACTIONS[name]
        form = HandledForm if name == "redrive" else ReasonForm
    id = f"job-{job.id}-{name}"
    url = find_page_address(f"signalbox:job-{name}", job.machine, job.id)
    return Action(name, label, about, url, form(posted, id=id), id, name == "withdraw", back)


@dataclass(frozen=True, slots=True)
class JobPage:
    """Holds a place in the jobs of a queue. ``number``: of the page, from 1; ``total``: of the jobs."""

    machine: str
    queue: str
    place: str
    number: int = 1
    total: int = 0

    @property
    def offset(self) -> int:
        return (self.number - 1) * SIZE

    @property
    def last(self) -> int:
        return max(1, -(-self.total // SIZE))

    @property
    def first_row(self) -> int:
        return self.offset + 1

    @property
    def back(self) -> tuple[tuple[str, str], ...]:
        """Return the place and the page as hidden fields of a form."""
        return (("place", self.place), ("page", str(self.number)))

    def url(self, number: int | None = None) -> str:
        terms = {"place": self.place} | ({} if (number or self.number) == 1 else {"page": number or self.number})
        return f"{find_page_address('signalbox:queue', self.machine, self.queue)}?{urlencode(terms)}"

    @property
    def newer(self) -> str:
        return self.url(self.number - 1) if self.number > 1 else ""

    @property
    def older(self) -> str:
        return self.url(self.number + 1) if self.number < self.last else ""


class SearchTerms(Terms):
    """What narrows the jobs of a place: the terms of the page and of the API. ``older``, ``newer``: durations."""

    input: Text = Field("", max_length=500, description="a part of the input as JSON, or `path=value`")
    error: Text = Field("", max_length=200, description="a part of the last error")
    group: Text = Field("", max_length=200)
    older: Text = Field("", max_length=20, description="enqueued at least so long ago, such as `15m`")
    newer: Text = Field("", max_length=20, description="enqueued at most so long ago")

    @field_validator("older", "newer")
    @classmethod
    def check_duration(cls, text: str) -> str:
        if text and parse_duration(text) is None:
            raise ValueError(HINT)
        return text

    @property
    def given(self) -> dict[str, str]:
        return {name: text for name in SearchTerms.model_fields if (text := getattr(self, name))}

    @property
    def terms(self) -> JobTerms:
        times = {name: parse_duration(text) or 0 if (text := getattr(self, name)) else 0 for name in ("older", "newer")}
        return JobTerms(self.input, self.error, self.group, **times)


class SearchPage(SearchTerms):
    """A page of a search. ``after``: jobs of the place that earlier pages read."""

    after: int = Field(0, ge=0, le=10**9)


def read_figures(actor: Actor, machine: str, queue: str) -> Figures:
    """Read the figures of a queue. Raise Http404 if the machine does not have it."""
    stats = queue_actions.stats(actor, machine).get(queue)
    if stats is None:
        raise Http404(f"Machine {machine} has no queue {queue}.")
    return Figures(machine, stats, recent_times([machine]).get(machine, {}).get(queue, {}))


def find_job_page(figures: Figures, asked: QueryDict) -> JobPage | None:
    """Return the requested page, or None for an invalid number. A number past the end is the last page."""
    depth = figures.stats.depth
    place = asked.get("place") or _choose_place(figures)
    if place not in PLACES:
        raise Http404(f"Unknown job state {place[:40]}; use {', '.join(PLACES)}.")
    number = asked.get("page") or "1"
    if not (number.isascii() and number.isdigit() and 0 < len(number) <= 12 and int(number) > 0):
        return None
    spot = JobPage(figures.machine, figures.queue, place, total=depth[place])
    return JobPage(spot.machine, spot.queue, place, min(int(number), spot.last), spot.total)


def _choose_place(figures: Figures) -> str:
    """Return the place to show first: dead jobs, else the first place that is not empty."""
    return next(
        (place for place in ("dead", "ready", "leased", "delayed", "handled") if figures.stats.depth[place]), "ready"
    )
