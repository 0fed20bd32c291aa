"""Schedules: the list, one with its history, the form, and the actions on one. ``machines.schedules.actions`` does
the work."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.jobs.presenters import Action
from dashboard.shared.addresses import find_page_address
from dashboard.shared.form_views import answer_form, make_key
from dashboard.shared.permissions import View, require, require_audited
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from machines.alarms.alarm import pluralize
from machines.catalog.queries import count_missing
from machines.engine.errors import BadInput, SignalboxError
from machines.people.actor import Actor
from machines.people.permissions import Forbidden, allows, anywhere, demand
from machines.schedules import (
    DeclaredSchedule,
    InvalidSchedule,
    Row,
    Schedule,
    UnknownSchedule,
    authors,
    describe_run,
    queries,
)
from machines.schedules import actions as services
from machines.schedules.occurrences import Cron
from machines.schedules.planning import Run

from .forms import ACTIONS, ActForm, BackfillForm, KeyedActForm, RemoveForm, ScheduleForm, initial, write_when

WHY = {"due": "planned", "catch_up": "made up", "run": "by hand", "backfill": "backfill"}


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """A schedule in the list and at the head of its page. Times in ms. ``words``: a cron expression in English, else
    empty."""

    row: Row
    when: str
    words: str
    does: str
    about: str
    next: int | None
    last: dict[str, Any] | None


ACTS: dict[str, tuple[str, str, type[ActForm]]] = {
    "run": ("Run now", "Runs once, now, beside the plan; also while it is paused.", KeyedActForm),
    "pause": ("Pause", "Nothing is due until it is resumed; what is under way ends.", ActForm),
    "resume": ("Resume", "Runs are planned from now on: what was planned meanwhile is not made up.", ActForm),
    "take_over": ("Take over", "It runs in your name from now on, and goes on where it was paused.", ActForm),
    "backfill": ("Backfill", "Runs what the plan has in a range. The runs are listed first.", BackfillForm),
    "remove": ("Remove", "Removes it with its history. What its runs led to goes on.", RemoveForm),
}


def list_acts(row: Row, may: dict[str, bool], name: str, *, without: str = "") -> list[Action]:
    """List what the person may do now. ``name``: of the person; ``without``: an action that the page asks about."""
    is_idle = {
        "pause": row.state == "paused", "resume": row.state != "paused", "take_over": row.order.author == name,
    }  # fmt: skip
    return [
        Action(
            verb, label, about, find_page_address(f"signalbox:schedule-{verb.replace('_', '-')}", row.name),
            form(id=f"act-{verb}", zone=row.schedule.zone, initial={"key": make_key()}), f"act-{verb}",
            danger=verb == "remove",
        )
        for verb, (label, about, form) in ACTS.items()
        if may[verb] and verb != without and not is_idle.get(verb)
    ]  # fmt: skip


def present(row: Row) -> ScheduleLine:
    what = row.schedule.what
    about = {
        "enqueue": what.get("src"), "fire": f"{what.get('event')} at {what.get('instance')}",
        "fire_all": what.get("event"), "create": "",
    }  # fmt: skip
    return ScheduleLine(
        row,
        write_when(row.schedule.given["when"]),
        explain(row.schedule),
        ACTIONS[row.schedule.does][0],
        str(about[row.schedule.does] or ""),
        None if row.due is None else row.due * 1000,
        None if row.last is None else present_run(row.last),
    )


def explain(schedule: Schedule) -> str:
    return schedule.when.explain() if isinstance(schedule.when, Cron) else ""


def present_run(run: Run) -> dict[str, Any]:
    """Present a run of the history. ``led``: kind, machine and id of what it led to."""
    return describe_run(run) | {"why": WHY.get(run["w"], run["w"])}


def list_facts(row: Row) -> list[tuple[str, Any]]:
    """Return what is set beside when and what, for people."""
    schedule = row.schedule
    missed = f"all, {schedule.bound} at most" if schedule.catch_up == "all" else schedule.catch_up
    facts = [("If the previous run is still going", schedule.overlap), ("Missed runs", missed)]
    if schedule.jitter:
        facts.append(("Jitter", f"up to {schedule.jitter} s"))
    return facts


RUNS = 50  # on a page
TAKEN = "the name {!r} is taken: choose another one, or change that schedule"
VERBS = ("put", "take_over", "pause", "resume", "run", "backfill", "remove")


@require("view")
def show_all(request: HttpRequest) -> HttpResponse:
    machine = request.GET.get("machine", "")
    names = sorted(redacted_engine(request).machines())
    if machine and machine not in names:
        raise Http404("No machine of this name.")
    new = "new" in request.GET
    if new and machine and allows(request.user, "operate", machine):
        return redirect("signalbox:schedule-new", machine)
    rows = queries.list_schedules(Actor.of(request), machine=machine or None)
    context = {
        "lines": [present(row) for row in rows],
        "missing": count_missing(rows.missing),
        "machine": machine,
        "machines": names,
        "makes": allows(request.user, "operate", machine) if machine else anywhere(request.user, "operate"),
        "unchosen": new and not machine,
    }
    return render_page(request, "signalbox/schedules/schedules.html", context)


@require("view")
def show(request: HttpRequest, name: str) -> HttpResponse:
    return _show(request, name)


def _show(
    request: HttpRequest, name: str, *, times: list[str] | None = None, mistake: str = "", status: int = 200
) -> HttpResponse:
    """Render the page. ``times``, ``mistake``: the runs that the backfill of the form would have, and what was wrong
    with it."""
    actor = Actor.of(request)
    row = queries.get(actor, name)
    may = {verb: queries.may(actor, row, verb) for verb in VERBS}
    context = {
        "line": present(row),
        "row": row,
        "lost": authors.find_lost_right(row.order),
        "next": [at * 1000 for at in queries.list_next(actor, name)],
        "facts": list_facts(row),
        "what": {name: found for name, found in row.schedule.what.items() if name not in ("do", "machine")},
        "runs": [present_run(run) for run in queries.history(actor, name, RUNS)],
        "may": may,
        "acts": list_acts(row, may, actor.name, without="backfill" if times or mistake else ""),
        "given": request.POST,
        "times": times,
        "mistake": mistake,
        "key": make_key(),
    }
    return render_page(request, "signalbox/schedules/schedule.html", context, status=status)


@require_audited("operate", "schedule.put", machine="machine")
def make(request: HttpRequest, machine: str) -> HttpResponse:
    action = request.GET.get("do", "")
    if action not in ("", *ACTIONS):
        raise Http404("Unknown action.")
    if machine not in redacted_engine(request).machines():
        raise Http404("No machine of this name.")
    if not action:
        return _render_form(request, machine, None, status=400 if request.method == "POST" else 200)
    if action != "enqueue":
        demand(request.user, "fire", machine)
    form = ScheduleForm(machine, action, request.POST if request.method == "POST" else None)
    return _edit(request, form, None)


@require_audited("operate", "schedule.put", target="name")
def change(request: HttpRequest, name: str) -> HttpResponse:
    row = queries.get(Actor.of(request), name)
    if not queries.may(Actor.of(request), row, "put"):
        if row.order.is_declared:
            messages.error(request, f"Not changed: {DeclaredSchedule(name, row.source, 'change').message}")
            return redirect("signalbox:schedule", name)
        demand(request.user, "operate", row.schedule.machine)
        demand(request.user, "fire", row.schedule.machine)
    document = row.schedule.as_dict()
    sent = request.POST if request.method == "POST" else None
    form = ScheduleForm(row.schedule.machine, row.schedule.does, sent, initial=initial(document))
    form.fields["name"].disabled = True  # another name is another schedule
    return _edit(request, form, row)


def _edit(request: HttpRequest, form: ScheduleForm, row: Row | None) -> HttpResponse:
    """Show the form; a POST stores the schedule, or with ``preview`` shows its next runs."""
    upcoming: list[int] = []
    status, words = 200, ""
    if request.method == "POST":
        status = 400
        if form.is_valid():
            document = form.document()
            try:
                if "preview" in request.POST:
                    schedule, upcoming = queries.preview(Actor.of(request), document)
                    status, words = 200, explain(schedule)
                else:
                    if row is None and _is_taken(request, document["name"]):
                        raise BadInput(TAKEN.format(document["name"]))
                    made = services.put(Actor.of(request), document, reason=form.cleaned_data["reason"])
                    messages.success(request, "Saved" if row else "Created")
                    return redirect("signalbox:schedule", made.name)
            except InvalidSchedule as error:
                form.blame(error.findings)
            except (BadInput, DeclaredSchedule) as error:
                form.add_error(None, f"{error.message} ({error.code})")
    return _render_form(request, form.machine, form, row=row, upcoming=upcoming, words=words, status=status)


def _render_form(
    request: HttpRequest, machine: str, form: ScheduleForm | None, *, row: Row | None = None,
    upcoming: Sequence[int] = (), words: str = "", status: int = 200,
) -> HttpResponse:  # fmt: skip
    context = {
        "machine": machine,
        "form": form,
        "row": row,
        "chosen": form.action if form else "",
        "label": ACTIONS[form.action][0] if form else "",
        "actions": [(name, *texts) for name, texts in ACTIONS.items()],
        "next": [at * 1000 for at in upcoming],
        "words": words,
    }
    return render_page(request, "signalbox/schedules/schedule_form.html", context, status=status)


def _is_taken(request: HttpRequest, name: str) -> bool:
    """Return whether the person sees a schedule of this name: a new one does not replace it."""
    try:
        queries.get(Actor.of(request), name)
    except (UnknownSchedule, Forbidden):
        return False
    return True


SUCCESS = {
    "pause": "Paused: nothing is due until it is resumed",
    "resume": "Resumed: the next runs are planned from now on",
    "take_over": "Taken over: it runs in your name",
    "run": "Running once now; the history shows the result",
}


def _make_view(verb: str) -> View:
    @answer_form("schedule", "operate", f"schedule.{verb}", refused=(SignalboxError,), target="name")
    def view(request: HttpRequest, name: str) -> str:
        key = {"key": request.POST.get("key") or None} if verb == "run" else {}
        getattr(services, verb)(Actor.of(request), name, reason=_read_reason(request), **key)
        return SUCCESS[verb]

    return view


def _read_reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()


@answer_form("schedule", "operate", "schedule.backfill", shown=(BadInput,), render=_show, target="name")
def backfill(request: HttpRequest, name: str) -> str | HttpResponse:
    """Say how many runs a range has; with ``confirm`` run them."""
    actor = Actor.of(request)
    given = {field: request.POST.get(field, "").strip() for field in ("start", "end", "reason")}
    if "confirm" not in request.POST:
        return _show(request, name, times=queries.preview_backfill(actor, name, given["start"], given["end"]))
    count = services.backfill(actor, name, **given, key=request.POST.get("key") or None)
    return f"Backfill of {pluralize(count, 'run')} started"


@answer_form("schedule", "operate", "schedule.remove", refused=(DeclaredSchedule,), target="name")
def remove(request: HttpRequest, name: str) -> HttpResponse:
    queries.get(Actor.of(request), name)
    if request.POST.get("name", "") != name:
        messages.error(request, "Not removed: enter the name of the schedule to confirm")
        return redirect("signalbox:schedule", name)
    services.remove(Actor.of(request), name, reason=_read_reason(request))
    messages.success(request, f"{name} removed with its history; jobs and instances of its runs stay")
    return redirect("signalbox:schedules")


ACTION_VIEWS = {verb: _make_view(verb) for verb in SUCCESS} | {"change": change, "backfill": backfill, "remove": remove}
