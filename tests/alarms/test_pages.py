"""The pages of alarms: forms that work without script, the snoozed ones, the history."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from machines.alarms import recording
from machines.models import AlarmEvent, AlarmState, FailureGroup
from tests.jobs.failures.conftest import die, follow
from tests.pages.reading import read

from .conftest import KEY

__all__ = ["die", "follow"]

TEXT = "1 instance of desk in Open for longer than 15 min"


def test_an_alarm_shows_severity_age_and_what_to_do(as_, desk):
    item = read(as_("viewer").get("/alarms/")).one("li", data_alarm=KEY)
    assert item.one("span", class_="severity").text == "warning"
    assert item.one("span", class_="age").text.startswith("45 min")
    assert "Open the oldest instance" in item.text
    assert "no owner" in item.text
    assert not item.all("form")


def test_an_alarm_of_dead_jobs_names_their_most_frequent_error_and_leads_to_it(as_, die, follow):
    die("a", kind="BankRefused", error="no")
    die("b", "c", kind="BankUnavailable", error="away")
    die("d", machine="other", kind="Odd")
    follow()
    client = as_("viewer")
    group = FailureGroup.objects.get(kind="BankUnavailable")
    for path in ("/", "/alarms/"):
        item = read(client.get(path)).one("li", data_alarm="dead:errand/work")
        assert item.one("a", href=f"/errors/{group.pk}/").text == "2 × BankUnavailable, 1 other"
    listed = {one["key"]: one for one in client.get("/api/v1/alarms").json()["items"]}["dead:errand/work"]
    assert (listed["error"], listed["error_url"]) == ("2 × BankUnavailable, 1 other", f"/errors/{group.pk}/")
    sent = {"key": "dead:errand/work"}
    taken = as_("supervisor").post("/api/v1/alarms/acknowledge", sent, content_type="application/json").json()
    assert (taken["error"], taken["error_url"]) == (listed["error"], listed["error_url"])
    assert "1 × Odd" in read(client.get("/alarms/")).one("li", data_alarm="dead:other/work").text


def test_a_person_takes_and_acknowledges_it_from_the_overview(as_, desk):
    client = as_("supervisor", "ann")
    item = read(client.get("/")).one("li", data_alarm=KEY)
    assert {form["action"] for form in item.all("form")} == {"/alarms/acknowledge/", "/alarms/assign/"}
    sent = {"key": KEY, "owner": "ann", "next": "/"}
    assert client.post("/alarms/assign/", sent)["Location"] == "/"
    assert client.post("/alarms/acknowledge/", {"key": KEY, "next": "https://example.com/"})["Location"] == "/alarms/"
    item = read(client.get("/")).one("li", data_alarm=KEY)
    assert "owner ann" in item.text
    assert "✓ ann" in item.text
    assert not item.all("form")


def test_a_snoozed_alarm_leaves_the_overview_and_stands_apart(as_, desk):
    client = as_("supervisor", "ann")
    sent = {"key": KEY, "minutes": "60", "reason": "the supplier knows"}
    assert client.post("/alarms/snooze/", sent).status_code == 302
    page = read(client.get("/"))
    assert not page.all("li", data_alarm=KEY)
    assert page.one("a", href="/alarms/#snoozed").text == "Snoozed (1)"
    page = read(client.get("/alarms/"))
    assert "Snoozed by ann: the supplier knows" in page.one("li", data_alarm=KEY).text
    assert client.get("/api/v1/alarms").json()["items"] == []
    assert client.get("/api/v1/alarms?snoozed=true").json()["items"][0]["snooze_reason"] == "the supplier knows"
    client.post("/alarms/wake/", {"key": KEY})
    assert read(client.get("/")).one("li", data_alarm=KEY)


@pytest.mark.parametrize(
    ("path", "sent", "told"),
    [
        ("snooze", {"minutes": "60", "reason": " "}, "reason"),
        ("snooze", {"minutes": "7", "reason": "x"}, "minutes"),
        ("assign", {"owner": "nobody"}, "no active account"),
    ],
)
def test_a_form_that_does_not_fit_stays_open_and_says_why(as_, desk, path, sent, told):
    answer = as_("supervisor").post(f"/alarms/{path}/", {"key": KEY, **sent})
    assert answer.status_code == 400
    item = read(answer).one("li", data_alarm=KEY)
    assert told in item.one("p", class_="error").text
    assert "open" in item.one("details", class_="more-actions").attributes


def test_an_alarm_that_is_over_is_said_to_be(as_, desk, engine):
    client = as_("supervisor")
    engine.fire("desk", "old", "take")
    page = read(client.post("/alarms/acknowledge/", {"key": KEY}, follow=True))
    assert "Not done: no alarm" in page.text
    assert not AlarmState.objects.exists()


def test_the_list_is_filtered(as_, desk):
    client = as_("viewer")
    assert not read(client.get("/alarms/?severity=critical")).all("li", data_alarm=KEY)
    assert read(client.get("/alarms/?severity=warning&machine=desk")).one("li", data_alarm=KEY)
    assert not read(client.get("/alarms/?machine=other")).all("li", data_alarm=KEY)
    assert client.get("/alarms/?severity=loud").status_code == 404


def test_the_history_says_what_happened_and_is_filtered(as_, desk):
    client = as_("supervisor", "ann")
    recording.record_alarms()
    client.post("/alarms/assign/", {"key": KEY, "owner": "ann"})
    rows = [row.text for row in read(client.get("/alarms/history/")).one("table").one("tbody").all("tr")]
    assert len(rows) == 2
    assert "assigned to ann" in rows[0]
    assert "raised" in rows[1]
    assert "worker" in rows[1]
    assert "No events" in read(client.get("/alarms/history/?event=cleared")).text
    assert TEXT in read(client.get(f"/alarms/history/?key={quote(KEY)}")).text
    assert client.get("/alarms/history/?event=x").status_code == 404


def test_the_history_goes_on(as_, desk):
    client = as_("viewer")
    about = {"key": KEY, "kind": "sla", "machine": "desk", "severity": "warning", "text": "x", "event": "raised"}
    AlarmEvent.objects.bulk_create(AlarmEvent(**about) for _ in range(51))
    page = read(client.get("/alarms/history/"))
    older = page.one("a", rel="next")["href"]
    assert len(read(client.get(older)).one("tbody").all("tr")) == 1
