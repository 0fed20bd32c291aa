"""The wall screen: what is broken, since when, whose it is, without anything to press; and it says when it is old."""

from __future__ import annotations

from machines.catalog import builtin_machines
from tests.engine.builders import machine
from tests.pages.overview.test_machine_table import fleet
from tests.pages.reading import Element, read

__all__ = ["fleet"]


def sums(page: Element) -> dict[str, str]:
    boxes = page.one("section", class_="sums").all("div", class_="sum")
    return {box.one("span", class_="what").text: box.one("b").text for box in boxes}


def tiles(page: Element) -> list[tuple[str, str, str]]:
    found = page.one("ul", class_="tiles").all("li")
    return [
        (tile.one("span", class_="name").text, tile.one("b").text, tile.one("span", class_="unit").text)
        for tile in found
    ]


def test_it_has_the_figures_of_the_fleet_and_those_in_trouble_first(as_, fleet):
    page = read(as_("viewer").get("/wall/"))
    assert sums(page) == {
        "critical": "0", "warning": "2", "of 4 machines in trouble": "2", "jobs ready": "0", "job dead": "1",
        "workers": "0", "instances": "6",
    }  # fmt: skip
    assert tiles(page) == [
        ("mender", "1", "dead"), ("desk", "1", "late"), ("busy", "3", "instances"), ("calm", "0", "instances"),
    ]  # fmt: skip
    warning = page.one("section", class_="sums").one("div", class_="warning")
    assert "oldest 45 min · no owner" in warning.text
    assert "1 job dead on mender/mend" in page.one("ul", class_="wall-alarms").text


def test_it_has_no_chrome_and_says_of_when_its_figures_are(as_, fleet):
    page = read(as_("viewer").get("/wall/"))
    assert not page.all("header")
    assert not page.all("nav")
    assert not page.all("a")
    assert not page.all("button")
    assert "As of " in page.text
    assert "figures of " in page.one("div", class_="stale-cover").text


def test_machines_are_chosen_by_the_address_and_those_that_are_not_there_are_named(as_, fleet):
    page = read(as_("viewer").get("/wall/?machines=desk,%20calm,desk,nothing"))
    assert [name for name, *_ in tiles(page)] == ["desk", "calm"]
    assert "Not found: nothing" in page.text
    assert "mender" not in page.text


def test_machines_of_the_product_are_there_while_they_are_in_trouble(as_, engine, db):
    builtin_machines.publish(engine, "bulk")
    engine.publish(machine("calm", {"A": {}}))
    assert [name for name, *_ in tiles(read(as_("viewer").get("/wall/")))] == ["calm"]
    engine.create("bulk", "3f2a")
    assert [name for name, *_ in tiles(read(as_("viewer", "vera").get("/wall/")))] == ["bulk", "calm"]


def test_nothing_to_attend_to_is_said(as_, engine, db):
    engine.publish(machine("calm", {"A": {}}))
    assert "Nothing needs attention" in read(as_("viewer").get("/wall/")).text
