"""The history of an instance: replayed on its page, and as CSV or JSON, redacted as there. An archived instance has the
same.

Each step has its event twice: by its name (``after.t14``), and in the words of the page (``after 45 s``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_safe

from dashboard.shared.addresses import REVISION_DIGITS, find_page_address, parse_number
from dashboard.shared.csv_export import Export, list_json, list_lines, name_file, stream_csv, stream_json
from dashboard.shared.permissions import require_audited
from dashboard.shared.times import format_iso
from dashboard.shared.version_view import NO_VIEW, VersionView, load_versions, load_versions_of
from machines.diagrams import EventWords
from machines.engine import BadInput, Instance, LookupFailed, Step, limits
from machines.engine.definitions import Outline
from machines.instances import queries
from machines.people.actor import Actor

NAMES = (
    "revision", "at", "event", "from", "to", "transitions", "actor", "reason", "payload", "changes", "words", "version",
)  # fmt: skip
COLUMNS = {name: itemgetter(name) for name in NAMES}


@require_audited("view", "export")
@require_safe
def export_csv(request: HttpRequest, machine: str, id: str) -> StreamingHttpResponse:
    """Send all stored steps as CSV, the newest first."""
    export, rows = _read_rows(request, machine, id)
    lines = list_lines(COLUMNS, ([_make_cells(row)] for row in rows))
    return stream_csv(export, lines, name_file(f"{machine}-{id}-history.csv"))


@require_audited("view", "export")
@require_safe
def export_json(request: HttpRequest, machine: str, id: str) -> StreamingHttpResponse:
    """Send all stored steps as JSON, the newest first."""
    export, rows = _read_rows(request, machine, id)
    lines = list_json({"machine": machine, "instance": id}, "steps", ([row] for row in rows))
    return stream_json(export, lines, name_file(f"{machine}-{id}-history.json"))


def _read_rows(request: HttpRequest, machine: str, id: str) -> tuple[Export, Iterator[dict[str, Any]]]:
    """Read the steps at once, so that what cannot be read is a page that says so and not half a file."""
    actor = Actor.of(request)
    instance = queries.get(actor, machine, id)
    steps = queries.history(actor, machine, id, limit=limits.MAX_HISTORY)
    versions = trace_versions(instance, steps)
    words = HistoryWords(machine, instance.version, _load_outline(machine, instance.version), versions)
    export = Export(request, NAMES, len(steps), {"machine": machine, "instance": id})
    return export, (_make_row(step, words, versions) for step in steps)


def _load_outline(machine: str, version: int) -> Outline | None:
    """Load an outline; None for a version that is gone."""
    try:
        return load_versions({machine: version})[machine].outline
    except LookupFailed:
        return None


def _make_row(step: Step, words: HistoryWords, versions: dict[int, int]) -> dict[str, Any]:
    return {
        "revision": step.revision,
        "at": format_iso(step.at),
        "event": step.event,
        "from": step.source,
        "to": step.configuration,
        "transitions": step.transitions,
        "actor": step.actor,
        "reason": step.reason,
        "payload": step.payload,
        "changes": step.changes,
        "words": words.describe(step),
        "version": step.version or versions.get(step.revision),
    }


def _make_cells(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with texts in place of lists and objects."""
    return row | {
        "from": ", ".join(row["from"] or ()),
        "to": ", ".join(row["to"]),
        "transitions": " ".join(row["transitions"]),
        "payload": _compact(row["payload"]),
        "changes": _compact(row["changes"]),
    }


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""


class HistoryWords:
    """Holds the words of the versions in a history. ``versions``: revision -> version, where the step does not say."""

    def __init__(
        self, machine: str, version: int, outline: Outline | None, versions: Mapping[int, int] | None = None
    ) -> None:
        """Set up the words. ``version``, ``outline``: those that the instance has now."""
        self._machine = machine
        self._version = version
        self._versions = versions or {}
        self._words = {version: EventWords(outline)}
        self._load(set(self._versions.values()))

    def describe(self, step: Step) -> str:
        """Return ``after 45 s`` for the event ``after.t14``; the event's own name where a person or program sent it."""
        version = self._versions.get(step.revision) or step.version or self._version
        if version not in self._words:
            self._load({version})
        return self._words[version].describe(step.event, step.payload)

    def _load(self, versions: Collection[int]) -> None:
        missing = [version for version in versions if version not in self._words]
        if not missing:
            return
        try:
            plans = load_versions_of(self._machine, missing)
        except LookupFailed:  # a version that is gone: general words
            plans = {}
        for version in missing:
            self._words[version] = EventWords(plans[version].outline if version in plans else None)


MAX_STEPS = 500  # steps a page can go back to, at most
MIGRATE = "(migrate)"  # event of a step that moved the instance to another version


@dataclass(frozen=True, slots=True)
class FieldValue:
    """Holds a data field at one revision.

    ``known`` is False if the step that set it is no longer kept; ``present`` is False if it was not set.
    """

    known: bool = True
    present: bool = True
    value: Any = None


@dataclass(frozen=True, slots=True)
class FieldChange:
    """Holds a data field at two revisions, the earlier one first."""

    name: str
    description: str
    before: FieldValue
    after: FieldValue

    @property
    def differs(self) -> bool:
        return self.before.known and self.before != self.after


