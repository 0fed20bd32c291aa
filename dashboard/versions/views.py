"""The versions of a machine side by side, one version, what differs between two, and who gets which version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse

from dashboard.shared import version_view
from dashboard.shared.addresses import parse_number
from dashboard.shared.counts import count_versions
from dashboard.shared.form_views import answer_form, redirect_to_request
from dashboard.shared.permissions import allows, require
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import answer_drawing, render_page
from dashboard.shared.version_view import Overlay, find_state_parts, find_transition_parts
from machines.approvals import queries as approval_queries
from machines.catalog.queries import count_missing
from machines.catalog.version_rules import ACTIONS, OPERATIONS
from machines.engine import BadInput
from machines.engine.errors import VersionRefused
from machines.engine.limits import MAX_REASON
from machines.engine.versions import Replay
from machines.engine.versions.records import UNTOLD, StepOutcome
from machines.instances.forms import PageForm
from machines.models import StoredPlan
from machines.people.actor import Actor
from machines.people.errors import ApprovalNeeded
from machines.versions import drafts, plans
from machines.versions import rollouts as services

from . import comparison
from .presenters import list_versions, present_choice

PLANS = 20  # stored plans on a page


@require("view")
def show(request: HttpRequest, machine: str) -> HttpResponse:
    return versions_page(request, machine)


def versions_page(request: HttpRequest, machine: str, *, mistake: str = "", status: int = 200) -> HttpResponse:
    """List the versions, newest first. ``mistake``: why what was asked for was not done."""
    context = _make_context(request, machine) | {"mistake": mistake}
    actor = Actor.of(request)
    context |= {"plans": _list_plans(actor, machine)}
    context |= {"drafts": drafts.list_drafts(actor, machine)[:PLANS] if actor.may("publish", machine) else []}
    return render_page(request, "signalbox/versions/versions.html", context, status=status)


def _make_context(request: HttpRequest, machine: str) -> dict[str, Any]:
    engine = redacted_engine(request)
    live = engine.live(machine)
    versions = count_versions(engine, machine, live)
    return {
        "section": "machines", "machine": machine, "live": live, "versions": versions, "now_ms": live.now,
        "missing": count_missing(live.missing),
        "rows": list_versions(Actor.of(request), machine, versions),
        "may_publish": allows(request.user, "publish", machine),
        "may_operate": allows(request.user, "operate", machine),
    } | present_choice(Actor.of(request), machine)  # fmt: skip


def _list_plans(actor: Actor, machine: str, **terms: int) -> list[StoredPlan]:
    """List the newest stored plans, each with the ``status`` of its move."""
    found = list(plans.list_plans(actor, machine).filter(**terms)[:PLANS])
    for row in found:
        row.status = plans.status(row)  # type: ignore[attr-defined]
    return found


@require("view")
def version(request: HttpRequest, machine: str, number: int) -> HttpResponse:
    """Show one version as a release: what it changed, its figures, its roll-out, and the plans that lead to it."""
    context = _make_context(request, machine)
    row = next((row for row in context["rows"] if row.version == number), None)
    if row is None:
        raise Http404(f"Machine {machine} has no version {number}.")
    actor = Actor.of(request)
    before = max((other.version for other in context["rows"] if other.version < number), default=None)
    context |= {
        "row": row, "before": before, "number": number, "plans": _list_plans(actor, machine, to=number),
        "requests": approval_queries.find_open().filter(machine=machine, action__in=OPERATIONS),
        "behind": sum(each.instances for each in context["versions"].rows if each.version != number),
    }  # fmt: skip
    if before is not None:
        old, new = (comparison.read_side(actor, machine, str(each)) for each in (before, number))
        context |= comparison.describe(redacted_engine(request), old, new, machine, who=str(request.user.pk))
    return render_page(request, "signalbox/versions/version.html", context)


@require("view")
def diff(request: HttpRequest, machine: str) -> HttpResponse:
    """Compare ``?a=1&b=2``, by default the current version with the one before it; ``draft-7`` names a draft."""
    engine, actor = redacted_engine(request), Actor.of(request)
    live = engine.live(machine)
    versions = count_versions(engine, machine, live)
    numbers = [row.version for row in versions.rows]
    b = request.GET.get("b", "") or str(live.version)
    a = request.GET.get("a", "") or str(max((n for n in numbers if n < live.version), default=live.version))
    old, new = comparison.read_side(actor, machine, a), comparison.read_side(actor, machine, b)
    context = comparison.describe(engine, old, new, machine, who=str(request.user.pk)) | {
        "section": "machines", "machine": machine, "live": live, "versions": versions, "now_ms": live.now,
        "choices": comparison.list_sides(actor, machine, numbers),
    }  # fmt: skip
    return render_page(request, "signalbox/versions/diff.html", context)


def _change(request: HttpRequest, machine: str, act: Callable[[Actor, str], str]) -> str | HttpResponse:
    """Change which version new instances get; return what to say of it."""
    reason = request.POST.get("reason", "").strip()
    try:
        if len(reason) > MAX_REASON:
            raise BadInput(f"a reason has at most {MAX_REASON} characters")
        return act(Actor.of(request), reason)
    except ApprovalNeeded as needed:
        try:
            return redirect_to_request(request, needed)
        except BadInput as error:
            return versions_page(request, machine, mistake=f"Not done: {error.message} ({error.code})", status=400)
    except (BadInput, VersionRefused) as error:
        return versions_page(request, machine, mistake=f"Not done: {error.message} ({error.code})", status=409)


def _read_percent(request: HttpRequest) -> float:
    try:
        return float(request.POST.get("percent", ""))
    except ValueError:
        raise BadInput("a percentage of a roll-out is a number from 0 to 100", code="SB631") from None


def _number(request: HttpRequest) -> int:
    if not (number := parse_number(request.POST.get("version", ""))):
        raise BadInput("choose a version")
    return number


@answer_form("versions", "publish", "rollout.set")
def rollout(request: HttpRequest, machine: str) -> str | HttpResponse:
    """Set the percentage of the roll-out, stop it or finish it: the button that was pressed."""

    def act(actor: Actor, reason: str) -> str:
        match request.POST.get("do"):
            case "stop":
                services.stop(actor, machine, reason=reason)
                return "Roll-out stopped: new instances get the version before"
            case "finish":
                services.finish(actor, machine, reason=reason)
                return "Roll-out finished: every new instance gets the version"
            case _:
                percent = _read_percent(request)
                services.set_percent(actor, machine, percent, reason=reason)
                return f"{percent:g} % of new instances get the version"

    return _change(request, machine, act)


@answer_form("versions", "publish", "version.pin")
def pin(request: HttpRequest, machine: str) -> str | HttpResponse:
    """Pin the machine to a version, or unpin it."""

    def act(actor: Actor, reason: str) -> str:
        number = None if request.POST.get("do") == "unpin" else _number(request)
        services.pin(actor, machine, number, reason=reason)
        return "Unpinned" if number is None else f"Pinned to version {number}"

    return _change(request, machine, act)


@answer_form("versions", "publish", "version.withdraw")
def withdraw(request: HttpRequest, machine: str) -> str | HttpResponse:
    """Withdraw a version, or take that back."""

    def act(actor: Actor, reason: str) -> str:
        number, back = _number(request), request.POST.get("do") == "allow"
        services.withdraw(actor, machine, number, withdrawn=not back, reason=reason)
        return f"Version {number} is {'allowed again' if back else 'withdrawn'}"

    return _change(request, machine, act)


@answer_form("versions", "publish", "version.policy")
def policy(request: HttpRequest, machine: str) -> str | HttpResponse:
    """Say which changes of versions take a second person."""

    def act(actor: Actor, reason: str) -> str:
        wanted = [name for name in ACTIONS if name in request.POST.getlist("actions")]
        services.set_policy(actor, machine, wanted, reason=reason)
        return f"A second person approves: {', '.join(wanted)}" if wanted else "The policy asks for no second person"

    return _change(request, machine, act)


SAMPLE = 200  # instances, unless the form says otherwise
MOST = 1000  # instances of one request
SHOWN = 20  # classes of divergences on the page
LISTED = 32  # states or transitions that one picture marks


class ReplayForm(PageForm):
    version = forms.TypedChoiceField(label="on version", coerce=int)
    sample = forms.IntegerField(label="histories", min_value=1, max_value=MOST, initial=SAMPLE)

    def __init__(self, *args: Any, versions: list[int], **kwargs: Any) -> None:
        super().__init__(*args, auto_id="replay-%s", **kwargs)
        choices: Any = self.fields["version"]
        choices.choices = [(number, f"version {number}") for number in versions]


@require("view")
def show_replay(request: HttpRequest, machine: str) -> HttpResponse:
    """Show the form; with ``?version=2&sample=200&run=1`` the divergences by class. Running takes the right to
    operate."""
    engine = redacted_engine(request)
    live = engine.live(machine)
    versions = count_versions(engine, machine, live)
    numbers = [row.version for row in versions.rows]
    given = {"version": request.GET.get("version") or live.version, "sample": request.GET.get("sample") or SAMPLE}
    form = ReplayForm(given, versions=numbers)
    context: dict[str, Any] = {
        "section": "machines", "machine": machine, "live": live, "versions": versions, "form": form, "now_ms": live.now,
        "may_run": allows(request.user, "operate", machine), "most": MOST,
    }  # fmt: skip
    valid = form.is_valid()
    if valid and request.GET.get("run"):
        version, sample = form.cleaned_data["version"], form.cleaned_data["sample"]
        try:
            context |= _present(machine, version, engine.replay(machine, version, sample=sample))
        except BadInput as error:
            context["mistake"] = f"{error.message} ({error.code})"
    return render_page(request, "signalbox/versions/replay.html", context, status=200 if valid else 400)


def _present(machine: str, version: int, found: Replay) -> dict[str, Any]:
    """Return the context of the divergences. Values of data are not shown."""
    rows = [
        {
            "of": each,
            "expected_url": _make_picture_url(machine, each.version, each.expected),
            "actual_url": _make_picture_url(machine, version, each.actual),
            "url": f"{reverse('signalbox:instance', args=[machine, each.example])}?{urlencode({'at': each.step})}",
        }
        for each in found.divergences[:SHOWN]
    ]
    untold = [(UNTOLD.get(reason, reason), count) for reason, count in found.untold.items() if count]
    return {
        "found": found, "divergences": rows, "left_out": len(found.divergences) - len(rows), "untold": untold,
        "differing": sum(each.count for each in found.divergences), "on": version,
    }  # fmt: skip


def _make_picture_url(machine: str, version: int, outcome: StepOutcome) -> str:
    terms = [("version", str(version)), *(("in", name) for name in outcome.configuration[:LISTED])]
    terms += [("taken", id) for id in outcome.transitions[:LISTED]]
    return f"{reverse('signalbox:version-step', args=[machine])}?{urlencode(terms)}"


@require("view")
def picture(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer the diagram of ``?version=`` with the states ``in`` and the transitions ``taken`` highlighted."""
    if not (version := parse_number(request.GET.get("version", ""))):
        raise Http404("A version must be a whole number from 1.")
    view, overlay = version_view.load_version(machine, version, who=str(request.user.pk)), Overlay()
    for part in find_state_parts(view, request.GET.getlist("in")[:LISTED]):
        overlay.mark(part, "current")
    for part in find_transition_parts(view, request.GET.getlist("taken")[:LISTED]):
        overlay.mark(part, "taken")
    return answer_drawing(overlay.draw_on(view.svg), cache="private, max-age=86400")
