"""Records that searches return: a page of instances, a tally, the problems of an instance, the progress of an index."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from machines.engine.records import Instance


@dataclass(frozen=True, slots=True)
class Page:
    """A page of instances. ``cursor`` continues after the last instance; None on the last page. ``start`` is a
    cursor at the first instance: in reverse order it continues with the page before; None where the page is empty.
    ``missing``: roots of partitions that did not answer, whose instances are not on the page. ``looked``: where
    instances had to be compared, how many this page looked at; else 0."""

    instances: list[Instance]
    cursor: str | None
    start: str | None = None
    missing: tuple[str, ...] = ()
    looked: int = 0

    def __iter__(self) -> Any:
        return iter(self.instances)

    def __len__(self) -> int:
        return len(self.instances)


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of instances that a search finds: ``counts`` by leaf state, an instance in several regions in each
    of its leaves; ``total`` counts it once. Without ``complete`` the figures are lower bounds; so they are where
    partitions are ``missing``: their roots, which did not answer."""

    counts: dict[str, int]
    total: int
    complete: bool = True
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """A current problem of an instance. ``cause``: a dead job's id, or the key of a timer whose step failed; its
    ``kind`` is then "timer". ``text`` is cut to 200 bytes."""

    cause: str
    kind: str
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """Indexes of ``fields`` that do not yet hold all instances. ``done`` of ``total`` instances were looked at;
    ``total`` is 0 before any process has begun."""

    fields: list[str]
    done: int
    total: int

    @property
    def percent(self) -> int:
        """Return the progress in percent, 99 at most."""
        return min(99, 100 * self.done // self.total) if self.total else 0
