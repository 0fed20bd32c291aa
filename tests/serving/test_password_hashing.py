"""Nobody starves others with logins: few passwords are hashed at a time, and what is refused costs no hash."""

import threading

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password, make_password
from django.test import Client

from dashboard.serving import password_hashing
from dashboard.serving.password_hashing import Logins, TooManyLogins
from machines.models import AuditEntry
from machines.people.client_address import network_of
from tests.configuration import configure
from tests.installation.settings.test_settings import settings_with, start

__all__ = ["settings_with", "start"]

PAGES, ADMIN = "/accounts/login/", "/admin/login/"
HERE, ELSEWHERE = "192.0.2.1", "198.51.100.1"


class Counted(password_hashing.BoundedPBKDF2):
    """The site's, which says how often it was asked."""

    iterations = 1
    made = 0

    def encode(self, *words, **named):
        type(self).made += 1
        return super().encode(*words, **named)


@pytest.fixture
def hashes(settings, monkeypatch):
    """How many were made since."""
    settings.PASSWORD_HASHERS = [f"{__name__}.Counted"]
    Counted.made = 0
    monkeypatch.setattr(password_hashing.logins, "_max_wait", 0.0)
    return lambda: Counted.made


def attempt(url=PAGES, name="nobody", address=HERE):
    return Client().post(url, {"username": name, "password": "guess"}, REMOTE_ADDR=address)


@pytest.mark.parametrize("url", [PAGES, ADMIN])
def test_one_address_has_two_logins_under_way_and_more_are_refused_without_a_hash(hashes, db, engine, url):
    with password_hashing.logins.one(HERE), password_hashing.logins.one(HERE):
        answer = attempt(url)
        assert (answer.status_code, answer["Retry-After"]) == (429, "2")
        assert "SB712" in answer.content.decode()
        assert hashes() == 0
        assert attempt(url, address=ELSEWHERE).status_code == 200
    assert hashes() == 1
    assert attempt(url).status_code == 200


def test_an_ipv6_network_is_one_address(hashes, db, engine):
    network = network_of("2001:db8::1")
    with password_hashing.logins.one(network), password_hashing.logins.one(network):
        assert attempt(address="2001:db8::7").status_code == 429


def test_what_is_refused_for_that_is_no_attempt(hashes, db, engine, settings):
    configure(settings, LOGIN_ATTEMPTS=1)
    with password_hashing.logins.one(HERE), password_hashing.logins.one(HERE):
        assert [attempt().status_code for _ in range(3)] == [429] * 3
    assert not AuditEntry.objects.exists()
    assert attempt().status_code == 200


def test_what_the_limit_of_attempts_refuses_costs_no_hash(hashes, db, engine, settings):
    configure(settings, LOGIN_ATTEMPTS=2)
    assert [attempt().status_code for _ in range(5)] == [200, 200, 429, 429, 429]
    assert hashes() == 2


def test_all_addresses_together_have_a_limit_too():
    logins = Logins(each=1, all=2, max_wait=0.0)
    with logins.one("a"), logins.one("b"), pytest.raises(TooManyLogins), logins.one("c"):
        pass
    with logins.one("c"), pytest.raises(TooManyLogins), logins.one("c"):
        pass


def test_who_waits_for_a_place_gets_it_when_one_is_free():
    logins, entered = Logins(each=1, max_wait=20.0), threading.Event()

    def enter() -> None:
        with logins.one("a"):
            entered.set()

    with logins.one("a"):
        thread = threading.Thread(target=enter)
        thread.start()
        assert not entered.is_set()
    thread.join(60)
    assert entered.is_set()


def test_only_so_many_passwords_are_hashed_at_a_time(settings):
    settings.PASSWORD_HASHERS = [f"{__name__}.Counted"]
    done = threading.Event()
    for _ in range(password_hashing.AT_ONCE):
        password_hashing._hashes.acquire()
    thread = threading.Thread(target=lambda: make_password("x") and done.set())
    thread.start()
    assert not done.wait(0.05)
    for _ in range(password_hashing.AT_ONCE):
        password_hashing._hashes.release()
    assert done.wait(60)
    thread.join()


def test_a_hash_made_before_still_opens(settings):
    encoded = PBKDF2PasswordHasher().encode("right", "salt", 1000)
    settings.PASSWORD_HASHERS = ["dashboard.serving.password_hashing.BoundedPBKDF2"]
    assert check_password("right", encoded)
    assert not check_password("wrong", encoded)
    assert make_password("right").startswith(f"pbkdf2_sha256${password_hashing.BoundedPBKDF2.iterations}$")


def test_the_site_hashes_with_it(settings_with):
    assert "dashboard.serving.password_hashing.BoundedPBKDF2" in settings_with()["PASSWORD_HASHERS"].split(",")[0]
