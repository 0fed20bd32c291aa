"""Facts that are written without Redis, for tests of questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from machines.insight.facts import CREATE, Case
from machines.insight.store import Store
from tests.pages.conftest import as_, user_of  # noqa: F401  fixtures

Stops = Sequence[tuple[str, int]]  # states, and the seconds after the step before at which each was entered
Tell = Callable[..., None]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "facts")


@pytest.fixture
def tell(store: Store) -> Tell:
    """Add instances, id -> stops, as facts of the machine ``order``."""

    def told(histories: dict[str, Stops], *, begin: int = 1_000_000, ended: bool = True, **columns: Any) -> None:
        known = store.manifest("order")
        steps, rows, number = [], [], known.number
        for id, stops in histories.items():
            at, entries, before = begin, [], ""
            for revision, (state, seconds) in enumerate(stops, start=1):
                at += seconds * 1000
                event = CREATE if revision == 1 else f"to.{state}"
                entries.append(
                    [revision, at, event, state, f"{before}-{state}" if before else "", columns.get("actor", 0)]
                )
                before = state
            case = Case(number, id, begin, ended=ended, data=columns.get("data", "{}"), tags=columns.get("tags", ""))
            steps += case.add(entries, columns.get("version", 1), {})
            rows.append(case.row())
            number += 1
        store.append("order", known, steps, rows, number=number, marks={"0": at})

    return told


@pytest.fixture
def viewer(as_):  # noqa: F811
    return as_("viewer")
