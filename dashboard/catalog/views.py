"""One machine: its diagram with live counts, its queues, its instances by state, those that are archived, and the form
for a new one."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import condition, require_safe

from dashboard.instances import instance_list as listings
from dashboard.instances.instance_list import InstanceList
from dashboard.shared import charts, version_view
from dashboard.shared.addresses import parse_number
from dashboard.shared.counts import count_states
from dashboard.shared.diagram_modes import MODES, mode_of
from dashboard.shared.errors.redis_outage import Panels
from dashboard.shared.errors.statuses import status_of
from dashboard.shared.form_views import answer_form
from dashboard.shared.list_pages import ListLinks
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.rendering import answer_drawing, answer_json, render_page
from dashboard.shared.times import in_ms
from machines.audit.redaction import MASK
from machines.catalog.queries import count_missing
from machines.engine import BadInput, Instance, Page, errors, ids
from machines.engine.definitions import Outline
from machines.engine.definitions.reading.machine_settings import ACTOR, IDS
from machines.engine.limits import MAX_INSTANCE_ID
from machines.instances import actions as instance_service
from machines.instances import query_line
from machines.instances.forms import PageForm
from machines.instances.queries import find_archived
from machines.integrations.attached import actions as mirrors
from machines.people.actor import Actor
from machines.people.redaction import redactor_of
from machines.retention import figures

from .diagram import count_errors, draw_machine
from .diagram_figures import ModeReadings, read_coverage, read_rates
from .presenters import Creation, InstanceTable, MachinePage, load_view

MONTH = 30 * 86400  # seconds: a published version never changes


@require("view")
def show(request: HttpRequest, machine: str) -> HttpResponse:
    if wanted := request.GET.get("open"):
        return redirect("signalbox:instance", machine, wanted)
    if "query" in request.GET and (address := listings.read_query(request, machine)):
        return redirect(address)
    return machine_page(request, machine)


def machine_page(
    request: HttpRequest, machine: str, *, creation: Creation | None = None, status: int = 200
) -> HttpResponse:
    """Render the page. ``creation``: a filled form that was not accepted."""
    page = MachinePage(request, machine, creation)
    context = {"page": page, "away": page.away}
    context |= {"now_ms": page.live.now, "missing": count_missing(page.live.missing)}
    return render_page(
        request, "signalbox/machines/machine.html", context, status=400 if page.refused and status == 200 else status
    )


@answer_form("machine", "fire", "create")
def create(request: HttpRequest, machine: str) -> HttpResponse:
    creation = Creation(
        version_view.load_version(machine, redacted_engine(request).live(machine).version), request.POST
    )
    if not creation.is_valid():
        return machine_page(request, machine, creation=creation, status=400)
    given = creation.arguments()
    if not given["id"] and ids.is_id(given["key"]):
        given["id"] = given["key"]  # pressing the button twice makes one instance; any other key does so in the engine
    try:
        made = instance_service.create(Actor.of(request), machine, **given, shows=False)
    except (errors.InstanceExists, errors.BadInput, errors.Refused) as error:
        creation.blame(error)
        return machine_page(request, machine, creation=creation, status=status_of(type(error)))
    messages.success(request, f"{made.id} created, in {made.state}")
    return redirect("signalbox:instance", machine, made.id)


@answer_form("machine", "operate", "machine.reconcile")
def reconcile(request: HttpRequest, machine: str) -> str:
    """Ask for a comparison of a mirrored table."""
    mirrors.request_reconcile(Actor.of(request), machine)
    return "A worker compares all rows with their instances."


@require("view")
def rows(request: HttpRequest, machine: str) -> HttpResponse:
    """Render the instances named by ``row`` that are there, and how many new ones the page would show."""
    engine = redacted_engine(request)
    watched = request.GET.getlist("row")[: listings.SIZE]
    live = engine.live(machine)
    counts = count_states(load_view(request, live), live)
    listing = InstanceList.from_request(request, counts)
    fresh = {one.id for one in listing.read(engine)} if listing.is_first else set()
    known = [one for one in engine.get_many(machine, watched) if isinstance(one, Instance)]
    table = InstanceTable.read_problems(engine, listing, Page(known, None), counts=counts, total=live.total)
    context = {"table": table, "new": len(fresh - set(watched)), "now_ms": live.now}
    return render_page(request, "signalbox/machines/_rows.html", context)


@require("view")
def diagram(request: HttpRequest, machine: str) -> HttpResponse:
    """Answer the diagram of a version, to download or embed.

    ``?version=N``, else the current one; ``&view=top``, ``&view=groups`` or ``&fold=a,b``; ``&mode=age`` with
    the figures of that mode; ``&labels=short`` without guards and actions.
    """
    view = version_view.load_version(
        machine,
        _read_version(request, machine),
        fold=version_view.read_folds(request.GET),
        who=str(request.user.pk),
        full=request.GET.get("labels") != "short",
    )
    if "mode" in request.GET:
        engine = redacted_engine(request)
        mode, live = mode_of(request.GET["mode"]), engine.live(machine)
        own = view.version if request.GET.get("version") else None
        if own is not None and len(engine.versions(machine)) > 1:
            live = replace(live, counts=engine.tally(machine, version=own).counts, oldest={})
        drawing = draw_machine(
            view,
            live,
            None,
            mode,
            ModeReadings(
                count_errors(engine, view, own),
                read_rates(view, live, Panels()) if mode.moving else None,
                read_coverage(view, live) if mode is MODES["tests"] else None,
            ),
            bare=True,
        )
        return answer_drawing(drawing)
    return _answer_drawing(request, view)


def _read_version(request: HttpRequest, machine: str) -> int:
    asked = request.GET.get("version", "")
    if not asked:
        return redacted_engine(request).live(machine).version
    if not (version := parse_number(asked)):
        raise Http404("A version must be a whole number from 1.")
    return version


def _answer_drawing(request: HttpRequest, view: version_view.VersionView) -> HttpResponse:
    def etag(*_: Any) -> str:
        return f'"{view.machine}-{view.version}-{view.fingerprint}"'

    @condition(etag_func=etag)
    def answer(request: HttpRequest) -> HttpResponse:
        return answer_drawing(view.svg, cache=f"private, max-age={MONTH if request.GET.get('version') else 0}")

    return answer(request)


@require("view")
@never_cache
@require_safe
def show_charts(request: HttpRequest, machine: str) -> JsonResponse:
    return JsonResponse(
        charts.of_machine(request, machine, queues=bool(redacted_engine(request).queues(machine))).as_dict()
    )


SIZE = 50  # instances on a page


class ArchiveFilter(PageForm):
    """The terms of an address: ``?id=ATV-&state=Shipped&since=2026-03-01T00:00&until=``, times in the reader's zone."""

    id = forms.CharField(label="id prefix", required=False, max_length=MAX_INSTANCE_ID)
    state = forms.ChoiceField(label="final state", required=False)
    since = forms.DateTimeField(
        label="finished from", required=False, widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )
    until = forms.DateTimeField(
        label="finished before", required=False, widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )

    def __init__(self, *args: Any, states: list[str], **kwargs: Any) -> None:
        super().__init__(*args, auto_id="archived-%s", **kwargs)
        self.fields["state"].choices = [("", "any"), *((state, state) for state in states)]  # type: ignore[attr-defined]

    def terms(self) -> dict[str, Any]:
        """Return what ``Archive.search`` takes."""
        given = self.cleaned_data
        return {
            "prefix": given["id"],
            "state": given["state"],
            "since": in_ms(given["since"]) if given["since"] else None,
            "until": in_ms(given["until"]) if given["until"] else None,
        }


