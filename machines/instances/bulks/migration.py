"""The action "migrate": its instances are those that a dry run finds, and its previews are the classes of the dry run.

Of a million instances nearly all are moved. So one walk over the fleet both freezes and previews them, and only what is
to be said is stored: an instance without a verdict would be moved, and one without an outcome was moved once its page
is done.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from machines.engine import Engine, MigrationPlan, Permit
from machines.engine.errors import BadInput, NeedsApproval
from machines.engine.versions.records import KEPT, MOVES, REFUSED, SUSPENDS, MigrationClass

from . import selection
from .order import MIGRATE, Order
from .selection import RESULTS, SAID
from .store import PAGE, Item, Note, Row, Store

TURN = 1000  # instances moved in one job at most
TOGETHER = 200  # instances moved between two checks whether to go on
SHARE = 0.33  # of the server's time, for the walk
MAX_FOUND = 10_000_000  # instances of one order
UNREADABLE = 0  # the version of an instance whose key another program wrote
WALKED = frozenset(["version"])  # filters of orders that are for whole versions

Report = Callable[[int], None]  # called with the number of instances that are frozen


class Freezer:
    """Stores pages of instances with what the dry run says about them."""

    def __init__(self, store: Store, name: str, versions: frozenset[int], report: Report) -> None:
        self.total = 0
        self.counts: Counter[str] = Counter(dict.fromkeys(RESULTS, 0))
        self._store, self._name, self._versions, self._report = store, name, versions, report
        self._items: list[Item] = []
        self._pages = 0

    def add(self, about: MigrationClass, ids: Sequence[str]) -> None:
        """Freeze the instances of a class, unless the plan is not for their version."""
        if about.version not in self._versions:
            return
        note = judge(about)
        state = ", ".join(about.configuration)
        self._items += (Item(id, 0, state, about.version) for id in ids)
        self.total += len(ids)
        self.counts[note.word] += len(ids)
        if self.total > MAX_FOUND:
            raise BadInput(f"more than {MAX_FOUND:,} instances match: narrow the filter")
        if note != TAKEN:
            self._store.put_previews(dict.fromkeys(ids, note))
        while len(self._items) >= PAGE:
            self._flush()

    def end(self) -> None:
        if self._items:
            self._flush()

    def _flush(self) -> None:
        page, self._items = self._items[:PAGE], self._items[PAGE:]
        self._store.put_page(self._name, self._pages, page)
        self._pages += 1
        self._report(self._pages * PAGE - PAGE + len(page))


TAKEN = Note("taken")
DONE = Note("done")


def judge(about: MigrationClass) -> Note:
    """Return the verdict on the instances of a class."""
    if about.outcome == SUSPENDS:
        return _write_note("taken", "would be suspended", about.code, about.reason)
    if about.outcome in (REFUSED, KEPT):
        return _write_note(about.outcome, "", about.code, about.reason)
    return TAKEN


def _write_note(word: str, what: str, code: str, reason: str) -> Note:
    """Return a note whose plain text leaves out the reason: it may repeat a value of the instance."""
    why, plain = f"{reason} ({code})" if code else reason, f"see {code}" if code else ""
    return Note(word, ": ".join(filter(None, (what, why)))[:SAID], ": ".join(filter(None, (what, plain))))


def collect(engine: Engine, store: Store, name: str, order: Order, made: int, report: Report) -> Freezer:
    """Freeze the instances of an order under a name, and store their previews."""
    plan = order.migration
    store.clear_previews()
    if order.of or any(term is not None for key, term in order.filter.items() if key not in WALKED):
        freezer = Freezer(store, name, _list_versions(plan), report)
        for page in selection.split_pages(selection.find(engine, order, made)):
            for id, about in engine.classify(plan, [item.id for item in page]).items():
                freezer.add(about, [id])
    else:
        version = order.filter.get("version")
        versions = _list_versions(plan)
        if version is None:
            versions |= {UNREADABLE}
        else:
            versions &= {version}
        freezer = Freezer(store, name, versions, report)
        store.put_dry_run(engine.dry_run(plan, share=SHARE, each=freezer.add))
    freezer.end()
    return freezer


def _list_versions(plan: MigrationPlan) -> frozenset[int]:
    return frozenset(source.version for source in plan.sources)


def move(engine: Engine, order: Order, ids: Sequence[str], reason: str, permit: Permit | None) -> dict[str, Note]:
    """Move instances; return the outcome of each that was not moved. What asks for an approval that nobody gave, since
    a version was published after the run began, moves nothing."""
    if permit is not None and permit.action != MIGRATE and (rule := _find_rule(engine, order)):
        error = NeedsApproval(order.machine, "", MIGRATE, revision=None, subject=order.machine, by=rule)
        return dict.fromkeys(ids, Note.of_all("refused", f"{error} ({error.code})"[:SAID]))
    notes = {}
    mover = engine.mover(order.migration, actor=order.actor, reason=reason)
    for moved in mover.move(ids):
        if moved.outcome == SUSPENDS:
            notes[moved.id] = _write_note("done", "suspended", moved.code, moved.reason)
        elif moved.outcome != MOVES:
            notes[moved.id] = _write_note(moved.outcome, "", moved.code, moved.reason)
    return notes


def _find_rule(engine: Engine, order: Order) -> str:
    """Return what asks for the approval of this migration now, "" for nothing. What versions ask for is read again when
    any machine's versions were changed."""
    from machines.catalog import version_rules  # needs Django

    if (rule := version_rules.find_outside_rule(MIGRATE, order.machine)) is not None:
        return str(rule)
    moves = tuple((source.version, source.to) for source in order.migration.sources)
    key, revision = (engine.keys.prefix, order.machine, moves), engine.catalog_revision()
    found = _rules.get(key)
    if found is None or found[0] != revision:
        rule = version_rules.find_version_rule(MIGRATE, order.machine, moves=moves)
        found = revision, "" if rule is None else str(rule)
        _rules.clear()
        _rules[key] = found
    return found[1]


_rules: dict[tuple[str, str, tuple[tuple[int, int], ...]], tuple[str, str]] = {}
"""The rule that was found for the latest migration, with the revision of the catalog."""


def complete(row: Row, is_done: bool) -> Row:
    """Return a row with what a migration does not store. ``is_done``: its page is done."""
    outcome = row.outcome or (DONE if is_done else None)
    return replace(row, verdict=row.verdict or TAKEN, outcome=outcome)
