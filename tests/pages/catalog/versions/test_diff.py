"""Two versions on one diagram, as a list and as text; drafts in their place."""

from __future__ import annotations

import json

import pytest

from machines.models import Draft
from tests.pages.reading import read

FIRST = {
    "id": "lamp", "initial": "off", "states": {
        "off": {"on": {"press": "on"}},
        "on": {"on": {"press": "off", "burn": "broken"}, "after": {"5m": "off"}},
        "broken": {"type": "final"},
    },
}  # fmt: skip
SECOND = {
    "id": "lamp", "initial": "off", "states": {
        "off": {"on": {"press": "on"}},
        "on": {"on": {"press": "off", "dim": "dimmed"}, "after": {"10m": "off"}},
        "dimmed": {"on": {"press": "off"}},
    },
}  # fmt: skip
PAGE = "/machines/lamp/versions/"


@pytest.fixture
def lamps(engine, db) -> str:
    engine.publish(FIRST)
    engine.publish(SECOND)
    return "lamp"


@pytest.fixture
def draft(lamps) -> Draft:
    text = json.dumps(SECOND | {"description": "a lamp that <b>breaks</b>", "states": FIRST["states"]})
    return Draft.objects.create(machine="lamp", base=2, text=text, author="sue", note="back to breaking lamps")


def marked(page, mark: str) -> set[str]:
    found = page.one("svg", class_="sb-diagram").all(class_=f"diff-{mark}")
    return {part.attributes.get("data-state") or part.attributes.get("data-transition") for part in found}


def test_both_versions_stand_on_one_diagram_with_signs(as_, lamps):
    page = read(as_("viewer").get(f"{PAGE}diff/?a=1&b=2"))
    assert {"dimmed"} <= marked(page, "added")
    assert {"broken"} <= marked(page, "removed")
    drawing = page.one("svg", class_="sb-diagram")
    signs = {part["data-state"]: part.one(class_="count").text for part in drawing.all(class_="state")}
    assert (signs["dimmed"], signs["broken"], signs["off"]) == ("+", "−", "")


def test_the_list_groups_changes_by_what_they_mean(as_, lamps):
    page = read(as_("viewer").get(f"{PAGE}diff/?a=1&b=2"))
    groups = [heading.text for heading in page.all(class_="diff-verdict")]
    assert groups[0] == "Needs a mapping"
    rows = [row.text for table in page.all("table", class_="changes") for row in table.one("tbody").all("tr")]
    assert any("broken" in row and "state removed" in row for row in rows)
    assert "removed" in page.one("pre", class_="text-diff").all("span", data_line="removed")[0]["data-line"]


def test_the_current_version_is_compared_with_the_one_before_unless_others_are_named(as_, lamps):
    assert read(as_("viewer").get(f"{PAGE}diff/")).one("h1").text == "Version 1 → version 2"


@pytest.mark.parametrize("query", ["a=9", "b=x", "a=draft-99", "b=-1", "a=1e3", "b=draft-"])
def test_what_is_no_version_is_a_404(as_, lamps, query):
    assert as_("publisher").get(f"{PAGE}diff/?{query}").status_code == 404


def test_a_draft_takes_part_for_those_who_may_publish(as_, draft):
    page = read(as_("publisher").get(f"{PAGE}diff/?a=2&b=draft-{draft.pk}"))
    assert "dimmed" in marked(page, "removed")
    assert as_("viewer").get(f"{PAGE}diff/?a=2&b=draft-{draft.pk}").status_code == 403