@require("view")
def show_archived(request: HttpRequest, machine: str) -> HttpResponse:
    version = redacted_engine(request).live(machine).version
    view = version_view.load_version(machine, version, who=str(request.user.pk))
    kept = figures.read_kept_figures(machine)
    terms = ArchiveFilter(request.GET, states=kept.states)
    cursor = request.GET.get("cursor") or None
    context: dict[str, Any] = {
        "view": view, "terms": terms, "kept": kept,
        "retention": figures.read_archive_figures(machine, view.version),
    }  # fmt: skip
    if not terms.is_valid():
        return render_page(request, "signalbox/machines/archived.html", context, status=400)
    page = find_archived(Actor.of(request), machine, **terms.terms(), limit=SIZE, cursor=cursor)
    given = {name: value for name, value in request.GET.items() if name in terms.fields and value}
    context |= {"records": page.records, "narrowed": bool(given)}
    context |= ListLinks("archived", machine, **given).pages("cursor", cursor, page.cursor)
    return render_page(request, "signalbox/machines/archived.html", context)


MOST = 20  # suggestions
MOST_HELD = 9  # searches for values that instances hold
LEAST_PART = 2  # characters of a word that stands for the term it is in
TIMES = ("5m", "15m", "1h", "6h", "24h", "7d")
LAST = "\U0010ffff"  # no character is after it
LONGEST = 10  # digits of a number that is suggested
NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{0,6})?")


