"""The mode of a diagram that shows tests beside real traffic."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from machines.catalog.coverage import Coverage
from machines.catalog.models import StoredCoverage
from machines.engine.definitions import compile_definition
from machines.models import Measurement
from tests.pages.reading import read

from .test_diagram_modes import DESK, desk, drawing

__all__ = ["desk"]
DAY = 86_400


def report(**taken: int) -> None:
    digest = compile_definition(DESK).digest
    StoredCoverage.record([Coverage("desk", digest, Counter(taken), tests=2)], "ci")


@pytest.fixture
def ids(desk) -> dict[str, str]:
    states = compile_definition(DESK).outline.states
    return {one.events[0]: one.id for state in states for one in state.transitions}


def look(as_) -> tuple[dict[str, str], list[str], str]:
    """Return the text of each line, the list in words, and what the legend says."""
    page = read(as_("viewer").get("/machines/desk/?mode=tests"))
    lines = {part["data-events"]: part.one(class_="flow").text for part in drawing(page).all("a", class_="transition")}
    words = [item.text for item in page.one("details", data_coverage="").all("li")]
    return lines, words, page.one("nav", class_="modes").text


def test_tests_and_traffic_stand_at_each_line_and_in_words(as_, ids):
    report(**{ids["take"]: 3})
    lines, words, legend = look(as_)
    assert lines == {"take": "✓", "break": "✕ 1", "drop": "✕"}
    assert words == [
        "Open → On hold: take: tested, never taken",
        "Open → Broken: break: never tested, taken 1 time",
        "On hold → Open: drop: never tested, never taken",
    ]
    assert "33 % of transitions and false guards" in legend
    assert "by ci" in legend


def test_what_was_not_taken_in_thirty_days_is_said_where_so_long_was_measured(as_, ids):
    report(**{ids["break"]: 3})
    now = int(time.time())
    Measurement.objects.create(machine="desk", period=3600, at=now - 5 * DAY, covered=3_600_000, numbers={"edges": {}})
    assert "Open → Broken: break: tested, taken 1 time" in look(as_)[1]


def test_a_transition_that_rests_is_said_so(as_, ids):
    report(**{ids["break"]: 3})
    now = int(time.time())
    Measurement.objects.create(machine="desk", period=3600, at=now - 40 * DAY, covered=3_600_000, numbers={"edges": {}})
    assert "Open → Broken: break: tested, not taken in 30 days" in look(as_)[1]


def test_a_definition_without_a_report_says_how_to_make_one(as_, ids):
    StoredCoverage.record([Coverage("desk", "another", Counter({ids["take"]: 3}))], "ci")
    lines, _, legend = look(as_)
    assert lines == {"take": "", "break": "1", "drop": ""}
    assert "no tests reported for this definition" in legend
    assert "machine test --coverage --record" in legend
