"""Archived instances on pages and in the API: with the rights and the redaction of those in Redis."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from machines.models import ArchivedInstance
from machines.people.permissions import RIGHTS

from .conftest import run

EMAIL = "eve@example.org"
PAGE = "/machines/parcel/instances/p-1/"
API = "/api/v1/machines/parcel/instances/p-1"


@pytest.fixture
def having(transactional_db, prefix):
    """A client with these rights."""

    def made(*rights: str) -> Client:
        user = get_user_model().objects.create_user(f"with-{'-'.join(rights)}", password="let me in")
        codes = [RIGHTS[right].partition(".")[2] for right in rights]
        user.user_permissions.set(Permission.objects.filter(codename__in=codes))
        client = Client()
        client.force_login(user)
        return client

    return made


@pytest.fixture
def gone(duty, ship):
    """``p-1`` is in the archive, ``p-2`` still in Redis."""
    ship("p-1", email=EMAIL, note=f"call {EMAIL}", retain="1d")
    ship("p-2", ago=0, retain="1d")
    run(duty)
    assert ArchivedInstance.objects.count() == 1


def test_its_page_shows_it_as_before_with_a_mark_and_without_actions(gone, having):
    page = having("view", "fire", "operate", "reveal").get(PAGE).content.decode()
    assert "Archived on" in page
    assert "data-archived" in page
    assert EMAIL in page
    assert "by phone" in page
    for action in ('id="actions"', 'id="repairs"', 'action="/machines/parcel/instances/p-1/fire/"'):
        assert action not in page
    live = having("view", "fire").get("/machines/parcel/instances/p-2/").content.decode()
    assert "Archived on" not in live


def test_the_search_box_finds_it_by_its_id(gone, having, engine):
    client = having("view")
    answer = client.get("/search/", {"q": "p-1"})
    assert (answer.status_code, answer.url) == (302, PAGE)
    listed = client.get("/search/", {"q": "p-1", "all": "1"})
    assert [(hit.kind, hit.name, hit.of) for hit in listed.context["hits"]] == [("archived instance", "p-1", "parcel")]
    (found,) = client.get("/api/v1/search", {"q": "p-1"}).json()["items"]
    assert (found["kind"], found["url"]) == ("archived instance", PAGE)
    offered = client.get("/search.json", {"q": "p-1"}).json()["rows"]
    assert ("archived instance", "p-1", PAGE) in [(row["kind"], row["name"], row["url"]) for row in offered]
    assert client.get("/search/", {"q": "p-"}).context["hits"] == []
    engine.create("parcel", "p-1")  # the id is free again: the living one is opened
    listed = client.get("/search/", {"q": "p-1", "all": "1"})
    assert [(hit.kind, hit.of) for hit in listed.context["hits"]] == [("instance", "parcel")]


def test_the_search_box_keeps_it_from_those_who_do_not_see_its_machine(gone, having):
    answer = having().get("/search/", {"q": "p-1"})
    assert answer.status_code == 403 or answer.context["hits"] == []


def test_a_revision_of_its_past_is_replayed(gone, having):
    page = having("view").get(f"{PAGE}?at=1").content.decode()
    assert "showing revision 1" in page
    assert "differs" in page


@pytest.mark.parametrize(
    "address", [PAGE, f"{PAGE}?at=2", f"{PAGE}history.csv", API, f"{API}/history", "/machines/parcel/archived/"]
)
def test_what_is_sensitive_is_hidden_as_before(gone, having, address):
    for rights, shown in ((("view",), False), (("view", "reveal"), "archived/" not in address)):
        answer = having(*rights).get(address)
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        assert answer.status_code == 200
        assert (EMAIL.encode() in body) is shown, rights


@pytest.mark.parametrize("address", [PAGE, f"{PAGE}history.csv", API, f"{API}/history", "/machines/parcel/archived/"])
def test_without_the_right_to_see_the_machine_there_is_none(gone, having, address):
    assert having("audit").get(address).status_code in (403, 404)


def test_nothing_changes_it(gone, having):
    client = having("view", "fire", "operate")
    assert client.post(f"{PAGE}fire/", {"event": "pay", "key": "k", "expect": "3", "version": "1"}).status_code == 404
    assert client.post(f"{PAGE}delete/", {"reason": "why", "key": "k", "expect": "3"}).status_code == 404
    assert ArchivedInstance.objects.count() == 1


def test_its_history_is_a_file(gone, having):
    answer = having("view", "reveal").get(f"{PAGE}history.csv")
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert [(row["revision"], row["event"], row["from"], row["to"]) for row in rows] == [
        ("3", "ship", "Paid", "Shipped"), ("2", "pay", "New", "Paid"), ("1", "(create)", "", "New"),
    ]  # fmt: skip
    assert (rows[1]["actor"], rows[1]["reason"]) == ("ann", "by phone")
    assert json.loads(rows[1]["changes"]) == {"note": f"call {EMAIL}"}


def test_the_api_says_that_it_is_archived(gone, having):
    client = having("view")
    found = client.get(API).json()
    assert (found["archived"], found["done"], found["state"], found["revision"]) == (True, True, "Shipped", 3)
    assert found["archived_at"] == ArchivedInstance.objects.get().archived
    assert client.get("/api/v1/machines/parcel/instances/p-2").json()["archived"] is False
    first = client.get(f"{API}/history?limit=2").json()
    assert [step["revision"] for step in first["items"]] == [3, 2]
    then = client.get(f"{API}/history?limit=2&cursor={first['next']}").json()
    assert [step["revision"] for step in then["items"]] == [1]
    assert client.get("/api/v1/machines/parcel/instances/p-9").status_code == 404


def test_the_list_of_archived_instances_is_searched(gone, having, duty, ship):
    ship("x-1", retain="1d")
    run(duty)
    client = having("view")

    def listed(query: str) -> list[str]:
        page = client.get(f"/machines/parcel/archived/{query}").content.decode()
        return [name for name in ("p-1", "p-2", "x-1") if f'data-row="{name}"' in page]

    assert listed("") == ["p-1", "x-1"]
    assert listed("?id=p") == ["p-1"]
    assert listed("?state=Dropped") == []
    assert listed("?state=Shipped&since=2020-01-01T00:00") == ["p-1", "x-1"]
    assert listed("?until=2020-01-01T00:00") == []
    for bad in ("?since=soon", "?state=Nowhere", "?cursor=soon"):
        assert client.get(f"/machines/parcel/archived/{bad}").status_code == 400
    assert client.get("/machines/nothing/archived/").status_code == 404


def test_a_damaged_record_is_an_error_that_names_it(gone, having):
    ArchivedInstance.objects.update(body=b"damaged")
    answer = having("view").get(API)
    assert answer.status_code == 500
    assert "parcel/p-1 cannot be read" in answer.json()["detail"]


def test_the_machine_page_says_how_much_is_archived(gone, having):
    client = having("view")
    page = client.get("/machines/parcel/").content.decode()
    section = page[page.index('id="retention"') :].partition("</details>")[0]
    assert "1 d" in section
    assert 'href="/machines/parcel/archived/"' in section
    assert "1, 1 kB" in section
    page = client.get("/machines/parcel/archived/").content.decode()
    section = page[page.index('id="retention"') :].partition("</details>")[0]
    assert "bytes each" in section
    assert "the oldest ended" in section
