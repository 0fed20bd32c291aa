"""Compares the rows of a field with the instances of its machine, and mends: Redis decides."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from machines.catalog.queries import every_outline, outline_of, read_current_row
from machines.engine import BadPayload, Conflict, Engine, Instance, SignalboxError, UnknownInstance, UnknownMachine
from machines.engine.definitions import Outline
from machines.engine.search.page_merge import find_pages

from ..comparison import EQUAL, MISSING, PAGE, ROWLESS, Comparison
from . import following, outbox, state_columns
from .errors import ColumnGone

if TYPE_CHECKING:
    from .field import MachineField
    from .state_columns import Columns

log = logging.getLogger(__name__)

BEHIND, AHEAD, EDITED, OUTDATED, GONE, UNREAD, NO_ID = (
    "behind", "ahead", "edited", "outdated", "gone", "not read", "no id",
)  # fmt: skip
MEANINGS = {
    EQUAL: "the row says what the instance says",
    BEHIND: "the row was at an earlier revision",
    AHEAD: "the row was at a later revision: Redis went back, or the instance was made anew",
    EDITED: "the row said another state at the same revision: it was edited by hand",
    OUTDATED: "the instance had other values than the columns that it follows: update() or SQL changed them",
    MISSING: "the row had no instance yet",
    GONE: "the instance has ended and was let go, or was deleted: the row keeps its state",
    ROWLESS: "the instance has no row",
    UNREAD: "the instance could not be read",
    NO_ID: "the row's value of the id field can be no instance's id: it has no instance",
}
MENDED = (BEHIND, AHEAD, EDITED, OUTDATED, MISSING)


@dataclass
class Report(Comparison):
    """What was found of a field. ``lost``: rows whose instance is gone and had not ended, by their state;
    ``recreated``: how many got a new one."""

    meanings = MEANINGS
    lost: int = 0
    recreated: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def differences(self) -> int:
        """Count what can be mended, and was found different."""
        return sum(self.counts[kind] for kind in MENDED)

    @property
    def left(self) -> int:
        """Count the differences that are still there, and what could not be read."""
        return self.differences - self.mended + self.counts[UNREAD] + self.counts[NO_ID]


def classify(field: MachineField, seen: Columns, live: Instance | SignalboxError) -> str:
    """Name the difference between a row and its instance."""
    if isinstance(live, UnknownInstance):
        return GONE if seen.revision else MISSING
    if isinstance(live, SignalboxError):
        return UNREAD
    if seen.revision != live.revision:
        return BEHIND if seen.revision < live.revision else AHEAD
    return EQUAL if seen.state == state_columns.column_text(field, live.state) else EDITED


def mend(
    engine: Engine, field: MachineField, rows: Mapping[str, Columns], using: str, report: Report | None = None
) -> dict[str, str]:
    """Compare these rows with their instances and write what differs, unless it moved meanwhile; return the kind of
    each row's difference. A ``report`` gets that, too; a dry run writes nothing."""
    found, kinds = report or Report(), {}
    instances = engine.get_many(field.machine, rows)
    followed = _read_followed(field, rows, using, found)
    for (id, seen), live in zip(rows.items(), instances, strict=True):
        changes: Mapping[str, Any] = {}
        kind = classify(field, seen, live)
        if isinstance(live, Instance) and (changes := following.list_differences(field, live, followed.get(id, {}))):
            kind = OUTDATED if kind == EQUAL else kind
        kinds[id] = kind
        found.add(kind, _describe(id, seen, live, changes))
        if isinstance(live, Instance) and kind in MENDED and not isinstance(found, DryRun):
            done = _write_columns(field, kind, live, using, seen) or _has_moved(field, id, seen, using)
            found.mended += done and (not changes or _bring_up(field, id, using, found))
    return kinds


def _write_columns(field: MachineField, kind: str, live: Instance, using: str, seen: Columns) -> bool:
    """Write the two columns of a row; tell whether they say what the instance says."""
    if kind == OUTDATED:
        return True
    if kind == BEHIND:
        return state_columns.advance(field, live.id, live.state, live.revision, using)
    return state_columns.replace(field, live.id, live.state, live.revision, using, seen=seen)


def _read_followed(field: MachineField, ids: Iterable[str], using: str, report: Report) -> dict[str, dict[str, Any]]:
    try:
        return following.read(field, ids, using)
    except ColumnGone as error:  # states and revisions are compared without it
        if error.message not in report.errors:
            report.errors.append(error.message)
        return {}


def _bring_up(field: MachineField, id: str, using: str, report: Report) -> bool:
    """Write the columns that a field follows into an instance; tell whether it has them now."""
    try:
        following.follow(field, id, using)
    except (BadPayload, Conflict, UnknownInstance) as error:
        report.errors.append(f"{id}: {error.message}")
        return False
    return True


def _has_moved(field: MachineField, id: str, seen: Columns, using: str) -> bool:
    """Tell whether another process wrote the row meanwhile: then it is that one's to be right."""
    return state_columns.read(field, [id], using).get(id) != seen


def _describe(id: str, seen: Columns, live: Instance | SignalboxError, changes: Iterable[str]) -> str:
    if isinstance(live, SignalboxError):
        text = "no instance" if isinstance(live, UnknownInstance) else live.message
    else:
        text = f"{live.state}, revision {live.revision}"
        text += f"; outdated: {', '.join(changes)}" if changes else ""
    return f"{id}: the row says {seen.state or 'nothing'}, revision {seen.revision}; the engine: {text}"


class DryRun(Report):
    """A report of a comparison that changes nothing."""


