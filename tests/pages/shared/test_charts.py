"""Charts: the same numbers as JSON, as a legend and as a table, for those who may see the machine."""

from __future__ import annotations

import time

import pytest
from django.contrib.auth import get_user_model
from guardian.shortcuts import assign_perm

from machines.catalog.publishing import adopt
from machines.models import Machine, Measurement, SamplingTurn
from tests.pages.reading import read

PAGES = {
    "/": ["transitions", "work", "failures"],
    "/machines/new_device/": ["edges", "refused", "instances", "waits", "runs"],
    "/queues/new_device/start/": ["throughput", "waits", "runs"],
}
ADDRESSES = {
    "/": "/charts.json",
    "/machines/new_device/": "/machines/new_device/charts.json",
    "/queues/new_device/start/": "/queues/new_device/start/charts.json",
}


@pytest.fixture
def minute(devices) -> int:
    """s at which a minute began that was measured: 1,234 starts, and three of a version that is no more."""
    at = int(time.time()) // 60 * 60 - 60
    SamplingTurn.objects.create(pk=1, number=3, at=(at + 60) * 1000, began=(at - 7200) * 1000)
    numbers = {
        "edges": {"1:t1": 1234, "7:t9": 3},
        "refused": {"": 2},
        "queues": {"start": {"enqueued": 5, "completed": 4, "failed": 1, "waits": {"3": 9}, "runs": {"11": 2}}},
    }
    sums = {"transitions": 1237, "refused": 2, "enqueued": 5, "completed": 4, "failed": 1, "instances": 8}
    Measurement.objects.create(machine=devices, period=60, at=at, covered=60_000, numbers=numbers, **sums)
    return at


def test_before_anything_was_measured_a_page_says_so_and_how_to_begin(as_, devices):
    for page in PAGES:
        panel = read(as_("viewer", f"v{len(page)}").get(page)).one("section", id="charts")
        assert "No data yet" in panel.text
        assert "python manage.py worker" in panel.text
        assert "no data yet" in panel.text


@pytest.mark.parametrize("page", PAGES)
def test_each_page_has_its_charts_with_the_same_numbers_as_the_script_gets(as_, minute, page):
    client = as_("viewer")
    panel, wire = read(client.get(page)).one("section", id="charts"), client.get(ADDRESSES[page]).json()
    assert panel["data-charts"] == f"{ADDRESSES[page]}?span=hour"
    assert [figure["data-chart"] for figure in panel.all("figure")] == PAGES[page]
    assert [chart["id"] for chart in wire["charts"]] == PAGES[page]
    assert (wire["step"], len(wire["at"]), wire["measured"]) == (60, 60, (minute + 60) * 1000)
    for figure, chart in zip(panel.all("figure"), wire["charts"], strict=True):
        names = [line["name"] for line in chart["lines"]]
        assert [each.one("span", class_="name").text for each in figure.all("li", data_line="1")] == names[:1]
        if not names:
            continue
        table = figure.one("table")
        assert [cell.text for cell in table.all("th", scope="col")] == ["from", *names]
        assert all(line["values"][wire["at"].index(minute)] is not None for line in chart["lines"])
        assert len(table.all("th", scope="row")) == 1, "steps that nobody measured are left out"


def test_lines_are_named_as_people_know_them_and_figures_are_short(as_, minute):
    panel = read(as_("viewer").get("/machines/new_device/")).one("section", id="charts")
    edges = panel.one("figure", data_chart="edges")
    assert [name.text for name in edges.all("span", class_="name")] == ["done: start → todo", "t9 (v7)"]
    assert [value.text for value in edges.all("b", data_value="")] == ["1,230", "3"]
    assert [cell.text for cell in edges.all("td")] == ["1,234", "3"]
    assert panel.one("figure", data_chart="refused").one("span", class_="name").text == "events that no state accepts"


def test_times_of_a_queue_are_of_the_last_hour_and_labelled(as_, engine, minute):
    engine.create("new_device", "one")  # its job waits; all that ever ran is what was measured
    page = read(as_("viewer").get("/queues/new_device/start/"))
    assert page.one("dd", data_region="times-wait").text == "6 ms 7 ms"
    assert "wait p50, p95, last hour" in page.text
    Measurement.objects.update(at=minute - 3600)
    page = read(as_("viewer", "later").get("/queues/new_device/start/"))
    assert page.one("dd", data_region="times-wait").text == "– –"
    listed = read(as_("viewer", "latest").get("/queues/"))
    assert "last hour" in listed.text


def test_a_range_is_an_address_that_keeps_the_rest_of_it(as_, minute):
    client = as_("viewer")
    panel = read(client.get("/machines/new_device/?mode=age&span=day")).one("section", id="charts")
    links = {link.text: link for link in panel.one("nav").all("a")}
    assert list(links) == ["hour", "day", "month"]
    assert [name for name, link in links.items() if "aria-current" in link.attributes] == ["day"]
    assert links["month"]["href"] == "/machines/new_device/?mode=age&span=month#charts"
    assert panel["data-charts"] == "/machines/new_device/charts.json?span=day"
    assert len(client.get(panel["data-charts"]).json()["at"]) == 96
    assert client.get("/?span=year").status_code == client.get("/charts.json?span=year").status_code == 404


def test_a_time_nobody_measured_is_said_with_what_happened_in_it(as_, minute):
    Measurement.objects.create(machine="new_device", period=0, at=minute - 1800, covered=1_200_000, transitions=77)
    panel = read(as_("viewer").get("/")).one("section", id="charts")
    assert "no data from" in panel.text
    assert "77 transitions" in panel.text


def test_nobody_sees_charts_of_machines_out_of_their_scope(as_, user_of, engine, activation, minute):
    adopt(activation)
    adopt("new_device")
    somebody = as_("nobody", "one-machine")
    assign_perm(
        "machines.view_machine",
        get_user_model().objects.get(username="one-machine"),
        Machine.objects.get(name=activation),
    )
    told = somebody.get("/charts.json")
    assert told.status_code == 200
    assert "new_device" not in told.content.decode()
    assert all(value is None for chart in told.json()["charts"] for line in chart["lines"] for value in line["values"])
    assert somebody.get("/machines/activation/charts.json").status_code == 200
    assert somebody.get("/machines/new_device/charts.json").status_code == 403
    assert somebody.get("/queues/new_device/start/charts.json").status_code == 403
