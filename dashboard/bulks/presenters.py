"""Presents a bulk action: its instances, results and available actions, on the page and in the CSV file."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest

from dashboard.shared.csv_export import Columns
from machines.bulks import Bulk, Row
from machines.bulks.bulk import LIVE
from machines.engine import Instance

SIZE = 100  # instances on a page
MAX_SEARCHED = 5_000  # instances one page looks at for those with one verdict
MAX_CLASSES = 200  # classes of a dry run on the page, the largest ones; most plans have a dozen
AVAILABLE_IN = {  # action -> the states in which it is there
    "run": ("previewed",),
    "pause": ("running",),
    "resume": ("paused",),
    "retry": ("failed",),
    "stop": LIVE,
    "rate": LIVE,
    "remove": ("done", "stopped", "failed"),
    "again": ("done", "stopped", "failed"),
}
COLUMNS: Columns = {
    "instance": lambda row: row.item.id,
    "state": lambda row: row.item.state,
    "revision": lambda row: row.item.revision,
    "verdict": lambda row: row.verdict and row.verdict.word,
    "verdict_why": lambda row: row.verdict and row.verdict.why,
    "outcome": lambda row: row.outcome and row.outcome.word,
    "outcome_why": lambda row: row.outcome and row.outcome.why,
}


@dataclass(frozen=True, slots=True)
class RowPage:
    """Holds a page of instances of a bulk action.

    It covers ``start`` to before ``stop``; ``word`` filters by a verdict or an outcome.
    """

    rows: list[Row]
    start: int
    stop: int
    found: int
    kind: str = ""
    word: str = ""

    @property
    def further(self) -> str:
        """Return the query of the next page, or ""."""
        if self.stop >= self.found:
            return ""
        return urlencode(({self.kind: self.word} if self.word else {}) | {"from": self.stop})


def read_rows(bulk: Bulk, now: Instance, request: HttpRequest, start: int) -> RowPage:
    """Read a page of instances. With ``?verdict=`` or ``?outcome=`` the search is bounded: a page may be short."""
    asked = ((kind, request.GET.get(kind, "")) for kind in ("outcome", "verdict"))
    kind, word = next((one for one in asked if one[1]), ("", ""))
    rows: list[Row] = []
    stop = start
    looks = (MAX_SEARCHED // SIZE if word else 1) if now.data["selection"] else 0
    for _ in range(looks):
        page = bulk.rows(stop, SIZE)
        stop += len(page)
        rows += [row for row in page if not word or ((note := getattr(row, kind)) and note.word == word)]
        if len(page) < SIZE or len(rows) >= SIZE:
            break
    return RowPage(rows, start, stop, now.data["found"], kind, word[:20])


def list_available_actions(bulk: Instance) -> list[str]:
    """List the actions that are available now, for a person who may use them."""
    names = [name for name, states in AVAILABLE_IN.items() if bulk.state in states and not bulk.suspended]
    left = any(bulk.data["outcomes"].get(word) for word in ("refused", "changed", "failed"))
    return [name for name in names if name != "again" or left]


def count_words(held: dict[str, int], words: tuple[str, ...]) -> list[tuple[str, int]]:
    """Pair each word with its number; words that only some actions have follow where they occur."""
    others = [word for word in held if word not in words and held[word]]
    return [(word, held.get(word, 0)) for word in (*words, *others)]
