"""The box in the bar: what it finds, what it opens at once, and what it keeps from whom."""

from __future__ import annotations

import html
import re

import pytest
from django.urls import reverse
from guardian.shortcuts import assign_perm

from machines.catalog import publishing
from machines.models import Machine
from tests.pages.conftest import TOKEN, example


def found(answer) -> list[tuple[str, str, str]]:
    return [(hit.kind, hit.name, hit.of) for hit in answer.context["hits"]]


@pytest.fixture
def indexed(engine, db) -> str:
    """A machine that indexes its ids, with three instances."""
    definition = example("activation") | {"id": "indexed", "index": ["instance.id"]}
    name = engine.publish(definition).name
    for id in ("XTV-1", "XTV-10", "BTV-1"):
        engine.create(name, id)
    return name


def test_the_only_thing_of_that_name_is_opened_at_once(as_, waiting, devices, engine):
    engine.create(devices, "one")
    client = as_("viewer")
    for asked, address in [
        ("ATV-123:NBCSports", reverse("signalbox:instance", args=["activation", "ATV-123:NBCSports"])),
        (" new_device ", reverse("signalbox:machine", args=["new_device"])),
        ("0-1", reverse("signalbox:job", args=["new_device", "0-1"])),
    ]:
        answer = client.get(reverse("signalbox:search"), {"q": asked})
        assert (answer.status_code, answer.url) == (302, address)


def test_what_has_the_same_name_is_listed(as_, waiting, devices, engine):
    engine.create(devices, "one")
    engine.create("activation", "one")
    answer = as_("viewer").get(reverse("signalbox:search"), {"q": "one"})
    assert found(answer) == [("instance", "one", "activation"), ("instance", "one", "new_device")]


def test_names_are_found_by_a_part_and_ids_by_their_beginning_where_they_are_indexed(as_, waiting, devices, indexed):
    client = as_("viewer")
    assert found(client.get(reverse("signalbox:search"), {"q": "DEV"})) == [("machine", "new_device", "")]
    assert ("queue", "provision", "new_device") in found(client.get(reverse("signalbox:search"), {"q": "provis"}))
    assert found(client.get(reverse("signalbox:search"), {"q": "XTV-1", "all": "1"})) == [
        ("instance", "XTV-1", "indexed"), ("instance", "XTV-10", "indexed"),
    ]  # fmt: skip
    assert found(client.get(reverse("signalbox:search"), {"q": "XTV-12"})) == []


@pytest.mark.parametrize("asked", ["", "x" * 3000, "<script>", "99999-1", "0-9999999999999999", "%00", "../..", "🚦"])
def test_nothing_is_found_without_harm(as_, waiting, asked):
    answer = as_("viewer").get(reverse("signalbox:search"), {"q": asked})
    assert answer.status_code == 200
    assert found(answer) == []
    assert b"<script>" not in answer.content


def test_only_machines_in_scope_are_looked_through(as_, waiting, devices, engine):
    engine.create(devices, "ATV-123:NBCSports")
    client = as_("nobody")
    user = client.get(reverse("signalbox:account")).wsgi_request.user
    publishing.adopt(devices)
    assign_perm("machines.view_machine", user, Machine.objects.get(name=devices))
    assert client.get(reverse("signalbox:search"), {"q": "ATV-123:NBCSports"}).url.startswith("/machines/new_device/")
    assert found(client.get(reverse("signalbox:search"), {"q": "activation"})) == []


def test_the_cost_does_not_grow_with_the_instances(as_, waiting, engine, monkeypatch):
    for number in range(50):
        engine.create("activation", f"n{number}")
    sent = []
    caller = type(engine._caller)
    real = caller.commands_available
    monkeypatch.setattr(caller, "commands_available", lambda self, all: sent.extend(all) or real(self, all))
    as_("viewer").get(reverse("signalbox:search"), {"q": "n1"})
    assert sum(words[0] == "EXISTS" for _, words in sent) == len(engine.machines())


def test_tokens_of_an_instance_are_not_looked_into(as_, waiting):
    assert found(as_("viewer").get(reverse("signalbox:search"), {"q": TOKEN["token"]})) == []


def test_a_list_that_is_cut_says_so_and_goes_on(as_, engine, db):
    for number in range(25):
        engine.publish({"id": f"depot-{number:02}", "initial": "A", "states": {"A": {}}})
    client = as_("viewer")
    first = client.get(reverse("signalbox:search"), {"q": "depot"})
    assert len(found(first)) == 20
    assert "Machines: 1 to 20 of 25" in " ".join(first.content.decode().split())
    (onward,) = re.findall(r'rel="next" href="([^"]+)"', first.content.decode())
    second = client.get(reverse("signalbox:search") + html.unescape(onward))
    assert [name for _, name, _ in found(second)] == [f"depot-{number}" for number in range(20, 25)]
    assert "21 to 25 of 25" in " ".join(second.content.decode().split())
    assert 'rel="next"' not in second.content.decode()


def test_instances_beyond_the_first_twenty_are_in_the_list_of_their_machine(as_, engine, indexed):
    for number in range(30):
        engine.create(indexed, f"XTV-2{number:02}")
    client = as_("viewer")
    answer = client.get(reverse("signalbox:search"), {"q": "XTV-2"})
    (rest,) = answer.context["found"].remainders
    assert (rest.kind, rest.total, rest.of) == ("instance", None, indexed)
    assert "first 20 shown, more exist" in " ".join(answer.content.decode().split())
    assert client.get(rest.url).context["page"].listing.terms["id_prefix"] == "XTV-2"


def test_what_fits_says_nothing_of_more(as_, indexed):
    answer = as_("viewer").get(reverse("signalbox:search"), {"q": "XTV", "all": "1"})
    assert answer.context["found"].remainders == []


@pytest.mark.parametrize("page", ["0", "-1", "x", "99999999999", "10001", "\N{SUPERSCRIPT TWO}"])
def test_an_odd_page_of_the_search_is_the_first(as_, indexed, page):
    assert as_("viewer").get(reverse("signalbox:search"), {"q": "XTV", "page": page}).context["found"].page == 1
