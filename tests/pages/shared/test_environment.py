"""The environment of an installation: its name above every page, and in the title of its tab."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.utils.html import escape

from machines.engine import EngineUnavailable
from machines.models import Machine
from tests.cases import for_each
from tests.configuration import configure
from tests.pages.reading import read

NAME = "production <EU>"


@pytest.fixture
def production(settings):
    configure(settings, ENVIRONMENT={"name": NAME, "colour": "red"})


def check_page(page, status: int) -> None:
    assert page.status_code == status
    band = read(page).one("p", class_="environment")
    assert band.text == f"Environment:{NAME}"
    assert band["data-colour"] == "red"
    title = page.content.decode().partition("<title>")[2].partition("</title>")[0]
    assert title.strip().startswith(escape(f"[{NAME}] "))


@for_each("address, status", [("/accounts/login/", 200), ("/nothing-is-here/", 404)])
def test_pages_before_the_login_name_it(db, production, client, address, status):
    check_page(client.get(address), status)


def test_pages_of_people_name_it(as_, production):
    browser = as_("supervisor")
    for address in ("/", "/wall/", "/audit/"):
        check_page(browser.get(address), 200)
    check_page(browser.get("/machines/nothing/"), 404)


def test_the_admin_names_it(db, production, client):
    client.force_login(get_user_model().objects.create_superuser("root", password="let me in"))
    check_page(client.get("/admin/"), 200)


def test_screens_in_the_admin_of_a_project_name_it(waiting, production, client, settings):
    own = client
    own.force_login(get_user_model().objects.create_superuser("root", password="let me in"))
    machine = Machine.objects.create(name="activation", current=1)
    addresses = [f"/admin/machines/machine/{machine.pk}/instances/", "/admin/machines/machine/"]
    assert [read(own.get(each)).all("p", class_="sb-environment") for each in addresses] == [[], []]
    foreign = [each for each in settings.TEMPLATES[0]["DIRS"] if "own_site" not in str(each)]
    settings.TEMPLATES = [settings.TEMPLATES[0] | {"DIRS": foreign}]
    for address in addresses:
        band = read(own.get(address)).one("p", class_="sb-environment")
        assert (band.text, band["data-colour"]) == (NAME, "red")


def test_pages_of_outages_and_errors_name_it(as_, production, monkeypatch):
    browser = as_("supervisor")
    browser.raise_request_exception = False
    for error, status in ((EngineUnavailable("away"), 503), (RuntimeError("broken"), 500)):

        def fail(*args, error=error):
            raise error

        monkeypatch.setattr("dashboard.audit.views.AuditFilter", fail)
        check_page(browser.get("/audit/"), status)


def test_without_one_no_page_speaks_of_it(as_):
    page = as_("viewer").get("/").content.decode()
    assert 'class="environment"' not in page
    assert "<title>Machines · Signalbox</title>" in page
