"""Second factors: a password alone opens nothing, codes count once, recovery codes replace a lost device."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sign_in.conftest import Person, add_app, code_of

pytestmark = pytest.mark.faults
KEPT = "select data from mfa_authenticator a join auth_user u on u.id = a.user_id where u.username = 'eve'"


@pytest.fixture(scope="module")
def app(site) -> tuple[str, list[str]]:
    """The secret of the app that eve has added to her account, and her recovery codes."""
    person = Person(site)
    person.log_in("eve")
    secret, answer = add_app(person)
    person.client.close()
    return secret, re.findall(r"\b\d{8}\b", answer.text)


@pytest.fixture
def secret(app) -> str:
    return app[0]


@pytest.fixture
def recovery(app) -> list[str]:
    return app[1]


def test_a_person_who_adds_an_app_gets_recovery_codes(site, secret, recovery):
    assert len(recovery) == 10
    kept = [row[0] for row in site.read(KEPT)]
    assert len(kept) == 2
    assert not any(secret in data for data in kept), "the database holds the secret as it is"


def test_a_password_without_the_second_factor_opens_nothing(site, person, secret):
    assert person.log_in("eve").url.path == "/accounts/2fa/authenticate/"
    assert not person.is_logged_in()
    for path in ("/", "/instances/", "/admin/", "/api/v1/me", "/accounts/sessions/", "/accounts/password/change/"):
        answer = person.client.get(path, follow_redirects=False)
        assert answer.status_code in (302, 401, 404), path
    assert person.post("/accounts/2fa/authenticate/", code="000000").url.path == "/accounts/2fa/authenticate/"
    assert not person.is_logged_in()
    assert [row[:2] for row in site.audit("eve")][-1] != ("login", "done") or len(site.audit("eve")) == 1


def test_a_code_logs_in_and_counts_once(person, another, secret):
    code = code_of(secret, ahead=30)  # the next one: the present one was used to add the app
    person.log_in("eve")
    assert person.post("/accounts/2fa/authenticate/", code=code).url.path == "/"
    assert person.is_logged_in()
    thief = another()
    thief.log_in("eve")
    thief.post("/accounts/2fa/authenticate/", code=code)
    assert not thief.is_logged_in()


def test_a_recovery_code_replaces_a_lost_device_once(person, another, recovery):
    person.log_in("eve")
    person.post("/accounts/2fa/authenticate/", code=recovery[0])
    assert person.is_logged_in()
    thief = another()
    thief.log_in("eve")
    thief.post("/accounts/2fa/authenticate/", code=recovery[0])
    assert not thief.is_logged_in()


def test_the_command_that_replaces_the_key_renews_second_factors_too(site, another, recovery, redis_url):
    key = (site.home / "secret_key").read_text().strip()

    def rotate(new: str, old: str) -> int:
        """Return how many secrets of factors were renewed; other people of the site have some, too."""
        variables = {"SIGNALBOX_HOME": str(site.home), "SECRET_KEY": new, "SECRET_KEY_FALLBACKS": old}
        command = [sys.executable, str(Path(__file__).resolve().parents[2] / "manage.py"), "secrets", "rotate"]
        settings = {"DJANGO_SETTINGS_MODULE": "dashboard.settings", "SIGNALBOX_SIGN_IN": "totp", "REDIS_URL": redis_url}
        said = subprocess.run(
            command, env=os.environ | variables | settings, capture_output=True, text=True, check=True, timeout=240
        ).stdout
        return int(re.search(r"mfa.Authenticator.data: (\d+) encrypted", said)[1])

    before, other = site.read(KEPT), "another-key-as-long-as-a-key-should-be-0123456789"
    renewed = rotate(other, key)
    assert renewed >= 2
    assert not set(site.read(KEPT)) & set(before)
    assert rotate(key, other) == renewed
    person = another()
    person.log_in("eve")
    person.post("/accounts/2fa/authenticate/", code=recovery[1])
    assert person.is_logged_in()


def test_guesses_of_codes_are_limited(another, secret):
    guesser = another()
    guesser.log_in("eve")
    for number in range(11):
        guesser.post("/accounts/2fa/authenticate/", code=f"{number:06}")
    guesser.post("/accounts/2fa/authenticate/", code=code_of(secret, ahead=30))
    assert not guesser.is_logged_in()
