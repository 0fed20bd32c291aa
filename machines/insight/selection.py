"""Turns a ``Search`` into the facts that it is about."""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import BadSearch
from .records import Extent, Search
from .store import STEPS, Manifest, Store

T = TypeVar("T")
LONGEST = 30.0  # seconds that a question may take
LARGEST = 2**53  # in a question: sums with it fit


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen facts of one moment. ``terms``: conditions on instances, with ``values`` for their places;
    ``ends``: on the monotonic clock, when questions about them have to be answered, None for no limit."""

    store: Store
    machine: str
    manifest: Manifest
    terms: tuple[str, ...]
    values: tuple[Any, ...]
    ends: float | None = None

    def ask(self, sql: str, *values: Any, before: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query on ``{chosen_steps}``, ``{chosen_rows}`` and ``{chosen_instances}``. ``before``,
        ``values``: for places of the query before the first of these, and behind the last. Raises BadSearch for a
        number or a text that no fact can be."""
        for value in (*before, *self.values, *values):
            _check(value)
        count = sql.count("{chosen_")
        where = f" WHERE {' AND '.join(self.terms)}" if self.terms else ""
        text = sql.replace("{chosen_steps}", STEPS.format(rows="{chosen_rows}", shapes="{shapes}")).replace(
            "{chosen_instances}", f"(SELECT * FROM {{instances}}{where})"
        )
        some = f"(SELECT * FROM {{rows}} WHERE n IN (SELECT n FROM {{instances}}{where}))" if where else "{rows}"
        text = text.replace("{chosen_rows}", some)
        return self.store.ask(
            self.machine,
            text,
            values=[*before, *self.values * count, *values],
            manifest=self.manifest,
            longest=None if self.ends is None else max(0.0, self.ends - time.monotonic()),
        )

    def remember(self, question: Hashable, make: Callable[[], T]) -> T:
        """Return the answer that ``make`` gave before, while the facts stay the same."""
        return self.store.remember((question, frozenset(self.manifest.files), self.manifest.read_up_to), make)

    def extent(self) -> Extent:
        ((instances, steps, lost, has_regions),) = self.ask(
            "SELECT count(*), coalesce(sum(steps), 0), coalesce(sum(lost), 0), "
            "coalesce(bool_or(contains(visited, ', ')), false) FROM {chosen_instances}"
        )
        return Extent(instances, int(steps), int(lost), self.manifest.read_up_to, has_regions)


def _check(value: Any) -> None:
    if isinstance(value, int) and abs(value) > LARGEST:
        raise BadSearch("a number is too large")
    if isinstance(value, str) and not value.isascii() and value != value.encode(errors="replace").decode():
        raise BadSearch(f"{value!r} is not valid Unicode")


def select(search: Search, store: Store, *, is_limited: bool = True) -> Selection:
    """Choose the facts of a search, for one question; ``is_limited``: which ends in time."""
    terms: list[str] = []
    values: list[Any] = []

    def add(term: str, *given: Any) -> None:
        terms.append(term)
        values.extend(given)

    if search.versions:
        add("list_contains(?::INTEGER[], version)", list(search.versions))
    if search.begin is not None:
        add("created >= ?", search.begin)
    if search.end is not None:
        add("created < ?", search.end)
    if search.state:
        add("state = ?", search.state)
    if search.tag:
        add("list_contains(string_split(tags, chr(9)), ?)", search.tag)
    for name, value in search.where:
        add("json_extract_string(data, ?) = ?", f'$."{name}"', value)
    if search.actor:
        add("n IN (SELECT n FROM {steps} WHERE actor = ?)", search.actor)
    ends = time.monotonic() + LONGEST if is_limited else None
    return Selection(store, search.machine, store.manifest(search.machine), tuple(terms), tuple(values), ends)
