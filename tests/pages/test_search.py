"""A machine's list searched by indexed data: a form that sends GET parameters, so that every search is an address."""

from __future__ import annotations

import pytest

from .reading import fields, read
from .test_machines import listed

MACHINE = "/machines/device/"
NOW = 1_700_000_000_000
DEVICE = {
    "id": "device",
    "initial": "New",
    "context": {"serial": "", "price": 0.0, "paid": False},
    "index": ["serial", "price", "paid", "instance.id"],
    "states": {"New": {"on": {"go": "Sold"}}, "Sold": {"on": {"back": "New"}}},
}


@pytest.fixture
def devices(engine) -> None:
    engine.publish(DEVICE)
    for number in range(60):
        data = {"serial": f"ATV-{number:02}", "price": number / 2, "paid": number == 7}
        engine.create("device", f"d{number:02}", data, now=NOW + number)
    engine.fire("device", "d12", "go")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("by=serial&is=ATV-12", ["d12"]),
        ("by=serial&is=ATV-1*&state=Sold", ["d12"]),
        ("by=serial&is=ATV-5*&order=newest", [f"d{n}" for n in range(59, 49, -1)]),
        ("by=price&is=2..3", ["d04", "d05", "d06"]),
        ("by=price&is=29..", ["d58", "d59"]),
        ("by=price&is=2.5", ["d05"]),
        ("by=paid&is=true", ["d07"]),
        ("by=instance.id&is=d3*&older=1m&state=New", [f"d3{n}" for n in range(10)]),
    ],
)
def test_a_search_is_an_address(as_, devices, query, found):
    assert listed(read(as_("viewer").get(f"{MACHINE}?{query}"))) == found


def test_the_form_keeps_what_is_looked_for_and_the_state(as_, devices):
    page = read(as_("viewer").get(f"{MACHINE}?state=New&by=price&is=2..&older=1s"))
    sent = fields(page.one("form", class_="sought"))
    assert sent == {"state": "New", "by": "price", "is": "2..", "older": "1s"}


def test_pages_of_a_search_follow_each_other(as_, devices):
    client = as_("viewer")
    first = read(client.get(f"{MACHINE}?by=serial&is=ATV-*"))
    second = read(client.get(first.one("a", rel="next")["href"]))
    assert listed(first) + listed(second) == [f"d{n:02}" for n in range(60)]


def test_nothing_found_says_so(as_, devices):
    assert "None now." in read(as_("viewer").get(f"{MACHINE}?by=serial&is=none")).text


@pytest.mark.parametrize("query", ["by=nope&is=1", "by=price&is=cheap", "by=paid&is=maybe", "by=price&is=inf"])
def test_what_cannot_be_searched_is_a_400(as_, devices, query):
    assert as_("viewer").get(f"{MACHINE}?{query}").status_code == 400


def test_a_machine_without_indexes_has_no_such_form(as_, waiting):
    assert read(as_("viewer").get("/machines/activation/")).all("form", class_="sought") == []


def test_what_is_typed_is_harmless(as_, devices):
    hostile = '"><script>alert(1)</script>'
    page = read(as_("viewer").get(MACHINE, {"by": "serial", "is": hostile}))
    assert fields(page.one("form", class_="sought"))["is"] == hostile
