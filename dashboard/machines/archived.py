"""The archived instances of a machine: a list, by id prefix, final state and time."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse

from dashboard.shared.diagrams import version_view
from dashboard.shared.list_pages import ListLinks
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from dashboard.shared.times.times import in_ms
from machines.engine.limits import MAX_INSTANCE_ID
from machines.instances.forms import PageForm
from machines.instances.queries import find_archived
from machines.people.actor import Actor
from machines.retention import figures

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
def show(request: HttpRequest, machine: str) -> HttpResponse:
    version = redacted_engine(request).live(machine).version
    view = version_view.load_version(machine, version, who=str(request.user.pk))
    kept = figures.read_kept_figures(machine)
    terms = ArchiveFilter(request.GET, states=kept.states)
    cursor = request.GET.get("cursor") or None
    context: dict[str, Any] = {
        "section": "machines", "view": view, "terms": terms, "kept": kept,
        "retention": figures.read_archive_figures(machine, view.version),
    }  # fmt: skip
    if not terms.is_valid():
        return render_page(request, "signalbox/machines/archived.html", context, status=400)
    page = find_archived(Actor.of(request), machine, **terms.terms(), limit=SIZE, cursor=cursor)
    given = {name: value for name, value in request.GET.items() if name in terms.fields and value}
    context |= {"records": page.records, "narrowed": bool(given)}
    context |= ListLinks("archived", machine, **given).pages("cursor", cursor, page.cursor)
    return render_page(request, "signalbox/machines/archived.html", context)
