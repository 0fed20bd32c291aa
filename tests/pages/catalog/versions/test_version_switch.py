"""Instances of other versions never vanish: the switch of versions, what a diagram does not have, the overview."""

from __future__ import annotations

import pytest

from tests.pages.reading import read

SECOND = {
    "id": "lamp", "initial": "off", "states": {
        "off": {"on": {"press": "bright"}},
        "bright": {"on": {"press": "off"}},
    },
}  # fmt: skip
FIRST = SECOND | {"states": {"off": {"on": {"press": "on"}}, "on": {"on": {"press": "off"}}}}
PAGE = "/machines/lamp/"


@pytest.fixture
def lamps(engine, db) -> str:
    """Three instances of version 1, two of them in a state that version 2 does not have; one of version 2."""
    engine.publish(FIRST)
    for id in ("a", "b", "c"):
        engine.create("lamp", id)
    for id in ("a", "b"):
        engine.fire("lamp", id, "press")
    engine.publish(SECOND)
    engine.create("lamp", "d")
    return "lamp"


def counts(page) -> dict[str, str]:
    return {
        part["data-state"]: part.one(class_="count").text
        for part in page.one("svg", class_="sb-diagram").all(class_="state")
    }


def test_a_machine_of_one_version_has_no_switch(as_, waiting):
    assert not read(as_("viewer").get("/machines/activation/")).all("nav", class_="version-switch")


def test_each_version_is_listed_with_its_instances(as_, lamps):
    page = read(as_("viewer").get(PAGE))
    choices = [link.text for link in page.one("nav", class_="version-switch").one(class_="choices").all("a")]
    assert choices == ["all versions 4", "version 2 (current) 1", "version 1 3"]
    assert "3 in other versions" in page.one("div", class_="head").text


def test_states_of_other_versions_are_named_beside_the_diagram(as_, lamps):
    page = read(as_("viewer").get(PAGE))
    assert counts(page) == {"off": "2", "bright": "0"}
    assert "Not on this diagram: on 2 version 1" in page.one(class_="elsewhere").text
    link = page.one(class_="elsewhere").one("a")["href"]
    found = read(as_("viewer", "second").get(link.partition("#")[0]))
    assert counts(found) == {"off": "1", "on": "2"}
    assert {row["data-row"] for row in found.all("tr") if "data-row" in row.attributes} == {"a", "b"}


def test_the_diagram_of_a_version_counts_its_own_instances(as_, lamps):
    client = as_("viewer")
    first, second = (read(client.get(f"{PAGE}?version={number}")) for number in (1, 2))
    assert counts(first) == {"off": "1", "on": "2"}
    assert counts(second) == {"off": "1", "bright": "0"}
    assert "Not on this diagram: on 2" in second.one(class_="elsewhere").text
    assert not first.all(class_="elsewhere")


def test_links_of_a_chosen_diagram_stay_in_its_version(as_, lamps):
    page = read(as_("viewer").get(f"{PAGE}?version=1"))
    links = [part["href"] for part in page.one("svg", class_="sb-diagram").all("a") if "href" in part.attributes]
    assert links
    assert all("version=1" in link for link in links)


def test_the_form_for_a_new_instance_is_of_the_current_version(as_, engine, lamps):
    engine.publish(SECOND | {"context": {"watts": {"type": "integer"}}})
    page = read(as_("operator").get(f"{PAGE}?version=1"))
    assert "watts" in page.one(id="create").text


def test_a_version_that_is_not_there_is_a_404_as_for_its_drawing(as_, lamps):
    answer = as_("viewer").get(f"{PAGE}?version=9")
    assert answer.status_code == 404
    assert "Machine lamp has no version 9." in read(answer).text
    assert as_("viewer", "second").get(f"{PAGE}diagram.svg?version=9").status_code == 404


def test_the_overview_says_that_versions_differ(as_, lamps):
    panel = read(as_("viewer").get("/")).one("tr", data_machine="lamp")
    assert panel.one(class_="differs").text == "3 in version 1"


def test_the_list_of_versions_has_the_instances_of_each(as_, lamps):
    page = read(as_("viewer").get(f"{PAGE}versions/"))
    rows = page.one("table", class_="versions").one("tbody").all("tr")
    assert [(row.one("th").text, row.all("td")[0].text) for row in rows] == [
        ("version 2 current", "1"),
        ("version 1", "3"),
    ]
