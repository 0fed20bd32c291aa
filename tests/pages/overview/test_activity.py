"""Who and what was active, on the overview, a machine's page, the API and /metrics."""

from __future__ import annotations

import time

import pytest
from django.test import Client
from guardian.shortcuts import assign_perm

from dashboard.shared.counts import format_count
from dashboard.shared.permissions import RIGHTS
from machines.audit import entries
from machines.catalog.publishing import adopt
from machines.patterns import Count
from machines.patterns.cardinality import ERROR
from machines.people import tokens
from tests.configuration import configure
from tests.engine.builders import machine
from tests.pages.reading import read


@pytest.fixture
def moved(engine, activation, waiting):
    """One instance of ``activation`` and two of ``lamp`` have moved, a second ago."""
    engine.publish(machine("lamp", {"off": {"on": {"press": "on"}}, "on": {}}))
    for id in ("a", "b"):
        engine.create("lamp", id, now=int(time.time() * 1000) - 1000)
    while engine.live(activation).now <= waiting.entered:  # what moves this very millisecond counts with the next look
        pass
    engine.activity().count()


@pytest.fixture
def of_one(user_of, moved):
    """Somebody who may see the machine ``lamp`` alone; a user."""
    user = user_of("nobody", "lamplighter")
    assign_perm(RIGHTS["view"], user, adopt("lamp"))
    return user


def row(page, number: int) -> list[str]:
    return [cell.text for cell in page.one("table", class_="actives").all("tr")[number].all("td")]


def test_the_overview_counts_instances_and_people_each_once(as_, user_of, moved):
    entries.record(user_of("operator", "ann"), "fire")
    entries.record("a worker", "fire")
    page = read(as_("supervisor").get("/"))
    assert row(page, 1) == ["3", "3", "3"]
    assert row(page, 2) == ["1", "1", "1"]
    assert page.one("table", class_="actives").one("a")["href"] == "/audit/?outcome=done"
    assert not read(as_("viewer").get("/")).one("table", class_="actives").all("a")


def test_who_sees_some_machines_sees_what_moved_there_and_no_figure_of_all(client, of_one, moved):
    client.force_login(of_one)
    page = read(client.get("/"))
    assert row(page, 1) == ["2", "2", "2"]
    assert len(page.one("table", class_="actives").all("tr")) == 2
    _, key = tokens.make(of_one, "lamps", [*RIGHTS])
    answer = client.get("/api/v1/activity", headers={"Authorization": f"Bearer {key}"}).json()
    assert (answer["moved"]["week"]["number"], answer["operators"], list(answer["machines"])) == (2, None, ["lamp"])


def test_a_machine_tells_how_many_of_its_own_moved(as_, moved):
    head = read(as_("viewer").get("/machines/lamp/")).one("div", class_="head").text
    assert "changed today 2" in head


def test_an_estimate_has_three_digits_and_says_how_good_it_is():
    assert format_count(Count(1204, True, 0.0, 0)).text == "1,204"
    assert format_count(Count(123_456, False, ERROR, 0)).text == "≈ 123,000"
    assert format_count(Count(2_049, False, 0.0057, 0)).text == "≈ 2,050"
    assert "0.6%" in format_count(Count(2_049, False, 0.0057, 0)).title


def test_the_metrics_have_the_same_figures(settings, moved, user_of):
    configure(settings, METRICS="open")
    entries.record(user_of("operator", "ann"), "fire")
    text = Client().get("/metrics").content.decode()
    assert 'signalbox_instances_moved{machine="lamp",period="month"} 2.0' in text
    assert 'signalbox_operators_active{period="day"} 1.0' in text


def test_something_foreign_among_the_keys_costs_the_counts_alone(as_, engine, activation, prefix):
    day = int(time.time()) // 86_400
    engine.client.set(f"{prefix}distinct:{{operators}}:set:{day}:", "foreign")
    client = as_("viewer")
    assert not read(client.get("/")).all("table", class_="actives")
