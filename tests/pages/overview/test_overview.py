"""The first page: what there is, how much of it, and what needs a person."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.alarms import queries
from dashboard.models import SavedView
from dashboard.shared.counts import Depth
from machines.alarms import detection as alarms
from machines.catalog import builtin_machines, publishing
from machines.engine import Refused, WorkerInfo
from machines.insight.statistics import recording
from machines.insight.statistics.present import Storm
from machines.models import Approval, Machine
from machines.people.permissions import EVERYTHING, NOTHING
from tests.cases import for_each
from tests.configuration import configure
from tests.engine.builders import machine
from tests.pages.reading import read


def worker(*queues: str, ago: float = -3600) -> WorkerInfo:
    """A worker that was seen so many seconds ago; the cases below are made long before they run."""
    now = int(time.time() * 1000)
    return WorkerInfo("w1", "box", 1, list(queues), in_hand=0, started=now, seen=now - int(ago * 1000), version="0.1.0")


def quiet(*queues: str) -> WorkerInfo:
    """One that takes no further jobs."""
    return replace(worker(*queues), status="quiet")


def listed_machines(page) -> list[str]:
    return [row["data-machine"] for row in page.all("tr") if "data-machine" in row.attributes]


def test_an_empty_site_says_how_to_publish_a_first_machine(as_, prefix):
    page = read(as_("publisher").get("/"))
    assert "No machines yet" in page.text
    assert "python manage.py machine publish order.json" in page.text
    assert f'", prefix="{prefix}")' in page.text
    assert "Engine.from_url" not in read(as_("viewer").get("/")).text


def test_a_machine_without_instances_says_how_to_create_one(as_, activation):
    assert read(as_("operator").get("/")).one("a", href="/machines/activation/#create")


def test_every_machine_shows_its_counts_by_state_in_the_order_of_the_definition(as_, engine, waiting):
    engine.create("activation", "second")
    row = read(as_("viewer").get("/")).one("tr", data_machine="activation")
    assert row.one(data_total="").text == "2"
    counts = [(block["data-state"], block.one(data_count="").text) for block in row.all("span", class_="block")]
    assert counts == [("New", "1"), ("Waiting", "1"), ("Active", "0"), ("Suspended", "0")]


def test_a_machine_with_many_states_shows_the_fullest_and_says_how_many_are_left_out(as_, engine, db):
    states = {f"s{number}": {"on": {"go": "s29"}} for number in range(30)}
    engine.publish({"id": "long", "initial": "s0", "states": states})
    engine.create("long", "one")
    engine.fire("long", "one", "go")
    row = read(as_("viewer").get("/")).one("tr", data_machine="long")
    assert "18 more states" in row.one(class_="bar-of-states")["aria-label"]
    assert row.one("span", data_state="s29").one(data_count="").text == "1"


def test_queue_depths_and_workers_are_on_the_first_page(as_, engine, devices):
    engine.create(devices, "one")
    engine.beat(worker("new_device/start", ago=0))
    page = read(as_("viewer").get("/"))
    (row,) = (each for each in page.all("tr") if "data-queue" in each.attributes)
    assert row["data-queue"] == "new_device/start", "queues without jobs are not listed"
    assert row.one("td", data_place="ready").text == "1"
    assert "box 1" in page.text


def test_a_machine_a_script_published_shows_and_showing_it_writes_nothing(as_, engine, activation):
    assert not Machine.objects.exists()
    assert read(as_("viewer").get("/")).one("tr", data_machine="activation")
    assert not Machine.objects.exists()


def test_a_machine_redis_no_longer_has_is_named(as_, engine, activation):
    client = as_("viewer")
    publishing.adopt_published({})
    engine.client.delete(engine.keys.machines)
    assert "Machine activation is in the database but missing in Redis" in read(client.get("/")).text


def test_redis_away_is_a_503_with_its_code(as_, activation, settings):
    client = as_("viewer")
    configure(settings, REDIS_URL="unix:///nonexistent/signalbox.sock")
    answer = client.get("/")
    assert answer.status_code == 503
    assert "SB500" in read(answer).text


@for_each(
    "depth, workers, said",
    [
        (Depth("m", "q", 0, 0, 0, 0), [], []),
        (Depth("m", "q", 0, 0, 0, 1), [], ["1 job dead on m/q"]),
        (Depth("m", "q", 1200, 0, 0, 0), [], ["no worker is running: 1,200 jobs ready on m/q"]),
        (Depth("m", "q", 1, 0, 0, 0), [worker("m/other")], ["1 job ready on m/q, but no worker serves it"]),
        (Depth("m", "q", 1, 0, 0, 0), [worker("m/q", ago=60)], ["no worker is running: 1 job ready on m/q"]),
        (Depth("m", "q", 1, 0, 0, 0), [worker("m/q")], []),
        (Depth("m", "q", 1, 0, 0, 0), [quiet("m/q")], ["worker box 1 is quiet: queue m/q waits for it"]),
    ],
)
def test_an_alarm_is_raised_for_what_will_not_mend_itself(depth, workers, said):
    assert [alarm.text for alarm in alarms.raise_alarms(alarms.Figures([depth], workers))] == said


@pytest.mark.parametrize(
    ("overdue", "workers", "said"),
    [
        ({"m": 0}, [], []),
        ({"m": 1}, [], ["no worker is running: 1 timer of m overdue"]),
        ({"m": 1200}, [worker("m/q", ago=60)], ["no worker is running: 1,200 timers of m overdue"]),
        ({"m": 3}, [worker("m/q")], []),  # it is about to fire them
    ],
)
def test_timers_that_nobody_fires_raise_an_alarm(overdue, workers, said):
    raised = alarms.raise_alarms(alarms.Figures([], workers, overdue))
    assert [alarm.text for alarm in raised] == said
    assert [queries.link_alarm(alarm, EVERYTHING).url for alarm in raised] == ["/workers/"] * len(said)


def test_an_alarm_leads_to_what_it_is_about():
    raised = alarms.raise_alarms(alarms.Figures([Depth("m", "q", 1, 0, 0, 2)], []))
    assert [queries.link_alarm(alarm, EVERYTHING).url for alarm in raised] == ["/queues/m/q/?place=dead", "/workers/"]


@for_each(
    "given, workers, said, leads",
    [
        ({"approvals": 1}, [], "1 action waits for approval", "/approvals/"),
        ({"approvals": 12}, [], "12 actions wait for approval", "/approvals/"),
        (
            {"late": {"m": 2}},
            [worker("m/q")],
            "2 timers of m due, but the step fails; retried every minute",
            "/machines/m/",
        ),
        ({"unmeasured": 300_000}, [worker("m/q")], "", ""),
        ({"unmeasured": 400_000}, [], "", ""),  # no worker runs: that is said elsewhere
        (
            {"unmeasured": 400_000},
            [worker("m/q")],
            "no metrics recorded for 6 min although workers are running: see the worker logs",
            "/workers/",
        ),
        (
            {"storms": [Storm("m", 1234.4, ["entitle", "", "close", "open"])]},
            [],
            "about 1,234 events per minute refused by m: entitle, events that no state accepts, close and 1 more",
            "/machines/m/#chart-refused",
        ),
        (
            {"stuck": [alarms.StuckCount("m", "On hold", 3, 900_000)]},
            [],
            "3 instances of m in On hold for longer than 15 min",
            "/machines/m/?state=On+hold&older=15m#instances",
        ),
    ],
)
def test_each_alarm_says_what_is_wrong_and_leads_to_it(given, workers, said, leads):
    raised = [queries.link_alarm(alarm, NOTHING) for alarm in alarms.raise_alarms(alarms.Figures([], workers, **given))]
    assert [(alarm.text, alarm.url, alarm.act_url) for alarm in raised] == ([(said, leads, "")] if said else [])


def test_failing_timers_and_those_nobody_fires_are_not_both_told():
    raised = alarms.raise_alarms(alarms.Figures([], [], {"m": 3}, late={"m": 3}))
    assert [alarm.text for alarm in raised] == ["no worker is running: 3 timers of m overdue"]


def test_who_may_repair_gets_the_form_for_all_that_are_late(as_, engine, db):
    engine.publish(machine("desk", {"Open": {"sla": "15m", "on": {"take": "Taken"}}, "Taken": {}}))
    engine.create("desk", "slow", now=int(time.time() * 1000) - 3_600_000)
    assert not read(as_("operator").get("/")).all("a", class_="mend")
    client = as_("supervisor")
    mend = read(client.get("/")).one("a", class_="mend")
    assert mend["href"] == "/machines/desk/bulk/?state=Open&older=15m"
    form = client.get(mend["href"])
    assert form.status_code == 200
    assert "Open" in read(form).one("main").text


def test_a_storm_of_refusals_and_what_waits_for_approval_are_on_the_first_page(as_, engine, activation, waiting):
    def measure(ago: int) -> None:
        seen = engine.survey()
        at = int(time.time() * 1000) - ago
        lives = {name: replace(live, now=at) for name, live in seen.lives.items()}
        recording.record(replace(seen, lives=lives), recording.turn(), now=at)

    measure(60_000)
    for _ in range(100):
        with pytest.raises(Refused):
            engine.fire(activation, waiting.id, "activate")
    measure(1_000)
    Approval.objects.create(machine=activation, instance=waiting.id, action="force", asker="ann", reason="x")
    page = read(as_("viewer").get("/"))
    told = [link.text for link in page.one("ul", class_="alarms").all("a")]
    assert told[1] == "1 action waits for approval"
    assert re.fullmatch(r"about (9\d|100) events per minute refused by activation: activate", told[0])
    row = page.one("tr", data_machine="activation")
    assert re.search(r"0 /min \d+ s Waiting 0 (9\d|100) 0", row.text)
    page = read(as_("viewer", "another").get("/machines/activation/"))
    assert page.one("h3", id="chart-refused").text == "Refused events"


def test_of_many_alarms_the_worst_are_listed_and_the_others_counted(as_, engine, db):
    for number in range(10):
        engine.publish(machine(f"desk{number}", {"Open": {"sla": "15m"}}))
        engine.create(f"desk{number}", "slow", now=int(time.time() * 1000) - 3_600_000)
    panel = read(as_("viewer").get("/")).one("section", class_="alarm-list")
    assert len(panel.all("li", class_="alarm")) == 8
    assert panel.one("span", class_="aside").text == "10 alarms"
    assert [link["href"] for link in panel.all("a") if link.text == "2 more alarms"] == ["/alarms/"]


def test_saved_views_are_listed(as_, activation):
    client = as_("viewer", "vera")
    SavedView.objects.create(
        owner=get_user_model().objects.get(username="vera"),
        name="stuck codes",
        page="/machines/activation/",
        query="state=Waiting",
    )
    link = read(client.get("/")).one("nav", aria_label="Saved views").one("a")
    assert (link.text, link["href"]) == ("stuck codes", "/machines/activation/?state=Waiting")
    assert not read(as_("viewer").get("/")).all("nav", aria_label="Saved views")


@pytest.mark.parametrize("recorded", [True, False], ids=["recorded", "published by a script"])
def test_it_asks_the_database_no_more_often_however_many_machines_there_are(as_, engine, db, recorded):
    client = as_("viewer")
    asked = []
    for number in (1, 7):
        for place in range(number):
            engine.publish(machine(f"m{number}-{place}", {"A": {"sla": "15m"}}))
            engine.create(f"m{number}-{place}", "late", now=int(time.time() * 1000) - 3_600_000)
        if recorded:
            publishing.adopt_published({})
        client.get("/")  # the first request of a process asks for more
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/").status_code == 200
        asked.append(len(queries))
    assert asked[0] == asked[1]


@pytest.fixture
def crowd(engine, db) -> list[str]:
    """Sixty machines; the last one has a timer that is overdue."""
    door = {"Shut": {"on": {"open": "Open"}}, "Open": {"after": {"1s": "Shut"}}}
    names = [engine.publish(machine(f"door{number:02}", door)).name for number in range(60)]
    engine.create("door59", "x", now=1_700_000_000_000)
    engine.fire("door59", "x", "open", now=1_700_000_000_000)
    return names


def test_of_very_many_machines_those_in_trouble_come_first_and_the_others_on_further_pages(as_, crowd):
    viewer = as_("viewer")
    first, second = (read(viewer.get(f"/?page={number}")) for number in (1, 2))
    shown = [listed_machines(page) for page in (first, second)]
    assert shown == [["door59", *crowd[:49]], crowd[49:59]]
    assert first.one("b", data_sum="total").text == "1"
    assert "50 of 60 machines" in first.all("nav", class_="pager")[0].text
    topics = [page.one("div", data_region="machines")["data-topic"] for page in (first, second)]
    assert topics == ["overview:" + ",".join(sorted(names)) for names in shown]


def test_few_machines_stand_on_one_page_by_name_and_the_socket_sends_all(as_, activation):
    page = read(as_("viewer").get("/?page=7"))
    assert page.one("div", data_region="machines")["data-topic"] == "overview"
    assert not page.all("nav", class_="pager")


def test_machines_of_the_product_are_listed_under_the_system_filter_alone(as_, engine, activation, transactional_db):
    builtin_machines.publish(engine, "bulk")
    engine.create("bulk", "3f2a")
    client = as_("viewer")
    page = read(client.get("/"))
    assert listed_machines(page) == ["activation"]
    assert page.one("b", data_sum="total").text == "0"
    assert page.one(data_topic="overview")["data-hidden-machines"] == "bulk"
    link = page.one("a", data_system="")
    assert link.text == "Show system machines (1)"
    shown = read(client.get(link["href"]))
    assert sorted(listed_machines(shown)) == ["activation", "bulk"]
    assert shown.one("b", data_sum="total").text == "1"
    assert shown.one("a", data_system="").text == "Hide system machines (1)"


def test_trouble_in_a_machine_of_the_product_is_an_alarm_though_it_is_not_listed(as_, engine, transactional_db):
    builtin_machines.publish(engine, "bulk")
    engine.create("bulk", "3f2a")
    page = read(as_("viewer").get("/"))
    assert "ready on bulk/collect" in page.one("ul", class_="alarms").text
    assert not page.all("tr", data_queue="bulk/bulk")
