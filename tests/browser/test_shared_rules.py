"""The script's half of rules that the server states, too: both are held to one table, in ``rules``; and what a script
puts on a drawing is what the server puts there."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Page

from dashboard.models import Preferences
from machines.insight.statistics import recording
from machines.models import Measurement

from .conftest import is_live

TABLES = Path(__file__).parent / "rules"
FORMATS = json.loads((TABLES / "formats.json").read_text("utf-8"))
PATCHES = json.loads((TABLES / "patches.json").read_text("utf-8"))
ALL = """async (tables) => {
    const formats = await import("/static/signalbox/js/shared/format.js");
    const told = ([name, rows]) => [name, rows.map(([given]) => [given, formats[name](given)])];
    return Object.fromEntries(Object.entries(tables).map(told));
}"""
MERGE = """async (cases) => {
    const { merge } = await import("/static/signalbox/js/live/merge.js");
    return cases.map(([value, patch]) => [value, patch, merge(value, patch)]);
}"""

# Names, texts and classes of all parts of the drawing; `wipe` takes away first what a script may put there.
PARTS = """(wipe) => {
    const kept = /^(occupied|dead|shown|chosen|heat-[1-5])$/;
    const kinds = ["[data-state]", "[data-transition]", "[data-queue]", ".mark"];
    const parts = [...document.querySelectorAll(`.sb-diagram :is(${kinds})`)];
    const slots = (part) => [...part.querySelectorAll(".count, .flow, .told")];
    if (wipe) {
        for (const part of parts) {
            for (const slot of slots(part)) slot.textContent = "";
            part.classList.remove("occupied", "shown", ...[1, 2, 3, 4, 5].map((heat) => `heat-${heat}`));
            if (!part.matches(".queue, [data-transition]")) part.removeAttribute("aria-label");
        }
    }
    return Object.fromEntries(parts.map((part) => [part.id, [
        slots(part).map(({ textContent }) => textContent),
        [...part.classList].filter((name) => kept.test(name)).sort(),
        part.getAttribute("aria-label"),
    ]]));
}"""
DAY = 86_400_000  # ms
DESK = {
    "id": "desk",
    "initial": "Open",
    "context": {"count": 0},
    "states": {
        "Open": {"sla": "15m", "on": {"take": "Busy"}},
        "Busy": {
            "initial": "Asked",
            "states": {
                "Asked": {"invoke": {"src": "ask", "onDone": "Told", "retry": {"attempts": 1}}},
                "Told": {"sla": "1h", "on": {"again": "Asked"}},
            },
            "on": {"drop": "Open", "end": "Done"},
        },
        "Done": {"type": "final"},
    },
}


def test_formats_are_as_their_table_says(page: Page) -> None:
    tables = {name: rows for name, rows in FORMATS.items() if name != "moment"}
    page.goto("/")
    assert page.evaluate(ALL, tables) == tables


def test_patches_merge_as_their_table_says(page: Page) -> None:
    page.goto("/")
    assert page.evaluate(MERGE, PATCHES) == PATCHES


def test_moments_are_told_in_the_zone_and_on_the_clock_of_the_table(as_, activation) -> None:
    page = as_("viewer", "vera")
    kept = Preferences(user=get_user_model().objects.get(username="vera"))
    for case in FORMATS["moment"]:
        kept.time_zone, kept.clock = case["zone"], case["clock"]
        kept.save()
        page.goto("/")
        assert page.evaluate(ALL, {"moment": case["rows"]}) == {"moment": case["rows"]}


@pytest.fixture
def desk(engine) -> None:
    """Instances in every state: late ones, one whose job is dead, and work on a queue."""
    engine.publish(DESK)
    now = int(time.time() * 1000)
    for number in range(12):
        engine.create("desk", f"d{number}", now=now - 3 * DAY)
    for number in range(7):
        engine.fire("desk", f"d{number}", "take", now=now - 2 * DAY)
    for number in range(3):
        (job,) = engine.take("desk", "ask", "w", now=now - 2 * DAY)
        if number < 2:
            engine.complete(job, {}, now=now - 2 * DAY)
        else:
            engine.fail(job, "no answer", kind="TimeoutError", retry=False, now=now - 2 * DAY)
    engine.fire("desk", "d6", "end", now=now - DAY)
    _measure(engine, now)


def _measure(engine, now: int) -> None:
    """Keep statistics in which every transition was taken, by far the most up to a moment ago."""
    flow = engine.live("desk").flow
    seen = engine.survey()
    recording.record(seen, recording.turn(), now=now)
    minute = now // 60_000 * 60
    for back in range(14, 0, -1):
        edges = dict.fromkeys(flow, 5 * back)
        Measurement.objects.create(
            machine="desk", period=60, at=minute - back * 60, covered=60_000, numbers={"edges": edges}
        )


@pytest.mark.parametrize("view", ["", "&view=top"])
def test_a_script_puts_on_a_drawing_what_the_server_does(as_, engine, desk, view: str) -> None:
    plain, scripted = as_("viewer", "vera", java_script_enabled=False), as_("viewer", "victor")
    for mode in ("count", "age", "failures", "flow", "time"):
        scripted.goto(f"/machines/desk/?mode={mode}{view}")
        is_live(scripted)
        scripted.evaluate(PARTS, True)
        engine.create("desk", f"new in {mode}")  # the page asks for what a live value has not
        for _ in range(100):  # minutes go on between the two pages
            plain.goto(f"/machines/desk/?mode={mode}{view}")
            served, put = plain.evaluate(PARTS, False), scripted.evaluate(PARTS, False)
            if put == served:
                break
        assert any(classes for _, classes, _ in served.values()), mode
        assert put == served, mode
