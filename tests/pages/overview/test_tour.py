"""The tour of the demo on the first page: once for each person, and nowhere but in the demo."""

from __future__ import annotations

import pytest

from dashboard.demo import preparation, showcase
from dashboard.models import Preferences
from machines.integrations.attached import detach
from machines.integrations.attached.registry import find as find_attachment
from tests.configuration import configure
from tests.engine.builders import machine
from tests.pages.reading import read

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("prefix")]


def find_tour(client):
    found = read(client.get("/")).all("section", id="tour")
    return found[0] if found else None


def test_each_person_sees_it_until_they_end_it(as_, settings):
    configure(settings, DEMO_PACE=600)
    vera, sue = as_("viewer", "vera"), as_("supervisor", "sue")
    assert find_tour(vera)
    answer = vera.post(find_tour(vera).one("form")["action"])
    assert (answer.status_code, answer.url) == (302, "/")
    assert find_tour(vera) is None
    assert find_tour(sue)
    assert Preferences.objects.get(user__username="vera").toured


def test_there_is_none_outside_of_the_demo(as_):
    assert find_tour(as_("viewer")) is None


def test_each_of_its_links_leads_to_a_page_that_each_person_may_see(as_, settings, django_capture_on_commit_callbacks):
    configure(settings, DEMO_PACE=600)
    preparation.machines()
    preparation.schedules()
    with django_capture_on_commit_callbacks(execute=True):
        assert showcase.fill_table(seed=7) == "mirror.visits"
    detach(find_attachment("mirror.visits"))
    client = as_("viewer")
    links = [link["href"] for link in find_tour(client).all("a")]
    assert len(links) == 7
    for link in links:
        assert client.get(link).status_code == 200, link


def test_it_stands_before_the_alarms(as_, settings, engine):
    configure(settings, DEMO_PACE=600)
    engine.publish(machine("idle", {"On": {}}))
    engine.enqueue("idle", "work", "mend")
    (job,) = engine.take("idle", "work", "w")
    engine.fail(job, "no such device", retry=False)
    page = as_("viewer").get("/").content.decode()
    assert 0 < page.index('id="tour"') < page.index('id="attention"')
