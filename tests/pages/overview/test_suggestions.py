"""Suggestions of the palette: what a person may open, the best first, in one bounded answer."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse
from guardian.shortcuts import assign_perm

from dashboard.models import SavedView
from dashboard.overview import palette
from machines.catalog import publishing
from machines.models import Machine
from tests.configuration import configure
from tests.pages.conftest import example


def rows(client, asked: str) -> list[tuple[str, str]]:
    answer = client.get(reverse("signalbox:search-suggestions"), {"q": asked})
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    return [(row["kind"], row["name"]) for row in answer.json()["rows"]]


def test_each_kind_is_found(as_, waiting, devices, engine):
    engine.create(devices, "one")
    client = as_("operator", "alice")
    SavedView.objects.create(
        owner=get_user_model().objects.get(username="alice"), name="late devices", page="/machines/new_device/"
    )
    assert rows(client, waiting.id) == [("instance", waiting.id)]
    assert rows(client, "0-1") == [("job", "0-1")]
    assert rows(client, "queues") == [("place", "Queues")]
    assert rows(client, "provision") == [("queue", "provision")]
    assert rows(client, "device") == [
        ("machine", "new_device"), ("view", "late devices"), ("action", "New instance of new_device"),
    ]  # fmt: skip
    assert {kind for kind, _ in rows(client, "")} == {"place", "view", "action"}


def test_a_viewer_is_offered_nothing_that_they_may_not_do(as_, waiting, devices):
    assert ("action", "New instance of activation") not in rows(as_("viewer"), "activation")
    assert ("place", "Audit") not in rows(as_("viewer", "other"), "")


def test_other_machines_are_not_named(user_of, client, engine, db):
    for name in ("seen", "unseen"):
        publishing.publish(example("activation") | {"id": name})
        engine.create(name, "same")
    user = user_of("nobody", "zoe")
    assign_perm("machines.view_machine", user, Machine.objects.get(name="seen"))
    client.force_login(user)
    answer = client.get(reverse("signalbox:search-suggestions"), {"q": "same"})
    assert [row["of"] for row in answer.json()["rows"]] == ["seen"]
    assert rows(client, "unseen") == []


@pytest.mark.parametrize("asked", ["x" * 3000, "<script>", "\0", "%", "🚦", "' OR 1=1"])
def test_any_text_is_answered_with_twenty_rows_at_most(as_, waiting, asked):
    assert len(rows(as_("supervisor"), asked)) <= 20


def test_headings_of_the_docs_are_found_where_the_setting_says_where_they_are(as_, db, settings):
    client = as_("viewer")
    assert rows(client, "query line") == rows(client, "dead jobs") == []
    configure(settings, DOCS_URL="https://docs.example/1.0.0/")
    found = client.get(reverse("signalbox:search-suggestions"), {"q": "fresh logins"}).json()["rows"]
    assert [(row["kind"], row["name"], row["place"]) for row in found] == [
        ("docs", "Sessions and fresh logins", "Security")
    ]
    assert found[0]["url"] == "https://docs.example/1.0.0/docs/security.html#sessions-and-fresh-logins"
    page = client.get(reverse("signalbox:search"), {"q": "FRESH logins"}).content.decode()
    assert f'href="{found[0]["url"]}">Sessions and fresh logins</a>' in page
    assert "No id or name matches" not in page
    assert rows(client, "zz") == rows(client, "nothing of that kind") == []
    assert "docs.example" not in client.get("/api/v1/search", {"q": "fresh logins"}).content.decode()


def test_a_person_who_asks_too_fast_waits(as_, waiting, monkeypatch):
    monkeypatch.setattr(palette, "LIMIT", 2)
    client = as_("viewer")
    answers = [client.get(reverse("signalbox:search-suggestions"), {"q": "a"}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1]["Retry-After"]) >= 1


def test_words_are_answered_apart(as_, engine, db):
    engine.publish({"id": "ledger", "initial": "A", "context": {"customer": ""}, "states": {"A": {}}})
    for number in range(9):
        engine.create("ledger", f"n{number}", {"customer": "Acme"})
    client = as_("viewer")
    assert rows(client, "acme") == []
    answer = client.get(reverse("signalbox:search-suggestions"), {"q": "acme", "words": "1"}).json()["rows"]
    assert [(row["kind"], row["of"], row["place"]) for row in answer] == [("instance", "ledger", "data customer")] * 5
    short = client.get(reverse("signalbox:search-suggestions"), {"q": "ac", "words": "1"}).json()
    assert short["rows"] == []


@pytest.fixture
def cash(engine, db) -> str:
    """A machine with a queue, and a job in it."""
    engine.publish({"id": "cash", "initial": "A", "states": {"A": {"invoke": {"src": "pay"}}}})
    engine.create("cash", "one")
    return "cash"


def test_what_a_queue_takes_now_is_offered_to_those_who_may(as_, cash, engine):
    supervisor, viewer = as_("supervisor", "sue"), as_("viewer", "vi")
    assert rows(supervisor, "pause pay") == [("action", "Pause queue pay of cash")]
    assert rows(viewer, "pause pay") == []
    engine.pause(cash, "pay", actor="sue", reason="a test")
    assert rows(supervisor, "resume pay") == [("action", "Resume queue pay of cash")]
    assert rows(supervisor, "pause pay") == rows(supervisor, "retry") == []
    engine.resume_queue(cash, "pay", actor="sue", reason="a test")
    engine.fail(engine.take(cash, "pay", worker="w")[0], "no", retry=False)
    assert rows(supervisor, "retry dead") == [("action", "Retry dead jobs (1) of queue pay of cash")]
    assert rows(viewer, "retry dead") == []


def test_alarms_are_opened_and_machines_published_by_those_who_may(as_, cash, engine):
    engine.fail(engine.take(cash, "pay", worker="w")[0], "no", retry=False)
    viewer, publisher = as_("viewer", "vi"), as_("publisher", "pat")
    alarms = rows(viewer, "alarm dead")
    assert alarms
    assert all(name.startswith("Open alarm: ") for _, name in alarms)
    assert rows(viewer, "publish") == []
    assert rows(publisher, "publish cash") == [("action", "Edit and publish cash")]
    assert ("action", "Publish a new machine") in rows(publisher, "publish")
