"""Presents a machine: its diagram with figures, the list of its instances, and what else stands on its page."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django import forms
from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.safestring import SafeString

from dashboard.instances.instance_list import InstanceList, read_page
from dashboard.shared import charts, version_view
from dashboard.shared.addresses import find_page_address, list_saved_views, parse_number
from dashboard.shared.counts import (
    Elsewhere,
    StateCount,
    StateCounts,
    VersionCount,
    count_states,
    count_versions,
    find_elsewhere,
)
from dashboard.shared.diagram_modes import MODES, mode_of
from dashboard.shared.errors.redis_outage import Panels
from dashboard.shared.errors.statuses import MISTAKE
from dashboard.shared.form_views import make_key
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.version_view import VersionView
from machines.catalog.queries import outline_of
from machines.engine import (
    IndexProgress,
    Live,
    Page,
    Problem,
    Tally,
    errors,
)
from machines.instances.actions import propose_id
from machines.instances.forms import REASON_LIMIT, PageForm, TypedForm
from machines.integrations.attached import actions as mirrors
from machines.integrations.attached.reconcile import Report as MirrorReport
from machines.integrations.binding.models import Reconciliation
from machines.people.actor import Actor
from machines.people.permissions import Scope, allows, scope_of
from machines.retention import figures

from .diagram import count_errors, draw_machine
from .diagram_figures import CoverageFigures, ModeReadings, read_coverage, read_rates


class CreateForm(PageForm):
    id = forms.CharField(max_length=200, required=False, strip=False)
    reason = forms.CharField(max_length=REASON_LIMIT, required=False)
    key = forms.CharField(max_length=64, required=False, widget=forms.HiddenInput)

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, auto_id="create-%s")


class Creation:
    """Combines the forms of a new instance. ``code``: the code of the last error."""

    def __init__(self, view: VersionView, sent: Mapping[str, Any] | None = None) -> None:
        self.view = view
        self.form = CreateForm(sent)
        self.data = TypedForm(view.outline.data, prefix="data", id_prefix="new", data=sent)
        self.key = (sent.get("key") if sent else "") or propose_id() or make_key()
        self.code = MISTAKE

    def is_valid(self) -> bool:
        # Both run, so that all errors are shown at once.
        return all([self.form.is_valid(), self.data.is_valid()])

    @property
    def has_mistakes(self) -> bool:
        return bool(self.form.errors or self.data.errors)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``Engine.create`` that were entered. Call it after ``is_valid()``."""
        cleaned = self.form.cleaned_data
        return {
            "id": cleaned["id"] or None,
            "data": self.data.values() or None,
            "key": cleaned["key"] or None,
            "reason": cleaned["reason"],
        }

    def blame(self, error: errors.SignalboxError) -> None:
        """Add an error of the engine to its field. The key was not used: it stays valid."""
        self.code = error.code
        if isinstance(error, errors.BadPayload):
            self.data.blame(error.field, error.message)
        else:
            self.form.add_error("id", error.message)


log = logging.getLogger(__name__)

ANY = "*"


@dataclass(frozen=True, slots=True)
class Sender:
    """Holds a sender. ``url`` is empty if the viewer may not open it, or if it is no single machine."""

    name: str
    why: str
    url: str = ""


def list_senders(accepts: Iterable[str], scope: Scope) -> list[Sender]:
    """List the accepted senders. ``accepts``: those of the current version."""
    found = [Sender("itself, parents and children", "always")]
    for name in accepts:
        if name == ANY:
            found.append(Sender("any machine", "everyone who may publish it"))
        else:
            url = find_page_address("signalbox:machine", name) if name in scope else ""
            found.append(Sender(name, "named by the definition", url))
    return found


@dataclass(frozen=True, slots=True)
class InstanceTable:
    """Holds a page of the list of instances. ``wrong``: the problems of each instance; ``total``: of the machine;
    ``refused``: the filter is invalid."""

    listing: InstanceList
    page: Page
    counts: StateCounts
    total: int
    wrong: dict[str, list[Problem]]
    refused: bool = False

    @property
    def found(self) -> int:
        """Return how many instances the list has on all pages."""
        block = self.counts.block(self.listing.state) if self.listing.state else None
        return block.count if block else self.counts.total

    @classmethod
    def read_problems(cls, engine: RedactedEngine, listing: InstanceList, page: Page, **facts: Any) -> InstanceTable:
        """Make the table of a page that was read."""
        return cls(listing, page, wrong=engine.problems(listing.machine, [one.id for one in page]), **facts)


