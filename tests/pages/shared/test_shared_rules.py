"""The server's half of rules that a script states, too: both are held to one table, in ``tests/browser/rules``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.utils import timezone

from dashboard.shared import diagram_modes, times
from dashboard.shared.addresses import InstanceId
from dashboard.shared.navigation import NAVIGATION_LINKS
from dashboard.templatetags.room import figure
from machines.insight.statistics.ages import format_age, format_duration
from tests.cases import for_each
from tests.live.builders import merge

ROOT = Path(__file__).parents[3]
TABLES = ROOT / "tests/browser/rules"
FORMATS = json.loads((TABLES / "formats.json").read_text("utf-8"))
PATCHES = json.loads((TABLES / "patches.json").read_text("utf-8"))
OURS: dict[str, Callable[[Any], str]] = {
    "age": format_age,
    "exact": times.format_utc,
    "figure": figure,
    "segment": lambda name: quote(InstanceId().to_url(name), safe=""),
    "short": diagram_modes.format_count,
    "span": format_duration,
    "until": times.format_until,
}


def test_the_table_has_a_row_for_each_format() -> None:
    assert set(FORMATS) == {*OURS, "moment"}


@for_each("name", OURS)
def test_a_format_is_as_its_table_says(name: str) -> None:
    for given, text in FORMATS[name]:
        assert OURS[name](given) == text


@for_each("case", FORMATS["moment"])
def test_a_moment_is_told_in_the_zone_and_on_the_clock_of_the_table(case: dict[str, Any]) -> None:
    token = times.clock.set(case["clock"])
    with timezone.override(case["zone"]):
        assert [[ms, times.format_local(ms)] for ms, _ in case["rows"]] == case["rows"]
    times.clock.reset(token)


@for_each("value, patch, result", PATCHES)
def test_a_patch_merges_as_its_table_says(value: Any, patch: Any, result: Any) -> None:
    assert merge(value, patch) == result


def test_each_place_of_the_bar_has_a_key_of_its_own() -> None:
    script = next((ROOT / "static/signalbox/js").rglob("shortcuts.js")).read_text("utf-8")
    fixed = re.findall(r'keys: "g (\w)"', script)
    keys = [place.key for place in NAVIGATION_LINKS if place.key] + fixed
    assert len(keys) == len(set(keys))
    assert {place.name for place in NAVIGATION_LINKS if not place.key} <= {"admin"}
