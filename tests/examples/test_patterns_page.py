"""The Patterns page without a script: every section shows, every form answers in its own one, nobody can hammer."""

from __future__ import annotations

import re
import runpy
from random import Random

import pytest
from django.test import modify_settings

from dashboard import urls
from dashboard.examples import views
from dashboard.examples.patterns import MOST_KEYS, ORDER, sections
from dashboard.examples.patterns.traffic import PatternTraffic
from dashboard.shared.addresses.navigation import list_navigation_links
from tests.configuration import configure
from tests.engine.dumps import keys_left
from tests.pages.conftest import as_, user_of
from tests.pages.reading import Element, fields, read

__all__ = ["as_", "user_of"]

SECTIONS = list(sections().values())
NAMES = [section.name for section in SECTIONS]
ALONE = {"X-Section": "yes"}
RUBBISH = ("", "\0{a}:b\n🚦", "-1", "9" * 400, "NaN")


@pytest.fixture
def client(as_):
    return as_("operator", "ann")


def part(client, name: str) -> Element:
    (found,) = read(client.get("/patterns/")).all("section", id=name)
    return found


def told(section: Element) -> str:
    (place,) = section.all("div", role="status")
    return place.text


def forms_of(section: Element) -> dict[str, dict[str, str]]:
    """Address -> what a browser would send to it, where nobody typed more than has to be there."""
    found = {}
    for form in section.all("form"):
        numbers = {field["name"] for field in form.all("input", type="number")}
        sent = {name: text or ("1" if name in numbers else "demo.x") for name, text in fields(form).items()}
        for button in form.all("button"):
            named = {button["name"]: button.attributes.get("value", "")} if "name" in button.attributes else {}
            found.setdefault(button.attributes.get("formaction", form["action"]), sent | named)
    return found


def test_the_page_has_every_section_in_its_order_and_a_list_to_jump_by(client):
    page = read(client.get("/patterns/"))
    shown = [section["id"] for section in page.all("section", class_="pattern")]
    assert shown == NAMES == list(ORDER)
    (jump,) = page.all("nav", class_="jump")
    assert [link["href"] for link in jump.all("a")] == [f"#{name}" for name in NAMES]


@pytest.mark.parametrize("section", SECTIONS, ids=NAMES)
def test_a_section_shows_its_source_and_promises_and_looking_creates_no_key(client, engine, prefix, section):
    shown = part(client, section.name)
    source, promises = (block.text for block in shown.all("pre", class_="snippet")[-2:])
    assert "def example(" in source
    assert promises.split() == section.promises.split()
    assert section.tells in shown.text
    assert keys_left(engine) == set()


@pytest.mark.parametrize("section", SECTIONS, ids=NAMES)
def test_each_form_answers_in_its_own_section_and_the_keys_can_be_seen(client, engine, prefix, section):
    missing = {f"/patterns/{section.name}/{act}/" for act in section.acts}
    for _ in range(3 * len(missing)):
        forms = forms_of(part(client, section.name))
        act = next((address for address in forms if address in missing), next(iter(forms)))  # the first one leads on
        missing.discard(act)
        answer = client.post(act, forms[act])
        assert (answer.status_code, answer.url) == (302, f"/patterns/#{section.name}"), act
        shown = part(client, section.name)
        assert told(shown), act
        keys = [line.all("code")[0].text for line in shown.all("div", class_="standing") for line in line.all("li")]
        assert len(keys) <= MOST_KEYS
        assert all(engine.client.exists(key) and key.startswith(prefix) for key in keys)
        if not missing:
            break
    assert missing == set()
    assert len(list(engine.client.scan_iter(match=f"{prefix}*"))) < 50


@pytest.mark.parametrize("section", SECTIONS, ids=NAMES)
def test_rubbish_in_a_form_is_told_with_its_code_and_is_no_fault(client, monkeypatch, section):
    monkeypatch.setattr(views, "ACTS", 10_000)
    for address, names in forms_of(part(client, section.name)).items():
        for rubbish in RUBBISH if names else ():
            answer = client.post(address, dict.fromkeys(names, rubbish), headers=ALONE)
            assert answer.status_code in (200, 400, 404, 409), (address, rubbish)
            said = told(read(answer).all("section")[0])
            assert said
            assert (answer.status_code == 200) == (re.search(r"SB\d{3}", said) is None), (rubbish, said)


@pytest.mark.parametrize("section", SECTIONS, ids=NAMES)
def test_its_example_runs_as_it_stands(engine, prefix, section):
    section.example(section.make(engine.client, prefix))


def test_the_traffic_gives_every_section_life_in_bounded_space(client, engine, prefix):
    traffic, page = PatternTraffic(Random(7)), read(client.get("/patterns/"))
    for _ in range(40 * len(SECTIONS)):
        traffic.move()
    still = {section["id"]: section.text for section in page.all("section", class_="pattern")}
    assert [name for name in NAMES if part(client, name).text == still[name]] == []
    assert len(keys_left(engine)) < 100


def test_what_an_act_said_is_told_once(client):
    client.post("/patterns/throttle/hit/")
    assert told(part(client, "throttle"))
    assert not told(part(client, "throttle"))
    alone = client.post("/patterns/throttle/hit/", headers=ALONE)
    assert told(read(alone).all("section")[0])
    assert not told(part(client, "throttle"))


def test_who_may_only_look_finds_every_control_switched_off(as_):
    viewer = as_("viewer")
    page = read(viewer.get("/patterns/"))
    assert all("disabled" in field.attributes for field in page.all("fieldset"))
    assert viewer.post("/patterns/throttle/hit/").status_code == 403
    assert viewer.get("/patterns/throttle/").status_code == 200


def test_a_person_who_hammers_is_refused_and_nobody_else(client, as_, monkeypatch):
    monkeypatch.setattr(views, "ACTS", 2)
    monkeypatch.setattr(views, "PER", 3600)
    assert [client.post("/patterns/throttle/hit/").status_code for _ in range(3)] == [302, 302, 429]
    refused = client.post("/patterns/throttle/hit/", headers=ALONE)
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 1800
    assert "SB711" in told(read(refused).all("section")[0])
    assert as_("operator", "bob").post("/patterns/throttle/hit/").status_code == 302


@pytest.mark.parametrize("address", ["/patterns/", "/patterns/throttle/", "/patterns/throttle/hit/"])
def test_without_redis_it_is_the_usual_outage(client, settings, address):
    configure(settings, REDIS_URL="unix:///nonexistent/none.sock")
    answer = client.post(address) if address.endswith("hit/") else client.get(address)
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