class MachinePage:
    """Presents a machine to the person of a request. ``creation``: a filled form that was not accepted.

    ``?figures``: what the page's script reads anew while instances move, without list, charts and forms.
    """

    def __init__(self, request: HttpRequest, machine: str, creation: Creation | None = None) -> None:
        self._request, self._machine, self._engine = request, machine, redacted_engine(request)
        self.live = self._engine.live(machine)
        self.view = load_view(request, self.live)
        self.versions = count_versions(self._engine, machine, self.live)
        self.listing = InstanceList.from_request(request, count_states(self.view, self.live), strict=False)
        page, self._tally, self.mistake = read_page(self.listing, self._engine)
        self.counts = count_found(self.view, self.live, self.listing, self._tally)
        self.refused = self.mistake is not None or bool(self.listing.filter.mistakes)
        self.table = InstanceTable.read_problems(
            self._engine, self.listing, page, counts=self.counts, total=self.live.total, refused=self.refused
        )
        self.mode, self.modes, self._panels = mode_of(self.listing.mode), MODES.values(), Panels()
        self.rates = read_rates(self.view, self.live, self._panels) if self.mode.moving else None
        self.away = self._panels.away
        self.figures_only = "figures" in request.GET
        self.creation = creation or (None if self.figures_only else self._make_blank_form())

    def _make_blank_form(self) -> Creation | None:
        """Return the form for a new instance, which has the current version, to whom may create one."""
        view, current = self.view, self.live.version
        if view.is_mirror or view.is_system or not allows(self._request.user, "fire", self._machine):
            return None
        return Creation(view if view.version == current else version_view.load_version(self._machine, current))

    # The head

    @property
    def has_timers(self) -> bool:
        declared = any(t.delay for state in self.view.outline.states for t in state.transitions)
        return self.live.timers > 0 or declared

    # The diagram

    @property
    def switch(self) -> list[VersionCount]:
        """List the versions to choose from."""
        chosen = self.view.version if self.view.chosen else None
        return self.versions.switch(chosen) if self.versions.several else []

    @cached_property
    def elsewhere(self) -> list[Elsewhere]:
        return find_elsewhere(self.view, self.live, self.versions)

    @property
    def views(self) -> list[tuple[str, str]]:
        return [(label, self.listing.url(**(version_view.NO_VIEW | view))) for label, view in self.view.views]

    @cached_property
    def coverage(self) -> CoverageFigures | None:
        return read_coverage(self.view, self.live) if self.mode is MODES["tests"] else None

    @cached_property
    def in_error(self) -> dict[str, int]:
        return count_errors(self._engine, self.view, self.view.version if self.view.chosen else None)

    @cached_property
    def drawing(self) -> SafeString:
        live, tally, listing = self.live, self._tally, self.listing
        oldest = {} if self.view.chosen else live.oldest
        return draw_machine(
            self.view,
            live if tally is None else replace(live, counts=tally.counts, oldest=oldest),
            listing.state,
            self.mode,
            ModeReadings(self.in_error, self.rates, self.coverage, self.counts.partial),
            search={name: text for name, text in listing.filter.texts.items() if name != "state"},
        )

    # The list

    @property
    def tabs(self) -> list[StateCount]:
        return self.counts.tabs(self.listing.state)

    @cached_property
    def index_progress(self) -> IndexProgress | None:
        return self._engine.index_progress(self._machine)

    @cached_property
    def saved(self) -> dict[str, object]:
        own = reverse("signalbox:machine", args=[self._machine])
        return list_saved_views(self._request, own, self.listing.query)

    # Beside it

    @cached_property
    def metrics(self) -> charts.Charts:
        return charts.of_machine(self._request, self._machine, queues=bool(self.counts.depths))

    @cached_property
    def accepts(self) -> list[Sender]:
        current = self.live.version
        known = self.view.outline if self.view.version == current else outline_of(self._machine, current)
        return list_senders(known.accepts or (), scope_of(self._request.user))

    @cached_property
    def mirror(self) -> tuple[Reconciliation, MirrorReport]:
        return mirrors.describe_mirror(Actor.of(self._request), self._machine)

    @cached_property
    def retention(self) -> figures.ArchiveFigures:
        return figures.read_archive_figures(self._machine, self.live.version)


def load_view(request: HttpRequest, live: Live) -> VersionView:
    """Load the version that the address names, else the current one. Raise Http404 for one that is not there."""
    machine, fold, who = live.machine, version_view.read_folds(request.GET), str(request.user.pk)
    if asked := parse_number(request.GET.get("version", "").strip()):
        try:
            return replace(version_view.load_version(machine, asked, fold=fold, who=who), chosen=True)
        except errors.LookupFailed:
            raise Http404(f"Machine {machine} has no version {asked}.") from None
    return version_view.load_version(machine, live.version, fold=fold, who=who)


def count_found(view: VersionView, live: Live, listing: InstanceList, tally: Tally | None) -> StateCounts:
    """Count the instances that a list finds by state. ``tally``: of its filter; None where it has none."""
    partial = tally is not None and not tally.complete
    if tally is not None:  # the oldest instance of each state is then unknown
        live = replace(live, counts=tally.counts, total=tally.total, oldest={})
    return count_states(view, live, partial=partial, named=listing.state)