@dataclass(frozen=True, slots=True)
class Replay:
    """Holds what the page shows of the past. ``steps``: those that are kept, newest first; ``view``: the version that
    the instance had at the revision shown.

    ``at``: the step that led to the revision shown, None for now; ``other``: the step it is compared with, None for
    now; ``lost``: requested revisions that are not kept, or do not exist yet.
    """

    view: VersionView
    instance: Instance
    steps: Sequence[Step]
    at: Step | None = None
    other: Step | None = None
    lost: tuple[int, ...] = ()
    words: HistoryWords | None = None

    @classmethod
    def from_request(cls, request: HttpRequest, view: VersionView, instance: Instance, steps: Sequence[Step]) -> Replay:
        """Read ``?at=12&with=7``, both revisions. Raise BadInput if one is not a number."""
        kept = {step.revision: step for step in steps if step.revision <= instance.revision}
        wanted = {name: read_revision(request, name) for name in ("at", "with")}
        at, other = (None if revision is None else kept.get(revision) for revision in wanted.values())
        lost = tuple(revision for revision in wanted.values() if revision is not None and revision not in kept)
        words = HistoryWords(view.machine, view.version, view.outline, trace_versions(instance, list(kept.values())))
        return cls(view, instance, list(kept.values()), at, other if at else None, lost, words)

    @property
    def version(self) -> int:
        """Return the version that the instance had at the revision shown."""
        return self.versions.get(self.at.revision, self.instance.version) if self.at else self.instance.version

    @property
    def versions(self) -> dict[int, int]:
        """Return revision -> the version that the instance had after that step."""
        return trace_versions(self.instance, self.steps)

    @property
    def moved(self) -> bool:
        """Return whether the history shown is of more than one version."""
        return len(set(self.versions.values())) > 1

    @property
    def cut(self) -> bool:
        """Return whether older steps are no longer kept."""
        return bool(self.steps) and self.oldest > 1

    @property
    def oldest(self) -> int:
        return self.steps[-1].revision if self.steps else self.instance.revision

    @property
    def latest(self) -> int:
        return self.steps[0].revision if self.steps else self.instance.revision

    @property
    def shown(self) -> int:
        return self.at.revision if self.at else self.latest

    @property
    def since(self) -> int:
        """Return the number of steps after the revision shown."""
        return self.instance.revision - self.shown

    @property
    def earlier(self) -> Step | None:
        """Return the earlier of the two revisions that are compared."""
        pair = [step for step in (self.at, self.other) if step]
        return min(pair, key=lambda step: step.revision) if pair else None

    @property
    def later(self) -> Step | None:
        """Return the later of the two revisions that are compared; None for now."""
        pair = [step for step in (self.at, self.other) if step]
        return max(pair, key=lambda step: step.revision) if len(pair) > 1 else None

    @property
    def rows(self) -> list[FieldChange]:
        """List every declared field at the two revisions."""
        return [
            FieldChange(
                field.name,
                field.description,
                self.datum(field.name, self.earlier and self.earlier.revision),
                self.datum(field.name, self.later and self.later.revision),
            )
            for field in self.view.outline.data
        ]

    @property
    def differing(self) -> int:
        return sum(row.differs for row in self.rows)

    def datum(self, name: str, revision: int | None) -> FieldValue:
        """Return a field at a revision, by the changes of the steps; its current value for None."""
        now = FieldValue(present=name in self.instance.data, value=self.instance.data.get(name))
        if revision is None:
            return now
        set_by = [step for step in self.steps if name in step.changes]
        before = next((step for step in set_by if step.revision <= revision), None)
        if before is not None:
            value = before.changes[name]
            return FieldValue(present=value is not None, value=value)
        if not set_by:
            return now
        return FieldValue(known=not self.cut, present=False)

    def places(self, step: Step) -> list[str]:
        return [place.name for place in self.view.places(step.configuration)]

    @property
    def trail(self) -> list[dict[str, Any]]:
        """Return the steps as the slider says them, oldest first."""
        return [
            {
                "revision": step.revision,
                "words": self.words.describe(step) if self.words else step.event,
                "state": ", ".join(step.configuration),
            }
            for step in reversed(self.steps)
        ]

    # ---- addresses

    def url(self, **changes: Any) -> str:
        """Return the address of this page with changed terms."""
        terms: dict[str, Any] = {
            **self.view.terms,
            "at": self.at and self.at.revision,
            "with": self.other and self.other.revision,
        }
        query = urlencode({name: term for name, term in (terms | changes).items() if term})
        address = find_page_address("signalbox:instance", self.instance.machine, self.instance.id)
        return f"{address}?{query}" if query else address

    @property
    def views(self) -> list[tuple[str, str]]:
        return [(label, self.drawing_url(view)) for label, view in self.view.views]

    def drawing_url(self, view: Mapping[str, str]) -> str:
        """Return the address of this page with another drawing."""
        return self.url(**(NO_VIEW | dict(view)))

    @property
    def now_url(self) -> str:
        return self.url(at=None, **{"with": None})

    @property
    def back_url(self) -> str:
        return self.url(at=max(self.oldest, self.shown - 1))

    @property
    def on_url(self) -> str:
        return self.url(at=self.shown + 1) if self.shown < self.latest else self.now_url


def trace_versions(instance: Instance, steps: Sequence[Step]) -> dict[int, int]:
    """Return revision -> the version that the instance had after that step, from the moves in its history.

    ``steps``: newest first. A step ``(migrate)`` names the version before it in its payload.
    """
    version, found = instance.version, {}
    for step in steps:
        found[step.revision] = version
        before = step.payload.get("from") if step.event == MIGRATE and step.payload else None
        if isinstance(before, int) and before > 0:
            version = before
    return found


def read_revision(request: HttpRequest, name: str) -> int | None:
    """Read a revision from the query; None if there is none. Raise BadInput if it is not a number."""
    asked = request.GET.get(name, "")
    if not asked:
        return None
    if (revision := parse_number(asked, REVISION_DIGITS)) is None:
        raise BadInput(f"{asked[:100]!r} is not a revision; a revision is a whole number")
    return revision
