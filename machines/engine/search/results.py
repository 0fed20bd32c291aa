"""What a search answers: a page of instances, how many there are, what is wrong with them, how complete an index is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from machines.engine.records import Instance


@dataclass(frozen=True, slots=True)
class Page:
    """``cursor`` continues after the last instance; None on the last page. ``start`` stands at the first: with the
    order turned round it continues with what came before; None where the page is empty."""

    instances: list[Instance]
    cursor: str | None
    start: str | None = None

    def __iter__(self) -> Any:
        return iter(self.instances)

    def __len__(self) -> int:
        return len(self.instances)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many instances a search finds: ``counts`` by leaf state, an instance in several regions in each of its
    leaves; ``total`` counts it once. Not ``complete``: they are at least as many."""

    counts: dict[str, int]
    total: int
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with an instance now. ``cause``: a dead job's id, or what stands for a timer that could not be
    carried out; its ``kind`` is then "timer". ``text`` is cut to 200 bytes."""

    cause: str
    kind: str
    text: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """Indexes of ``fields`` that do not yet hold all instances. ``done`` of ``total`` instances were looked at;
    ``total`` is 0 while nobody has begun."""

    fields: list[str]
    done: int
    total: int

    @property
    def percent(self) -> int:
        return min(99, 100 * self.done // self.total) if self.total else 0
