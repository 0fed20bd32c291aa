"""A search for words tells nothing that a person may not read: neither by a hit nor by a count."""

from __future__ import annotations

import pytest
from django.urls import reverse

from dashboard.models import SavedView
from machines.bulks import Order
from machines.bulks import actions as bulks
from machines.catalog import publishing
from machines.catalog.redaction import Concealed
from machines.engine import Engine
from machines.people.actor import Actor
from tests.cases import for_each
from tests.security.disclosure.test_guesses import make_user

SECRET, COPY = "DE4412345", "paid from DE4412345 on Monday"
SHELF = {
    "id": "shelf",
    "initial": "A",
    "context": {
        "type": "object",
        "properties": {
            "iban": {"type": "string", "default": "", "sensitive": True},
            "note": {"type": "string", "default": ""},
            "parts": {"type": "array", "default": []},
        },
    },
    "states": {"A": {"invoke": {"src": "pay", "input": {"to": "iban"}}}},
}


@pytest.fixture
def shelf(engine: Engine, db: None) -> Engine:
    publishing.publish(SHELF)
    engine.create("shelf", "own", {"iban": SECRET})
    engine.create("shelf", "copy", {"iban": SECRET, "note": COPY})
    engine.create("shelf", "nested", {"parts": [{"iban": SECRET}]})
    job = engine.take("shelf", "pay", worker="w")[0]
    engine.fail(job, f"{SECRET} is closed", kind="Refused", retry=False)
    return engine


def find(client, word: str) -> tuple[list[str], int, int]:
    answer = client.get(reverse("signalbox:machine", args=["shelf"]), {"text": word})
    page = answer.context["page"]
    counted = client.get(reverse("signalbox:counts", args=["shelf"]), {"text": word}).json()
    return sorted(one.id for one in page.table.page.instances), page.table.found, counted["total"]


@for_each("word", [SECRET, "de44", "paid from", "closed", "12345"])
def test_what_is_hidden_is_not_searched(shelf, client, django_user_model, word):
    client.force_login(django_user_model.objects.filter(username="vi").first() or make_user("vi", "view"))
    assert find(client, word) == ([], 0, 0)


def test_it_is_searched_for_those_who_may_read_it(shelf, client):
    client.force_login(make_user("rita", "view", "reveal"))
    assert find(client, "de4412") == (["copy", "nested", "own"], 3, 3)
    assert find(client, "is closed")[1] == 1


def test_ids_and_open_fields_are_found_by_anybody(shelf, client):
    shelf.create("shelf", "free", {"note": "Monday"})
    client.force_login(make_user("vi", "view"))
    assert find(client, "monday") == (["free"], 1, 1)
    assert find(client, "NEST") == (["nested"], 1, 1)


def test_words_of_a_bulk_or_a_shared_view_could_be_what_is_hidden(shelf):
    user = make_user("rita", "view", "reveal", "operate")
    order = Order("shelf", "suspend", "rita", "why", {"text": [SECRET]})
    with pytest.raises(Concealed):
        bulks.start(Actor(user, "page"), order)
    with pytest.raises(Exception, match="cannot be shared"):
        SavedView.for_all(user, "/machines/shelf/", f"text={SECRET}")
