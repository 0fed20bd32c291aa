"""Facts about instances of ``activation``, as a worker would have read them."""

from __future__ import annotations

import pytest

from machines.insight.facts import CREATE, Case, VersionFacts
from machines.insight.store import Store
from tests.configuration import configure

SECOND = 1000
EDGES = {("New", "Waiting"): "t1", ("Waiting", "Active"): "t3", ("Active", "Suspended"): "t6"}


@pytest.fixture
def facts(settings, tmp_path, activation) -> Store:
    """The facts of ``write_facts``, in a folder of the test."""
    configure(settings, INSIGHT=str(tmp_path))
    return write_facts(Store(tmp_path), activation)


def write_facts(store: Store, machine: str) -> Store:
    """Eight instances went New → Waiting → Active, two went on to Suspended; one is of a state that is gone."""
    steps, rows = [], []
    ways = {f"a-{number}": ["New", "Waiting", "Active"] for number in range(8)}
    ways |= {f"s-{number}": ["New", "Waiting", "Active", "Suspended"] for number in range(2)}
    ways |= {"gone/1": ["New", "Removed"]}
    for number, (id, states) in enumerate(ways.items(), start=1):
        case, before = Case(number, id, SECOND, ended=True), ""
        entries = []
        for revision, state in enumerate(states, start=1):
            event = "entitle" if before else CREATE
            entries.append([revision, revision * 60 * SECOND, event, state, EDGES.get((before, state), ""), "alice"])
            before = state
        steps += case.add(entries, 1, {})
        rows.append(case.row())
    store.append(machine, store.manifest(machine), steps, rows, number=99, marks={"0": 500 * SECOND})
    return store


def add_jobs(store: Store, machine: str) -> None:
    """Add three steps that end a job: of the first the times are unknown."""
    known = {1: VersionFacts(work={"done.invoke.a": ("mail", "send")})}
    steps, rows = [], []
    for number, job in enumerate(([], [[], [1_000, 0, 2_000, 1, "w1"]], [[], [1_000, 4_000, 2_000, 2, "w2"]]), 50):
        case = Case(number, f"job-{number}", SECOND, ended=True)
        entry = [2, 2 * SECOND, "done.invoke.a", "Active", "", "job 0-1", "", 0, 0, *job]
        steps += case.add([[1, SECOND, CREATE, "New", "", ""], entry], 1, known)
        rows.append(case.row())
    store.append(machine, store.manifest(machine), steps, rows)