@require("view")
@require_safe
def suggest(request: HttpRequest, machine: str) -> JsonResponse:
    """Answer ``{"words": [...]}`` for ``?word=state:Wa``: whole terms that the last word of a line may become."""
    word, engine = request.GET.get("word", "")[: query_line.MAX_LINE], redacted_engine(request)
    view = version_view.load_version(machine, engine.live(machine).version)
    hidden = redactor_of(Actor.of(request), machine).fields
    terms = list(_list_terms(word, view.outline, hidden))
    with suppress(BadInput):  # its index is being filled, or nothing can hold the text
        terms += _list_held(engine, word, view.outline, hidden)
    words = [term for term in terms if _is_begun(term, word.lower())]
    if len(word) >= LEAST_PART and not set(":=<>") & set(word):
        named = [
            f"{key}:{query_line.quote(name)}" for key in ("state", "tag") for name in _list_values(key, view.outline)
        ]
        words += [term for term in (*named, *terms) if _is_begun(re.split(r"[:.>]", term, maxsplit=1)[1], word.lower())]
    return answer_json({"words": list(dict.fromkeys(words))[:MOST]})


def _is_begun(term: str, typed: str) -> bool:
    return term.lower().replace('"', "").startswith(typed.replace('"', ""))


def _list_held(engine: RedactedEngine, word: str, outline: Outline, hidden: frozenset[str]) -> Iterator[str]:
    """Yield terms with ids and values that instances hold and that begin as typed, of indexed fields."""
    key, sign, typed = word.replace('"', "").partition(":")
    field = key.removeprefix(query_line.DATA)
    if key == "id" and typed and IDS in outline.index:
        yield from (f"id:{query_line.quote(id)}" for id in engine.find_ids(outline.id, typed, MOST_HELD))
    is_actor = key == "actor"
    if not sign or (ACTOR if is_actor else field) not in outline.index:
        return
    if not is_actor and (key == field or field in hidden):
        return
    types = {kind for known in outline.data if known.name == field and not is_actor for kind in known.types}
    left = MOST_HELD
    for low, high in _list_number_ranges(typed) if types & {"integer", "number"} else [(typed, f"{typed}{LAST}")]:
        bound: dict[str, Any] = {"ge": low} if low != "" else {"gt": ""}
        while left:
            left -= 1
            rule = bound | {"lt": high}
            asked: dict[str, Any] = {"actor": rule} if is_actor else {"where": {field: rule}}
            found = engine.find(outline.id, limit=1, most=1000, seconds=0.1, **asked)
            one = found.instances[0] if found.instances else None
            value = (one.actor if is_actor else one.data.get(field)) if one else None
            if not isinstance(value, str if isinstance(low, str) else int | float) or MASK in str(value):
                break
            text = value if isinstance(value, str) else str(value).removesuffix(".0")
            yield f"{key}:{query_line.quote(text)}"
            bound = {"gt": value}


def _list_number_ranges(typed: str) -> Iterator[tuple[float, float]]:
    """Yield ranges of the numbers that begin as typed: for 1 these are 1, 10 to 19, 100 to 199, and so on."""
    if not typed:
        yield -(10**LONGEST), 10**LONGEST
    elif NUMBER.fullmatch(typed):
        value, step = float(typed), 10.0 ** -len(typed.partition(".")[2])
        for power in range(LONGEST - len(typed)) if "." not in typed and value else (0,):
            yield value * 10**power, (value + step) * 10**power


def _list_terms(word: str, outline: Outline, hidden: frozenset[str]) -> Iterator[str]:
    """Yield terms, whole or up to their sign; those with a value only behind their key."""
    for key in query_line.KEYS:
        sign = ">" if key == "age" else ":"
        if not word.lower().startswith(f"{key}{sign}"):
            yield f"{key}{sign}"
            continue
        yield from (f"{key}{sign}{query_line.quote(value)}" for value in _list_values(key, outline))
    for field in outline.data:
        if field.name in hidden:
            continue
        name = f"{query_line.DATA}{field.name}"
        if "boolean" in field.types:
            yield from (f"{name}:true", f"{name}:false")
        else:
            yield f"{name}:"
            if "integer" in field.types or "number" in field.types:
                yield from (f"{name}>", f"{name}<")


def _list_values(key: str, outline: Outline) -> Iterator[str]:
    if key == "state":
        yield from (state.name for state in outline.states if state.type != "history" and state.name != outline.root)
    elif key == "tag":
        yield from (tag for state in outline.states for tag in state.tags)
    elif key in ("age", "created"):
        yield from TIMES
    elif key == "suspended":
        yield from ("yes", "no")
    elif key == "error":
        yield "any"
