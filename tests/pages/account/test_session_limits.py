"""Sessions end when nobody uses them, and at an age, whatever a page asks by itself."""

from __future__ import annotations

import time

import pytest
from django.test import Client

from dashboard.serving.middleware.session_limits import USED
from machines.people.sign_in_times import STARTED
from tests.configuration import configure

LIMITS = "dashboard.serving.middleware.session_limits.SessionLimits"


@pytest.fixture
def client(as_, settings) -> Client:
    configure(settings, SESSION_IDLE=600, SESSION_MAX=3600)
    place = settings.MIDDLEWARE.index("dashboard.shared.times.TimeZoneMiddleware")
    settings.MIDDLEWARE = [*settings.MIDDLEWARE[:place], LIMITS, *settings.MIDDLEWARE[place:]]
    return as_("viewer")


def set_back(client: Client, name: str, seconds: float) -> None:
    session = client.session
    session[name] = time.time() - seconds
    session.save()


def is_logged_in(client: Client, **headers: str) -> bool:
    return client.get("/account/", **headers).status_code == 200


def test_a_use_sets_the_end_anew(client):
    assert is_logged_in(client)
    set_back(client, USED, 500)
    assert is_logged_in(client)
    assert time.time() - client.session[USED] < 100
    assert 0 < client.session.get_expiry_age() <= 600


def test_an_unused_session_ends(client):
    assert is_logged_in(client)
    set_back(client, USED, 601)
    assert not is_logged_in(client)


def test_what_a_page_asks_by_itself_is_no_use(client):
    assert is_logged_in(client)
    set_back(client, USED, 500)
    assert is_logged_in(client, HTTP_SEC_FETCH_DEST="empty")
    assert time.time() - client.session[USED] >= 500


def test_a_session_that_is_used_ends_at_its_age_all_the_same(client):
    assert is_logged_in(client)
    set_back(client, STARTED, 3300)
    set_back(client, USED, 500)
    assert is_logged_in(client)
    assert client.session.get_expiry_age() <= 300
    set_back(client, STARTED, 3601)
    assert not is_logged_in(client)


def test_a_session_from_before_the_setting_begins_now(client):
    session = client.session
    del session[STARTED]
    session.save()
    assert is_logged_in(client)
    assert time.time() - client.session[STARTED] < 100
