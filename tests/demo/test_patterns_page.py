"""The Patterns page without a script: every section shows, its button acts, nobody can hammer."""

from __future__ import annotations

import runpy
from random import Random

import pytest
from django.apps import apps
from django.test import modify_settings

from dashboard import urls
from dashboard.demo.examples import views
from dashboard.demo.examples.patterns import SECTIONS
from dashboard.shared.navigation import list_navigation_links
from tests.configuration import configure
from tests.engine.dumps import keys_left
from tests.pages.conftest import as_, user_of
from tests.pages.reading import Element, read

__all__ = ["as_", "user_of"]

ACT = "/patterns/throttle/"


@pytest.fixture
def client(as_):
    return as_("operator", "ann")


def part(client, name: str) -> Element:
    return read(client.get("/patterns/")).one("section", id=name)


def press(client, address: str) -> str:
    """What the page says after a form was sent."""
    answer = client.post(address)
    assert answer.status_code == 302, address
    assert answer.url == f"/patterns/#{address.split('/')[2]}"
    return read(client.get("/patterns/")).one("div", class_="toast").text


def test_each_section_shows_what_its_pattern_guarantees_and_looking_creates_no_key(client, engine, prefix):
    page = read(client.get("/patterns/"))
    assert [section["id"] for section in page.all("section", class_="pattern")] == list(SECTIONS)
    for section in SECTIONS.values():
        shown = page.one("section", id=section.name)
        assert shown.one("pre", class_="snippet").text.split() == section.guarantees.split() != []
        assert section.summary in shown.text
    assert [key for key in keys_left(engine) if "demo." in key] == []


def test_the_button_of_a_section_acts_and_its_keys_are_shown(client, prefix):
    for name, section in SECTIONS.items():
        form = part(client, name).one("form")
        assert f"{section.title}: one call was made" in press(client, form["action"])
        keys = [line.all("code")[0].text for line in part(client, name).all("li")]
        assert keys, name
        assert all(key.startswith(prefix) for key in keys)  # a lock may be over by now


def test_the_traffic_gives_every_section_life_in_bounded_space(client, engine, prefix):
    move, page = apps.get_app_config("examples").pattern_traffic(Random(7)), read(client.get("/patterns/"))
    for _ in range(40 * len(SECTIONS)):
        move()
    still = {section["id"]: section.text for section in page.all("section", class_="pattern")}
    assert [name for name in SECTIONS if part(client, name).text == still[name]] == []
    assert len(keys_left(engine)) < 100


def test_a_person_who_may_only_look_finds_no_button(as_):
    viewer = as_("viewer")
    assert not read(viewer.get("/patterns/")).one("main").all("form")
    assert viewer.post(ACT).status_code == 403


def test_a_person_who_hammers_is_refused_and_nobody_else(client, as_, monkeypatch):
    monkeypatch.setattr(views, "ACTS", 2)
    monkeypatch.setattr(views, "PER", 3600)
    said = [press(client, ACT) for _ in range(3)]
    assert ["SB711" in one for one in said] == [False, False, True]
    assert "SB711" not in press(as_("operator", "bob"), ACT)


@pytest.mark.parametrize("address", ["/patterns/", ACT])
def test_without_redis_it_is_the_usual_outage(client, settings, address):
    configure(settings, REDIS_URL="unix:///nonexistent/none.sock")
    answer = client.post(address) if address == ACT else client.get(address)
    assert answer.status_code == 503
    assert b"SB500" in answer.content


def test_a_site_without_the_samples_has_no_such_page(user_of):
    user = user_of("supervisor")
    assert "patterns" in [place.name for place in list_navigation_links(user)]
    with modify_settings(INSTALLED_APPS={"remove": ["dashboard.demo.examples"]}):
        addresses = runpy.run_path(urls.__file__)["urlpatterns"]
        assert "patterns" not in [place.name for place in list_navigation_links(user)]
    assert not [one for one in addresses if str(one.pattern) == "patterns/"]
    assert [one for one in urls.urlpatterns if str(one.pattern) == "patterns/"]
