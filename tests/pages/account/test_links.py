"""Shared links: what they open for whom, until when, and what is the same as with views that are kept."""

from __future__ import annotations

import pytest
from django.test import Client
from guardian.shortcuts import assign_perm

from dashboard.account import presenters
from dashboard.models import SavedView
from machines.models import Machine
from tests.pages.reading import Element, read

MACHINE = "/machines/parcel/"
PARCEL = {
    "id": "parcel",
    "initial": "Here",
    "index": ["to", "pin"],
    "context": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "pin": {"type": "string", "sensitive": True}},
    },
    "states": {"Here": {"on": {"send": "Away"}}, "Away": {}},
}
OPEN = PARCEL | {"context": {"type": "object", "properties": {"to": {"type": "string"}, "pin": {"type": "string"}}}}


def listed(client: Client) -> list[Element]:
    return [row for row in read(client.get("/account/")).all("tr") if "data-link" in row.attributes]


@pytest.fixture
def parcel(engine, db) -> None:
    engine.publish(PARCEL)


def make(client: Client, query: str = "state=Here&cursor=abc", page: str = MACHINE):
    return client.post("/links/", {"page": page, "query": query})


def path(answer) -> str:
    """Of the link that the page shows."""
    assert answer.status_code == 200, answer.content
    return read(answer).one("input", id="link-text")["value"].removeprefix("http://testserver")


def test_a_link_opens_the_page_as_it_was_narrowed_for_whoever_may_open_it(as_, parcel):
    made = path(make(as_("viewer")))
    assert made.startswith("/v/")
    answer = as_("operator").get(made)
    assert (answer.status_code, answer.url) == (302, f"{MACHINE}?state=Here#instances")
    stranger = Client().get(made)
    assert stranger.url == f"/accounts/login/?next={made}"
    assert as_("nobody").get(made).status_code == 403


def test_a_narrowed_list_offers_it_beside_keeping(as_, prefix):
    client = as_("supervisor")
    form = read(client.get("/audit/?action=fire")).one("form", class_="keep")
    assert [button.text for button in form.all("button")] == ["Save view", "Share"]
    assert form.all("button")[1]["formaction"] == "/links/"
    assert read(client.get("/audit/")).all("form", class_="keep") == []


def test_it_shows_nobody_a_page_that_they_may_not_open(as_, engine, parcel, user_of):
    engine.publish(PARCEL | {"id": "other"})
    Machine.objects.create(name="other", current=1)
    boss, ann = as_("supervisor"), user_of("nobody", "ann")
    assign_perm("view_machine", ann, Machine.objects.get(name="other"))
    client = Client()
    client.force_login(ann)
    for page, status in ((MACHINE, 403), ("/machines/other/", 302), ("/audit/", 403), ("/queues/", 302)):
        answer = client.get(path(make(boss, "state=Here", page)))
        assert answer.status_code == status, page
        assert status == 302 or b"state=Here" not in answer.content


def test_what_is_sensitive_is_in_no_link_even_where_it_becomes_so_later(as_, engine, db):
    engine.publish(OPEN)
    client = as_("supervisor")
    made = path(make(client, "by=pin&is=4711"))
    assert client.get(made).status_code == 302
    engine.publish(PARCEL)
    answer = client.get(made)
    assert answer.status_code == 404
    assert b"4711" not in answer.content
    refused = make(client, "by=pin&is=4711")
    assert refused.status_code == 400
    assert "cannot be shared" in read(refused).text


@pytest.mark.parametrize(
    "page", ["https://elsewhere.example/", "//elsewhere.example/", "/admin/", "/links/", "", "/\\x"]
)
def test_only_a_page_of_this_site_that_shows_is_linked(as_, parcel, page):
    assert make(as_("viewer"), page=page).status_code == 400
    assert make(as_("operator"), query="state=" + "x" * 2001).status_code == 400


def test_its_maker_gives_it_another_address_or_ends_it_and_nobody_else_can(as_, parcel, engine, prefix):
    client, other = as_("viewer"), as_("operator")
    first = path(make(client))
    (row,) = listed(client)
    handle = row["data-link"]
    assert row.one("a").text == f"{MACHINE}?state=Here"
    secret = first.rstrip("/").rpartition(".")[2]
    assert secret not in client.get("/account/").content.decode()
    assert not any(secret in (engine.client.get(key) or "") for key in engine.client.scan_iter(f"{prefix}session*:s:*"))
    for act in ("renew", "revoke"):
        assert other.post(f"/links/{handle}/{act}/").status_code == 404
        assert client.post(f"/links/nonsense/{act}/").status_code == 404
    second = path(client.post(f"/links/{handle}/renew/"))
    assert [other.get(made).status_code for made in (first, second)] == [404, 302]
    assert client.post(f"/links/{handle}/revoke/").status_code == 302
    assert other.get(second).status_code == 404
    assert listed(client) == []


def test_links_are_bounded_and_end_by_themselves(as_, parcel, monkeypatch, engine, prefix):
    monkeypatch.setattr(presenters, "MAX_LINKS", 1)
    client = as_("viewer")
    made = path(make(client))
    assert make(client).status_code == 409
    (key,) = engine.client.scan_iter(f"{prefix}session*:s:*")
    week = presenters.DAYS * 86_400_000
    client.get(made)
    assert week - 60_000 < engine.client.pttl(key) <= week


def test_a_redis_that_is_wiped_takes_links_and_no_view_that_was_kept(as_, parcel, engine, prefix):
    client = as_("viewer")
    client.post("/views/", {"name": "mine", "page": MACHINE, "query": "state=Here"})
    made = path(make(client))
    engine.client.delete(*engine.client.scan_iter(f"{prefix}session*"))
    assert client.get(made).status_code == 404
    assert SavedView.objects.get().url == f"{MACHINE}?state=Here"
