"""Schedules on pages: listed, made by the form, run, backfilled, paused, removed."""

from __future__ import annotations

import pytest

from machines.models import AuditEntry
from machines.schedules import Schedules
from tests.pages.reading import read
from tests.schedules.clock import WHAT
from tests.schedules.conftest import REPORT

NIGHTLY = {"name": "nightly", "when": {"cron": "30 2 * * *"}, "zone": "Europe/Zurich", "what": WHAT}
FIELDS = {
    "name": "remind-all", "when": "every 61m", "zone": "Europe/Zurich", "event": "remind",
    "filter": '{"state": "open"}', "overlap": "skip", "catch_up": "none",
}  # fmt: skip
NEW = "/machines/report/schedules/new/"


@pytest.fixture
def schedules(engine) -> Schedules:
    engine.publish(REPORT)
    return Schedules(engine)


def test_the_list_shows_when_each_runs_next(as_, schedules):
    schedules.put(NIGHTLY)
    client = as_("viewer")
    page = client.get("/schedules/")
    assert "nightly" in page.text
    assert "At 02:30 every day" in page.text
    assert "30 2 * * *" in page.text
    assert "New schedule" not in page.text
    assert client.get("/schedules/?machine=nothing").status_code == 404


def test_a_new_one_is_made_for_a_machine_that_is_chosen_first(as_, schedules):
    client = as_("supervisor")
    assert "New schedule" in client.get("/schedules/").text
    assert "Choose a machine first" in client.get("/schedules/?machine=&new=1").text
    assert client.get("/schedules/?machine=report&new=1").url == NEW


def test_a_form_shows_the_next_runs_and_then_makes_the_schedule(as_, schedules):
    client = as_("supervisor")
    assert "What should happen?" in client.get(NEW).text
    shown = client.post(f"{NEW}?do=fire_all", FIELDS | {"preview": "yes"})
    assert shown.text.count("<li>") >= 5
    assert schedules.find() == []
    made = client.post(f"{NEW}?do=fire_all", FIELDS)
    assert (made.status_code, made.url) == (302, "/schedules/remind-all/")
    assert schedules.get("remind-all").schedule.as_dict() == {
        "name": "remind-all", "zone": "Europe/Zurich", "overlap": "skip", "catch_up": "none", "when": {"every": "61m"},
        "what": {"do": "fire_all", "machine": "report", "event": "remind", "filter": {"state": "open"}},
    }  # fmt: skip
    again = client.post(f"{NEW}?do=fire_all", FIELDS)
    assert again.status_code == 400
    assert "is taken" in again.text
    changed = client.post("/schedules/remind-all/change/", FIELDS | {"when": "0 7 * * MON"})
    assert changed.url == "/schedules/remind-all/"
    assert schedules.get("remind-all").schedule.as_dict()["when"] == {"cron": "0 7 * * MON"}


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"when": "*/61 * * * *"}, "when", "61"),
        ({"when": "0 0 30 2 *"}, "when", ""),
        ({"zone": "Europe/Atlantis"}, "zone", "Atlantis"),
        ({"event": "remidn"}, "event", "did you mean remind?"),
        ({"filter": "{state: open}"}, "filter", "This is no JSON"),
        ({"jitter": "2h"}, "jitter", ""),
    ],
    ids=str,
)
def test_what_is_wrong_stands_at_its_field(as_, schedules, wrong, field, said):
    page = as_("supervisor").post(f"{NEW}?do=fire_all", FIELDS | wrong)
    assert page.status_code == 400
    form = page.context["form"]
    assert set(form.errors) == {field}
    assert said in form.errors[field][0]
    assert schedules.find() == []


def test_an_operator_runs_pauses_backfills_and_removes_it(as_, schedules):
    schedules.put(NIGHTLY)
    client = as_("supervisor")
    page = client.get("/schedules/nightly/")
    assert page.text.count("<li>") == 5
    dialogs = [section["id"] for section in read(page).all("section", class_="sheet")]
    assert dialogs == [f"act-{verb}-sheet" for verb in ("run", "pause", "take_over", "backfill", "remove")]
    assert read(page).one("label", for_="act-backfill-start").text == "from, in Europe/Zurich required"
    assert client.post("/schedules/nightly/run/", {"key": "k"}).status_code == 302
    assert client.post("/schedules/nightly/run/", {"key": "k"}).status_code == 302
    assert schedules.get("nightly").waiting == 1
    client.post("/schedules/nightly/pause/", {"reason": "the printer is away"})
    assert schedules.get("nightly").state == "paused"
    assert "None while it is paused" in client.get("/schedules/nightly/").text
    client.post("/schedules/nightly/resume/")
    days = {"start": "2026-11-01", "end": "2026-11-04"}
    counted = client.post("/schedules/nightly/backfill/", days)
    assert "Run 3 now" in counted.text
    listed = read(counted).one("form", action="/schedules/nightly/backfill/").all("li")
    assert [one.text for one in listed] == [f"2026-11-0{day}T02:30:00+01:00" for day in (1, 2, 3)]
    assert schedules.get("nightly").waiting == 1
    assert client.post("/schedules/nightly/backfill/", days | {"confirm": ""}).status_code == 302
    assert schedules.get("nightly").waiting == 2
    assert client.post("/schedules/nightly/backfill/", {"start": "soon", "end": "later"}).status_code == 400
    client.post("/schedules/nightly/remove/", {"name": "another"})
    assert schedules.get("nightly")
    assert client.post("/schedules/nightly/remove/", {"name": "nightly"}).url == "/schedules/"
    assert schedules.find() == []
    assert AuditEntry.objects.filter(action="schedule.pause", reason="the printer is away").count() == 1


def test_one_that_is_declared_is_not_changed_by_people(as_, schedules):
    schedules.put(NIGHTLY, source="code")
    client = as_("supervisor")
    page = client.get("/schedules/nightly/")
    assert "Change" not in page.text
    assert "Run now" in page.text
    assert client.get("/schedules/nightly/change/").status_code == 302
    client.post("/schedules/nightly/remove/", {"name": "nightly"})
    assert schedules.get("nightly")
