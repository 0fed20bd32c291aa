"""Logging in is throttled by name and by address, on the pages and in the admin, and every attempt is in the audit."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from dashboard.serving.password_hashing import logins
from machines import connections
from machines.connections import get_engine
from machines.models import AuditEntry
from machines.people.client_address import network_of
from tests.cases import for_each
from tests.configuration import configure
from tests.conftest import NOWHERE
from tests.engine.instances.racing import in_threads

PAGES, ADMIN = "/accounts/login/", "/admin/login/"


@pytest.fixture
def sue(django_user_model, prefix, settings):
    configure(settings, LOGIN_ATTEMPTS=3)
    return django_user_model.objects.create_superuser("sue", password="right")


def attempt(url=PAGES, name="sue", password="wrong", address="192.0.2.1", client=None):
    return (client or Client()).post(url, {"username": name, "password": password}, REMOTE_ADDR=address)


def actions():
    return list(AuditEntry.objects.order_by("id").values_list("actor", "action", "outcome"))


@pytest.mark.parametrize("url", [PAGES, ADMIN])
@pytest.mark.parametrize("name", ["sue", "nobody", "Süe\u202e", "<script>", "a\0b", "x" * 5000])
def test_too_many_attempts_for_a_name_are_refused_from_anywhere_and_whoever_it_is(sue, url, name):
    answers = [attempt(url, name, address=f"192.0.2.{n}") for n in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    refused = answers[-1]
    assert 0 < int(refused["Retry-After"]) <= 300
    assert "SB709" in refused.content.decode()
    assert attempt(url, "tom", address="192.0.2.9").status_code == 200


def test_the_right_password_gets_the_same_answer_as_a_wrong_one_while_it_is_refused(sue):
    for _ in range(3):
        attempt()
    for url in (PAGES, ADMIN):  # one count for both doors
        right, wrong = attempt(url, password="right"), attempt(url)
        assert (right.status_code, right.cookies.get("sessionid")) == (429, None)
        shown, shown_to_wrong = (
            re.sub(r'nonce="[^"]+"', "", answer.content.decode()).replace(answer["X-Request-Id"], "")
            for answer in (right, wrong)
        )
        assert shown == shown_to_wrong
    assert attempt(name="SUE ", password="right").status_code == 429  # the same name, written otherwise


def test_an_account_is_open_again_when_the_window_ends_however_many_tried_meanwhile(sue, engine):
    for _ in range(9):
        attempt()
    (key,) = get_engine().client.scan_iter(match=f"{engine.keys.prefix}window:*login.name:*")
    assert 0 < engine.client.pttl(key) <= 300_000
    engine.client.delete(key)  # what its expiry does
    connections._pattern.cache_clear()  # a throttle that remembers no refusal, as any process has by then
    assert attempt(password="right").status_code == 302


def test_one_address_cannot_try_name_after_name(sue):
    codes = [attempt(name=f"n{n}", address="2001:db8::1").status_code for n in range(16)]
    assert codes == [200] * 15 + [429]
    assert attempt(name="other", address="2001:db8::ffff:1").status_code == 429  # the same /64
    assert attempt(name="other", address="2001:db8:0:1::1").status_code == 200


@for_each(
    "address, network",
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::7", "2001:db8::/64"),
        ("", "local"),
        ("fe80::1%eth0", "fe80::/64"),
        ("a socket", "a socket"),
    ],
)
def test_an_address_is_what_one_visitor_has(address, network):
    assert network_of(address) == network


def test_a_success_gives_a_name_its_attempts_back_and_all_of_it_is_in_the_audit(sue):
    browser = Client()
    attempt(), attempt()
    assert attempt(password="right", client=browser).status_code == 302
    assert [attempt().status_code for _ in range(4)] == [200, 200, 200, 429]
    assert attempt().status_code == 429
    assert attempt(name="s3cret typed in the wrong field").status_code == 200
    browser.post(reverse("signalbox:logout"))
    refused = [("sue", "login.failed", "refused")]
    assert actions() == [
        *refused * 2, ("sue", "login", "done"), *refused * 3, ("sue", "login.throttled", "refused"),
        ("(unknown)", "login.failed", "refused"), ("sue", "logout", "done"),
    ]  # fmt: skip
    assert AuditEntry.objects.last().source == "page 192.0.2.1"  # the first of them: the newest stands first


def test_whoever_is_logged_in_and_posts_again_is_sent_on_and_nothing_is_counted(sue):
    client = Client()
    client.force_login(sue)
    assert [attempt(client=client).status_code for _ in range(5)] == [302] * 5
    assert actions() == []


def test_guesses_sent_side_by_side_are_counted_too(sue, transactional_db, monkeypatch):
    monkeypatch.setattr(logins, "_max_wait", 60.0)  # seconds: each gets its turn, however slow those before it are
    codes = in_threads([_code] * 8)
    assert sorted(codes) == [200] * 3 + [429] * 5


def _code() -> int:
    """Of an attempt in a thread of its own, which leaves no connection behind."""
    try:
        return attempt().status_code
    finally:
        connection.close()


def test_without_redis_nobody_logs_in(sue, settings):
    configure(settings, REDIS_URL=NOWHERE)
    for url in (PAGES, ADMIN):
        assert attempt(url, password="right").status_code == 503
