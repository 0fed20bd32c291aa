"""The versions of a machine side by side, one version, what differs between two, who gets which version, what a version
would have done with past steps, and drafts."""

from functools import partial
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.shared import version_view
from dashboard.shared.addresses import parse_number
from dashboard.shared.counts import count_versions, describe_versions
from dashboard.shared.form_views import answer_form
from dashboard.shared.permissions import find_of_machine, require, require_audited
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import answer_drawing, render_page
from dashboard.shared.version_view import Overlay
from machines.approvals import queries as approval_queries
from machines.catalog import offload
from machines.catalog.errors import DraftChanged, DraftClosed, DraftConflict
from machines.catalog.queries import count_missing
from machines.catalog.version_rules import ACTIONS, OPERATIONS
from machines.catalog.versions import drafts
from machines.catalog.versions import rollouts as services
from machines.engine import BadInput, DefinitionError, Replay
from machines.engine.errors import VersionRefused
from machines.engine.limits import MAX_REASON
from machines.engine.versions.records import UNTOLD, StepOutcome
from machines.instances import plans
from machines.instances.forms import PageForm
from machines.models import Draft, StoredPlan
from machines.people.actor import Actor
from machines.people.permissions import allows

from . import presenters
from .presenters import DRAFT, Side, list_versions, present_choice

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
        "machine": machine, "live": live, "versions": versions, "now_ms": live.now,
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
        old, new = (presenters.read_side(actor, machine, str(each)) for each in (before, number))
        context |= presenters.describe(redacted_engine(request), old, new, machine, who=str(request.user.pk))
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
    old, new = presenters.read_side(actor, machine, a), presenters.read_side(actor, machine, b)
    context = presenters.describe(engine, old, new, machine, who=str(request.user.pk)) | {
        "machine": machine, "live": live, "versions": versions, "now_ms": live.now,
        "choices": presenters.list_sides(actor, machine, numbers),
    }  # fmt: skip
    return render_page(request, "signalbox/versions/diff.html", context)


_answer_change = partial(answer_form, "versions", "publish", shown=(BadInput, VersionRefused), render=versions_page)
"""Makes the view of a form that changes which version new instances get."""


def _read_reason(request: HttpRequest) -> str:
    reason = request.POST.get("reason", "").strip()
    if len(reason) > MAX_REASON:
        raise BadInput(f"a reason has at most {MAX_REASON} characters")
    return reason


def _read_percent(request: HttpRequest) -> float:
    try:
        return float(request.POST.get("percent", ""))
    except ValueError:
        raise BadInput("a percentage of a roll-out is a number from 0 to 100", code="SB631") from None


def _number(request: HttpRequest) -> int:
    if not (number := parse_number(request.POST.get("version", ""))):
        raise BadInput("choose a version")
    return number


@_answer_change("rollout.set")
def rollout(request: HttpRequest, machine: str) -> str:
    """Set the percentage of the roll-out, stop it or finish it: the button that was pressed."""
    actor, reason = Actor.of(request), _read_reason(request)
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


@_answer_change("version.pin")
def pin(request: HttpRequest, machine: str) -> str:
    """Pin the machine to a version, or unpin it."""
    reason, number = _read_reason(request), None if request.POST.get("do") == "unpin" else _number(request)
    services.pin(Actor.of(request), machine, number, reason=reason)
    return "Unpinned" if number is None else f"Pinned to version {number}"


@_answer_change("version.withdraw")
def withdraw(request: HttpRequest, machine: str) -> str:
    """Withdraw a version, or take that back."""
    reason, number, back = _read_reason(request), _number(request), request.POST.get("do") == "allow"
    services.withdraw(Actor.of(request), machine, number, withdrawn=not back, reason=reason)
    return f"Version {number} is {'allowed again' if back else 'withdrawn'}"


@_answer_change("version.policy")
def policy(request: HttpRequest, machine: str) -> str:
    """Say which changes of versions take a second person."""
    reason, wanted = _read_reason(request), [name for name in ACTIONS if name in request.POST.getlist("actions")]
    approvers = {name: terms for name in wanted if (terms := _read_approvers(request, name))}
    services.set_policy(Actor.of(request), machine, wanted, approvers=approvers, reason=reason)
    return f"A second person approves: {', '.join(wanted)}" if wanted else "The policy asks for no second person"


def _read_approvers(request: HttpRequest, action: str) -> dict[str, Any]:
    given = {key: request.POST.get(f"{action}-{key}", "").strip() for key in ("group", "quorum", "expires")}
    found: dict[str, Any] = {key: text for key, text in given.items() if text}
    return found | ({"quorum": parse_number(given["quorum"]) or 0} if given["quorum"] else {})


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
        "machine": machine, "live": live, "versions": versions, "form": form, "now_ms": live.now,
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
    overlay.highlight(view, request.GET.getlist("in")[:LISTED], request.GET.getlist("taken")[:LISTED])
    return answer_drawing(overlay.draw_on(view.svg), cache="private, max-age=86400")


