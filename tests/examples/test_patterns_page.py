"""The Patterns page without a script: every section shows, every form acts and says what it did, nobody can hammer."""

from __future__ import annotations

import re
import runpy
from random import Random

import pytest
from django.apps import apps
from django.test import modify_settings

from dashboard import urls
from dashboard.examples import views
from dashboard.examples.patterns import SECTIONS
from dashboard.shared.navigation import list_navigation_links
from tests.configuration import configure
from tests.engine.dumps import keys_left
from tests.pages.conftest import as_, user_of
from tests.pages.reading import Element, fields, read

__all__ = ["as_", "user_of"]

RUBBISH = ("", "\0{a}:b\n🚦", "-1", "9" * 400, "NaN")
ACT = "/patterns/throttle/send_at_a_steady_rate/"


@pytest.fixture
def client(as_):
    return as_("operator", "ann")


def part(client, name: str) -> Element:
    return read(client.get("/patterns/")).one("section", id=name)


def press(client, address: str, sent: dict[str, str] | None = None) -> str:
    """What the page says after a form was sent."""
    answer = client.post(address, sent or {})
    assert answer.status_code == 302, address
    assert answer.url == f"/patterns/#{address.split('/')[2]}"
    return read(client.get("/patterns/")).one("div", class_="toast").text


def forms_of(section: Element) -> dict[str, dict[str, str]]:
    """Address -> what a browser would send to it."""
    return {button["formaction"]: fields(form) for form in section.all("form") for button in form.all("button")}


def test_the_page_has_every_section_in_its_order_and_a_list_to_jump_by(client):
    page = read(client.get("/patterns/"))
    assert [section["id"] for section in page.all("section", class_="pattern")] == list(SECTIONS)
    assert [link["href"] for link in page.one("nav", class_="jump").all("a")] == [f"#{name}" for name in SECTIONS]


def test_each_section_shows_what_its_pattern_guarantees_and_looking_creates_no_key(client, engine, prefix):
    page = read(client.get("/patterns/"))
    for section in SECTIONS.values():
        shown = page.one("section", id=section.name)
        assert shown.one("pre", class_="snippet").text.split() == section.guarantees.split() != []
        assert section.summary in shown.text
    assert keys_left(engine) == set()


@pytest.mark.parametrize("name", SECTIONS)
def test_every_act_has_a_button_and_says_what_it_did_and_the_keys_can_be_seen(client, engine, prefix, name):
    acts = [act.removeprefix("do_") for act in dir(SECTIONS[name]) if act.startswith("do_")]
    missing = {f"/patterns/{name}/{act}/" for act in acts}
    for _ in range(3 * len(missing)):
        forms = forms_of(part(client, name))
        act = next((address for address in forms if address in missing), next(iter(forms)))  # the first one leads on
        missing.discard(act)
        assert press(client, act, forms[act]), act
        keys = [line.all("code")[0].text for line in part(client, name).all("li")]
        assert all(engine.client.exists(key) and key.startswith(prefix) for key in keys)
        assert len(keys) <= views.MOST_KEYS
        if not missing:
            break
    assert missing == set()
    assert len(list(engine.client.scan_iter(match=f"{prefix}*"))) < 50


@pytest.mark.parametrize("name", SECTIONS)
def test_rubbish_in_a_form_is_refused_with_its_code_and_is_no_fault(client, monkeypatch, name):
    monkeypatch.setattr(views, "ACTS", 10_000)
    for address, names in forms_of(part(client, name)).items():
        for rubbish in RUBBISH if names else ():
            said = press(client, address, dict.fromkeys(names, rubbish))
            assert ("Not done" in said) == bool(re.search(r"\(SB\d{3}\)", said)), (address, rubbish, said)


def test_the_traffic_gives_every_section_life_in_bounded_space(client, engine, prefix):
    move, page = apps.get_app_config("examples").pattern_traffic(Random(7)), read(client.get("/patterns/"))
    for _ in range(40 * len(SECTIONS)):
        move()
    still = {section["id"]: section.text for section in page.all("section", class_="pattern")}
    assert [name for name in SECTIONS if part(client, name).text == still[name]] == []
    assert len(keys_left(engine)) < 100


def test_a_person_who_may_only_look_finds_every_control_switched_off(as_):
    viewer = as_("viewer")
    page = read(viewer.get("/patterns/"))
    assert all("disabled" in field.attributes for field in page.all("fieldset"))
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
    assert [place.name for place in list_navigation_links(user)][-1] == "patterns"
    with modify_settings(INSTALLED_APPS={"remove": ["dashboard.examples"]}):
        addresses = runpy.run_path(urls.__file__)["urlpatterns"]
        assert "patterns" not in [place.name for place in list_navigation_links(user)]
    assert not [one for one in addresses if str(one.pattern) == "patterns/"]
    assert [one for one in urls.urlpatterns if str(one.pattern) == "patterns/"]
