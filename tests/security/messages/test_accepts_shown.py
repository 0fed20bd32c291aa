"""Where the accepted senders of a machine are listed."""

from __future__ import annotations

import io

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from machines.catalog import publishing
from machines.models import Machine
from machines.people.permissions import RIGHTS
from tests.engine.messages.mailing import teller

from .senders import closed


@pytest.fixture
def pair(engine, db):
    publishing.publish(closed())
    publishing.publish(teller())
    return engine


def page_of(client: Client, name: str = "noter", search: str = "") -> str:
    content = client.get(reverse("signalbox:machine", args=[name]) + search).content.decode()
    return content.partition('id="accepts"')[2].partition("</section>")[0]


def ask_api(client: Client) -> dict:
    return client.get("/api/v1/machines/noter/accepts").json()


def test_the_command_lists_them(pair):
    publishing.publish(closed(senders=["billing", "teller"]))
    out = io.StringIO()
    call_command("machine", "accepts", stdout=out)
    assert out.getvalue().splitlines() == ["noter: billing, teller", "teller: no other machine"]


def test_the_page_and_the_api_list_them(pair, as_):
    client = as_("viewer")
    assert "itself, parents and children" in page_of(client)
    assert "teller" not in page_of(client)
    assert ask_api(client) == {"machine": "noter", "declared": None}
    publishing.publish(closed(senders=["billing", "teller"]))
    for search in ("", "?version=1"):  # the current version decides, whichever is shown
        shown = page_of(client, search=search)
        assert "billing" in shown
        assert ">teller</a>" in shown
    assert ask_api(client) == {"machine": "noter", "declared": ["billing", "teller"]}


def test_any_machine_is_said_in_words(pair, as_):
    publishing.publish(closed(senders=["*"]))
    assert "any machine" in page_of(as_("viewer"))


def test_who_does_not_see_a_machine_gets_no_link_to_it(pair):
    publishing.publish(closed(senders=["teller"]))
    user = get_user_model().objects.create_user("one")
    assign_perm(RIGHTS["view"], user, Machine.objects.get(name="noter"))
    client = Client()
    client.force_login(user)
    assert "teller" in page_of(client)
    assert "</a>" not in page_of(client)
