"""Actions that the setting names ask for a login of the last minutes, on every page; others do not."""

from __future__ import annotations

import time

import pytest

from machines.audit.entries import ACTIONS
from machines.conf.table import DANGEROUS
from machines.models import AuditEntry, Token
from machines.people.sign_in_times import CONFIRMED
from tests.configuration import configure

FORM = {"name": "ci", "rights": ["view"], "days": "3", "key": "k" * 20}


@pytest.fixture
def client(as_, settings):
    configure(settings, FRESH_SIGN_IN=["token.make"], FRESH_MINUTES=10)
    return as_("supervisor", "sue")


def wait(client, seconds: float) -> None:
    """Let the login be so old."""
    session = client.session
    session[CONFIRMED] = time.time() - seconds
    session.save()


def make_token(client):
    return client.post("/account/tokens/", FORM, HTTP_REFERER="http://testserver/account/tokens/")


def test_every_action_of_the_list_is_one_of_the_audit():
    assert set(DANGEROUS) - set(ACTIONS) == set()


def test_an_old_login_is_refused_and_the_audit_says_so(client):
    wait(client, 601)
    answer = make_token(client)
    assert answer.status_code == 403
    assert "SB664" in answer.content.decode()
    assert "token.make needs a login within the last 10 minutes" in answer.content.decode().replace(
        "Token.make", "token.make"
    )
    assert not Token.objects.exists()
    entry = AuditEntry.objects.get(action="token.make")
    assert (entry.outcome, entry.detail["code"]) == ("refused", "SB664")


def test_a_login_of_the_last_minutes_does_it(client):
    wait(client, 590)
    assert make_token(client).status_code == 200
    assert Token.objects.count() == 1


def test_a_session_from_before_the_setting_counts_as_old(client):
    session = client.session
    del session[CONFIRMED]
    session.save()
    assert make_token(client).status_code == 403


def test_other_actions_ask_for_nothing(client, settings):
    configure(settings, FRESH_SIGN_IN=["machine.erase"])
    wait(client, 10_000)
    assert make_token(client).status_code == 200