class Reconcile:
    """One comparison of all rows with all instances, page by page."""

    def __init__(
        self, engine: Engine, field: MachineField, *, dry_run: bool = False, create_missing: bool = False
    ) -> None:
        self._engine = engine
        self._field = field
        self._create_missing = create_missing
        self.report: Report = DryRun() if dry_run else Report()
        self._ended: dict[str, bool] = {}  # by state

    def run(self) -> Report:
        """Compare everything. Raises UnknownMachine, EngineUnavailable."""
        for _ in self.pages():
            pass
        return self.report

    def pages(self) -> Iterator[int]:
        """Compare a page for each value taken, and yield how many rows or instances it had."""
        for using in self._field.databases():
            yield from self._rows(using)
        yield from self._instances()

    def _rows(self, using: str) -> Iterator[int]:
        field, last = self._field, None
        name = field.id_field.attname
        self._report_without_id(
            state_columns.rows(field, using).filter(**{f"{name}__isnull": True}).values_list("pk", name)
        )
        while True:
            found = state_columns.rows(field, using).order_by(name)
            found = found.filter(**({f"{name}__isnull": False} if last is None else {f"{name}__gt": last}))
            page = list(found.values_list(name, field.attname, field.revision_name, "pk")[:PAGE])
            if not page:
                return
            last = page[-1][0]
            self._report_without_id((pk, id) for id, *_, pk in page)
            sound = [one for one in page if state_columns.check_id(one[0]) is None]
            self._compare(
                {str(id): state_columns.Columns(str(state), revision) for id, state, revision, _ in sound}, using
            )
            yield len(page)

    def _report_without_id(self, found: Iterable[tuple[Any, Any]]) -> None:
        """Name the rows of which the id is no id; all others are compared."""
        for pk, id in found:
            if (problem := state_columns.check_id(id)) is not None:
                text = f"row {pk}: {self._field.id_field.name} is {id!r}, and an id {problem}"
                log.warning("%s has a row without an instance: %s", self._field.label, text)
                self.report.add(NO_ID, text)

    def _compare(self, rows: Mapping[str, Columns], using: str) -> None:
        kinds = mend(self._engine, self._field, rows, using, self.report)
        gone = {id: rows[id] for id, kind in kinds.items() if kind == GONE}
        lost = {id: seen for id, seen in gone.items() if not self._has_ended(seen.state)}
        self.report.lost += len(lost)
        if not isinstance(self.report, DryRun):
            self.report.mended += len(self._create([id for id, kind in kinds.items() if kind == MISSING], using))
            if self._create_missing:
                self._create_anew(lost, using)

    def _has_ended(self, state: str) -> bool:
        """Tell whether a row's state is a final one of the machine: its instance was let go, and is not missing."""
        if state not in self._ended:
            self._ended[state] = self._is_final(state)
        return self._ended[state]

    def _is_final(self, state: str) -> bool:
        """Ask the current version, and where it does not have the state the newest one that has: an instance that
        ended in an earlier version is not moved any more once it was let go."""
        for outline in self._outlines():
            if (found := outline.state(state)) is not None:
                return found.type == "final" and found.parent in (None, outline.root)
        return False

    def _outlines(self) -> Iterator[Outline]:
        """Yield those of the current version and of all versions, the newest first."""
        machine = self._field.machine
        try:
            yield read_current_row(machine).outline
            numbers = sorted(self._engine.versions(machine), reverse=True)
        except UnknownMachine:  # Redis has lost it, or nobody knows it
            yield from every_outline(machine)
            return
        for number in numbers:
            yield outline_of(machine, number)

    def _create_anew(self, lost: Mapping[str, Columns], using: str) -> None:
        """Create instances for rows that lost theirs, in the initial state; their rows go back to it."""
        field = self._field
        for id in self._create(list(lost), using):
            made = self._engine.get(field.machine, id)
            state_columns.replace(field, id, made.state, made.revision, using, seen=lost[id])
            self.report.recreated += 1

    def _create(self, ids: list[str], using: str) -> list[str]:
        """Create instances at once and return those that were: a page in one call; where that fails, and for rows with
        a state of another library, by an entry of the outbox each."""
        field = self._field
        found = state_columns.rows(field, using).filter(
            **{f"{field.id_field.attname}__in": state_columns.parse_ids(field, ids)}
        )
        rows = {str(getattr(row, field.id_field.attname)): row for row in (found if ids else ())}
        plain = {id: row for id, row in rows.items() if not state_columns.earlier_state(field, row)}
        given = {id: data for id, row in plain.items() if (data := outbox.make_data(field, id, row)) is not None}
        try:
            answers = outbox.create_many(field, given, using)
        except ColumnGone:  # the report names it
            return []
        made = [id for id, answer in answers.items() if isinstance(answer, Instance)]
        return made + [id for id, row in rows.items() if id not in made and self._create_one(id, row, using)]

    def _create_one(self, id: str, row: Any, using: str) -> bool:
        try:
            entry = outbox.ensure_creation(self._field, row, using)
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            self.report.errors.append(f"{id}: data= of the field raised {type(error).__name__}: {error}")
            return False
        entry.refresh_from_db(using=using)
        if entry.state != entry.State.DONE:
            self.report.errors.append(f"{id}: {entry.message or 'its creation waits in the outbox'}")
        return bool(entry.state == entry.State.DONE)

    def _instances(self) -> Iterator[int]:
        """Find instances without a row; where the field says so they are deleted."""
        for page in find_pages(self._engine, self._field.machine, limit=PAGE):
            ids = [instance.id for instance in page]
            with_row: set[str] = set()
            for using in self._field.databases():
                with_row |= state_columns.read(self._field, ids, using).keys()
            for instance in page:
                if instance.id not in with_row:
                    self.report.add(ROWLESS, f"{instance.id}: {instance.state}, revision {instance.revision}")
            yield len(ids)