class PublishForm(PageForm):
    rollout = forms.FloatField(
        label="percent of new instances", required=False, min_value=0, max_value=100, help_text="empty or 100: all"
    )
    reason = forms.CharField(label="note of the version", required=False, max_length=MAX_REASON)
    expect = forms.IntegerField(widget=forms.HiddenInput)


@require_audited("publish", "draft.save", target="id")
def show_draft(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    return draft_page(request, machine, id)


def _get(request: HttpRequest, machine: str, id: int) -> Draft:
    """Return a draft of this machine. Raises Http404."""
    return find_of_machine(lambda: drafts.get(Actor.of(request), id), machine, "draft")


def draft_page(
    request: HttpRequest,
    machine: str,
    id: int,
    *,
    form: PublishForm | None = None,
    mistake: str = "",
    status: int = 200,
) -> HttpResponse:
    """Render a draft: its findings, what it changes, and how to publish it."""
    draft, actor = _get(request, machine, id), Actor.of(request)
    known = describe_versions(redacted_engine(request), machine)
    try:
        check = drafts.check(actor, id)
    except offload.OffloadError as error:
        check, mistake = None, mistake or str(error)
    form = form or PublishForm(initial={"rollout": 5, "reason": draft.note, "expect": draft.revision})
    if known["live"] is None:
        del form.fields["rollout"]  # a first version is that of all
    context: dict[str, Any] = {
        "machine": machine, "draft": draft, "check": check, "form": form, "mistake": mistake, **known,
        "requests": approval_queries.find_open().filter(machine=machine, action="publish", target=f"draft {id}"),
    }  # fmt: skip
    found = check and check.submission
    if found and found.definition is not None and not found.errors and draft.base is not None and draft.is_open:
        old = presenters.read_side(actor, machine, str(draft.base))
        new = Side(f"{DRAFT}{id}", f"draft {id}", found.definition, draft=id)
        context |= presenters.describe(redacted_engine(request), old, new, machine, who=str(request.user.pk))
    return render_page(request, "signalbox/versions/draft.html", context, status=status)


CHANGED = (DraftConflict, DraftChanged, DraftClosed)


@answer_form("draft", "publish", "publish", target="id")
def publish(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    """Publish a draft, to a share of new instances or to all."""
    draft, form = _get(request, machine, id), PublishForm(request.POST)
    if not form.is_valid():
        return draft_page(request, machine, id, form=form, status=400)
    given = form.cleaned_data
    percent = given["rollout"] if given["rollout"] is not None and given["rollout"] < 100 else None
    if machine not in redacted_engine(request).machines():
        percent = None
    try:
        version = drafts.publish(
            Actor.of(request), draft.pk, reason=given["reason"], rollout=percent, expect=given["expect"]
        )
    except DefinitionError as error:
        first = next((one for one in error.findings if one.is_error), error.findings[0])
        mistake = f"The draft has errors: {first.message}"
        return draft_page(request, machine, id, form=form, mistake=mistake, status=400)
    except (*CHANGED, BadInput) as error:
        return draft_page(request, machine, id, form=form, mistake=f"{error.message} ({error.code})", status=409)
    messages.success(request, f"Version {version.number} published" + _describe_share(percent))
    return redirect("signalbox:version", machine, version.number)


def _describe_share(percent: float | None) -> str:
    if percent is None:
        return ": every new instance gets it"
    return f": {percent:g} % of new instances get it" if percent else ": no new instance gets it yet"


@answer_form("draft", "publish", "draft.rebase", shown=CHANGED, render=draft_page, target="id")
def rebase(request: HttpRequest, machine: str, id: int) -> str | HttpResponse:
    """Say that the draft was compared with the current version, and is to replace it."""
    if not (onto := parse_number(request.POST.get("onto", ""))):
        return redirect("signalbox:draft", machine, id)
    drafts.rebase(Actor.of(request), _get(request, machine, id).pk, onto=onto)
    return f"Rebased: draft {id}"


@answer_form("draft", "publish", "draft.discard", shown=CHANGED, render=draft_page, target="id")
def discard(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    drafts.discard(Actor.of(request), _get(request, machine, id).pk)
    messages.success(request, f"Discarded: draft {id}")
    known = machine in redacted_engine(request).machines()
    return redirect("signalbox:versions", machine) if known else redirect("signalbox:overview")
