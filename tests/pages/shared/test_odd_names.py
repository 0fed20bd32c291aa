"""Names people choose freely: every page shows them as they are; none becomes markup or another path."""

from __future__ import annotations

from itertools import pairwise

import pytest
from django.urls import reverse

from tests.pages.reading import fields, read

IDS = [
    "../..",
    "a/b/c",
    "%2F",
    "~2F",
    ".",
    "<script>alert(1)</script>",
    "\"quoted\" & 'quoted'",
    "{{ x }}{% y %}",
    "🚦 emoji",
    " spaces ",
    "x" * 200,
    "é" * 100,
    "fire",
    "?state=New#x",
    "back\\slash",
]
STATES = ["<script>alert('s')</script>", 'a/b {x} "q" 🚦', "%2F..", "]]>&amp;", "{{ x }}", "a, b: c", "x" * 100]


@pytest.fixture
def machine(engine, db) -> None:
    """A machine with odd states, events, data and texts."""
    states = {state: {"on": {"next/%2F<b>": following}} for state, following in pairwise(STATES)}
    engine.publish(
        {
            "id": "odd.names-1",
            "description": "<script>alert('d')</script>",
            "initial": STATES[0],
            "context": {"note": "</td><script>alert('n')</script>", "{{x}}"[2:3]: 1},
            "events": {"next/%2F<b>": {"description": "<i>hostile</i>", "payload": {"x": {"type": "string"}}}},
            "states": states | {STATES[-1]: {"type": "final", "description": "</title><script>"}},
        }
    )


@pytest.fixture(params=IDS, ids=lambda id: id[:20])
def odd(request, engine, machine) -> str:
    """An instance of it with an odd id."""
    engine.create("odd.names-1", request.param)
    return request.param


@pytest.fixture
def all_odd(engine, machine) -> None:
    """Instances of it with all odd ids."""
    for id in IDS:
        engine.create("odd.names-1", id)


def harmless(answer):
    """The page, whose only scripts are ours and whose elements close where they should."""
    page = read(answer)
    for script in page.all("script"):
        if script.attributes.get("type") == "application/json":  # data, which no browser runs
            assert not set("<>&") & set(script.text)
            continue
        assert script["src"].startswith("/static/signalbox/js/")
        assert script.text == ""
    assert not page.all("i")
    return page


def test_the_list_shows_the_id_and_leads_to_it(as_, odd):
    client = as_("viewer")
    page = harmless(client.get("/machines/odd.names-1/"))
    link = page.one("table", class_="instances").one("a", class_="key")
    assert link.inside == [odd]
    assert harmless(client.get(link["href"])).one("h1").inside == [odd]


def test_each_state_filters_by_its_own_name(as_, all_odd):
    client = as_("viewer")
    page = harmless(client.get("/machines/odd.names-1/"))
    tabs = [link for link in page.one("nav", class_="tabs").all("a") if "data-state" in link.attributes]
    assert [tab["data-state"] for tab in tabs] == STATES
    for tab in tabs:
        counted = int(tab.one("b").text)
        found = harmless(client.get(tab["href"].partition("#")[0]))
        assert sum(len(table.all("a", class_="key")) for table in found.all("table", class_="instances")) == counted


def test_the_drawing_links_to_the_same_filters(as_, all_odd):
    client = as_("viewer")
    drawn = harmless(client.get("/machines/odd.names-1/")).one("svg", class_="sb-diagram").all("a", class_="state")
    assert [state["data-state"] for state in drawn] == STATES
    for state in drawn:
        assert client.get(state["href"].partition("#")[0]).status_code == 200


def test_it_can_be_fired_forced_and_deleted(as_, engine, odd):
    client = as_("supervisor")
    address = reverse("signalbox:instance", args=["odd.names-1", odd])
    page = harmless(client.get(address))
    form = page.all("form", action=reverse("signalbox:fire", args=["odd.names-1", odd]))[0]
    answer = client.post(form["action"], fields(form) | {"payload-x": "<script>alert('p')</script>"})
    assert answer.url == address
    assert engine.get("odd.names-1", odd).state == STATES[1]
    harmless(client.get(address))
    forced = {"state": STATES[2], "reason": "<script>alert('r')</script>", "expect": "2"}
    assert client.post(reverse("signalbox:force", args=["odd.names-1", odd]), forced).url == address
    harmless(client.get(address))
    gone = {"reason": "r", "sure": "on", "expect": "3"}
    assert client.post(reverse("signalbox:delete", args=["odd.names-1", odd]), gone).status_code == 302
    notice = harmless(client.get("/machines/odd.names-1/")).one("div", class_="ok")
    assert notice.one("p").inside == [f"{odd} deleted; last state: {STATES[2]}"]


def test_errors_about_it_are_harmless_too(as_, engine, odd):
    client = as_("supervisor")
    address = reverse("signalbox:fire", args=["odd.names-1", odd])
    harmless(client.post(address, {"event": "<script>", "expect": "1"}))
    harmless(client.post(address, {"event": "next/%2F<b>", "expect": "<script>", "payload-x": "<script>"}))
    harmless(client.post(address, {"event": "next/%2F<b>", "expect": "7", "payload-x": "<script>"}))
    harmless(client.get("/machines/odd.names-1/", {"state": "<script>alert(1)</script>!"}))
    harmless(client.get("/"))
