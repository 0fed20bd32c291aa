"""Encrypted fields on the instance page, in the API and over the socket: plain for who may reveal, and for no other."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from redis.exceptions import ConnectionError

from dashboard.live.hub.reading import read_once
from dashboard.live.topics import Topic
from dashboard.models import SavedView
from machines.audit import reveals
from machines.audit.redaction import MASK
from machines.catalog.versions import drafts
from machines.engine.connection import routing
from machines.models import AuditEntry
from machines.people.actor import Actor
from tests.pages.reading import fields, read

from .conftest import dump_sql
from .test_fields import CARD, DECLARED_OTHERWISE, MAIL, PLAIN, coded, run_jobs

__all__ = ["coded"]
PAGE = "/machines/payment/instances/p-1/"
API = "/api/v1/machines/payment/instances/p-1"


@pytest.fixture
def paid(coded, monkeypatch):
    monkeypatch.setattr(reveals, "memory", reveals.Memory())
    coded.create("payment", "p-1", {"mail": MAIL, "account": 12345678})
    coded.fire("payment", "p-1", "pay", {"card": CARD})
    run_jobs(coded)
    return coded


@pytest.mark.parametrize("address", [PAGE, API, f"{API}/history"])
def test_who_may_reveal_is_shown_the_value_and_that_is_in_the_audit(paid, as_, address):
    page = as_("supervisor", "sue").get(address)
    assert page.status_code == 200
    assert CARD in page.content.decode()
    assert "enc:1:" not in page.content.decode()
    assert "card" in AuditEntry.objects.get(action="reveal", actor="sue").detail["shown"]
    hidden = as_("operator", "oda").get(address).content.decode()
    assert not any(text in hidden for text in ("enc:1:", *PLAIN))


def test_live_values_have_a_mask_for_everybody(paid, as_):
    for role in ("supervisor", "operator"):
        value = as_(role).get("/api/v1/live/", {"topic": "instance:payment/p-1"}).json()["data"]
        masked = dict.fromkeys(("card", "mail", "account"), MASK)
        assert value["data"] == masked | {"tries": 0}
    assert not AuditEntry.objects.filter(action="reveal").exists()


def test_live_values_are_away_where_it_is_unknown_what_has_a_mask(paid):
    def send(commands):
        asked = [(key or paid.keys.machines, words) for key, words in commands]
        answers = routing.send(paid.client, asked)
        return [
            ConnectionError("away") if "sensitive" in words else answer
            for (_, words), answer in zip(asked, answers, strict=True)
        ]

    found, _ = read_once(paid.keys, Topic("instance", "payment", "p-1"), send)
    assert found == {"unavailable": True}


def test_without_the_key_the_page_says_so(paid, as_, settings):
    settings.SECRET_KEY = "another key, as long as a key should be: 0123456789"
    page = as_("supervisor").get(PAGE)
    assert page.status_code == 200
    assert "(cannot be decrypted: KeyGone)" in page.content.decode()


def test_an_event_of_the_page_is_encrypted(coded, as_):
    coded.create("payment", "p-1")
    client = as_("supervisor")
    forms = read(client.get(PAGE)).all("form", action=f"{PAGE}fire/")
    form = next(found for one in forms if (found := fields(one)).get("event") == "pay")
    assert client.post(f"{PAGE}fire/", form | {"payload-card": CARD, "reason": "a test"}).status_code == 302
    assert coded.decrypt(coded.get("payment", "p-1").data)["card"] == CARD


@pytest.mark.parametrize(
    "terms", [{"by": "mail", "is": MAIL}, {"data": f"mail={MAIL}"}, {"query": f"data.mail={MAIL}"}]
)
def test_a_view_that_filters_by_an_encrypted_field_is_not_kept(coded, as_, terms):
    coded.create("payment", "p-1", {"mail": MAIL})
    client, address = as_("supervisor"), "/machines/payment/"
    assert "p-1" in client.get(address, terms, follow=True).content.decode()
    answer = client.post("/views/", {"name": "mine", "page": address, "query": urlencode(terms)})
    assert answer.status_code == 400
    assert "a view that filters by an encrypted field cannot be saved" in answer.content.decode()
    assert client.get(f"{address}instances.csv", terms).status_code == 200
    client.post("/views/", {"name": "mine", "page": address, "query": "data=tries%3D0"})
    assert SavedView.objects.get().query == "data=tries%3D0"
    stored = dump_sql()
    assert not any(text in stored for text in PLAIN)


def test_the_page_of_a_draft_says_which_field_is_published_otherwise(coded, as_, user_of):
    text = json.dumps(DECLARED_OTHERWISE["another type"])
    draft = drafts.save(Actor(user_of("publisher", "ann"), "test"), "payment", text, format="json")
    client, address = as_("publisher"), f"/machines/payment/versions/drafts/{draft.pk}/"
    form = fields(read(client.get(address)).one("section", id="publish").all("form")[0])
    answer = client.post(f"{address}publish/", form)
    assert answer.status_code == 400
    assert "account&#x27; is declared with another type or encryption than in version 1" in answer.content.decode()
