"""A search for words tells nothing that a person may not read: neither by a hit nor by a count."""

from __future__ import annotations

import pytest
from django.urls import reverse

from dashboard.models import SavedView
from machines.audit.redaction import Concealed
from machines.catalog import publishing
from machines.engine import Engine
from machines.instances.bulks import Order
from machines.instances.bulks import actions as bulks
from machines.people.actor import Actor
from tests.cases import for_each
from tests.security.disclosure.test_guesses import make_user

SECRET, COPY = "DE4412345", "paid from DE4412345 on Monday"
SHELF = {
    "id": "shelf",
    "initial": "A",
    "index": ["note"],
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


def find(client, word: str, term: str = "text", written: str = "{}") -> tuple[list[str], int, int]:
    asked = {term: written.format(word)}
    answer = client.get(reverse("signalbox:machine", args=["shelf"]), asked)
    page = answer.context["page"]
    return sorted(one.id for one in page.table.page.instances), page.table.found, page.counts.total


def find_anywhere(client, word: str) -> list[tuple[str, tuple[str, ...]]]:
    words = client.get(reverse("signalbox:search"), {"q": word, "all": "1"}).context["words"]
    assert word not in str(words)
    return sorted((hit.name, hit.places) for hit in words.hits if hit.kind != "definition")


@for_each("word", [SECRET, "de44", "paid from", "closed", "12345"])
def test_what_is_hidden_is_not_searched(shelf, client, django_user_model, word):
    client.force_login(django_user_model.objects.filter(username="vi").first() or make_user("vi", "view"))
    assert find(client, word) == ([], 0, 0)
    assert find_anywhere(client, word) == []


def test_it_is_searched_for_those_who_may_read_it(shelf, client):
    client.force_login(make_user("rita", "view", "reveal"))
    assert find(client, "de4412") == (["copy", "nested", "own"], 3, 3)
    assert find(client, "is closed")[1] == 1
    found = [("copy", ("data iban", "data note")), ("nested", ("data parts",)), ("own", ("data iban", "error"))]
    assert find_anywhere(client, "de4412") == found
    assert [places for _, places in find_anywhere(client, "closed")] == [("error",)]


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
    lines = ("data=iban%3ADE4*", "data=note%3Aa+iban%3EDE4", "query=Monday", "query=data.iban%3ADE4*")
    for query in (f"text={SECRET}", *lines):
        with pytest.raises(Exception, match="cannot be shared"):
            _make_shared_view(user, query).clean()
    _make_shared_view(user, "data=note%3Aa&query=data.note%3Aa").clean()


def _make_shared_view(user, query):
    return SavedView(owner=user, name="ours", page="/machines/shelf/", query=query, shared=True)


def test_an_open_field_is_not_found_by_the_copy_of_a_hidden_value_it_holds(shelf, client):
    for note in ("pa", "D"):
        shelf.create("shelf", f"free-{note}", {"note": f"{note}rt"})
    shelf.create("shelf", "deep", {"parts": [{"iban": "XY998877"}], "note": "XY998877"})
    client.force_login(make_user("vi", "view"))
    assert find(client, "pa*", "data", "note:{}") == (["free-pa"], 1, 1)
    assert find(client, "XY*", "data", "note:{}") == ([], 0, 0)
    assert find(client, "A", "data", "note>{}")[1:] == (2, 2)
    client.force_login(make_user("rita", "view", "reveal"))
    assert find(client, "pa*", "data", "note:{}") == (["copy", "free-pa"], 2, 2)
    assert find(client, "XY*", "data", "note:{}") == (["deep"], 1, 1)
