"""Sign-in at a real OpenID provider: accounts, groups, and each answer that is no sign-in."""

import html
import re
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from tests.cases import for_each

pytestmark = pytest.mark.faults


def test_a_person_of_the_provider_gets_an_account_with_the_rights_of_the_groups(site, provider, person):
    provider.knows("o-1", email="olga@acme.example", preferred_username="olga", groups=["ops", "lunch"])
    assert person.sign_in("o-1").url.path == "/"
    assert person.is_logged_in()
    assert site.groups_of("olga") == {"operator"}
    assert "groups without a mapping are ignored: lunch" in (site.home / "log").read_text()
    assert site.audit("olga")[-1][:2] == ("login", "done")
    assert '"Acme"' in site.audit("olga")[-1][2]
    assert ("user.make", "done") in [row[:2] for row in site.audit("identity provider")]


def test_groups_follow_the_provider_at_each_sign_in_and_others_stay(site, provider, person, another):
    provider.knows("o-2", email="otto@acme.example", preferred_username="otto", groups=["ops", "bosses"])
    person.sign_in("o-2")
    assert site.groups_of("otto") == {"operator", "supervisor"}
    provider.knows("o-2", email="otto@acme.example", preferred_username="otto", groups="ops")
    another().sign_in("o-2")
    assert site.groups_of("otto") == {"operator"}
    provider.knows("o-2", email="otto@acme.example", preferred_username="otto")
    another().sign_in("o-2")
    assert site.groups_of("otto") == set()


def test_a_name_that_is_taken_is_not_taken_over(site, provider, person):
    provider.knows("o-3", email="somebody@acme.example", preferred_username="ann", groups=[])
    person.sign_in("o-3")
    assert person.is_logged_in()
    ((name,),) = site.read("select username from auth_user where email = 'somebody@acme.example'")
    assert name != "ann"
    assert person.get("/admin/").url.path != "/admin/"


def test_a_mail_that_belongs_to_another_account_joins_nobody(site, provider, person, another):
    provider.knows("o-4", email="Dan@example.com", email_verified=True, preferred_username="daniel")
    answer = person.sign_in("o-4")
    assert (answer.status_code, "SB718" in answer.text) == (403, True)
    assert not person.is_logged_in()
    assert site.read("select count(*) from auth_user where username = 'daniel'") == [(0,)]
    # Whoever knows the password of the account connects it.
    person.log_in("dan")
    person.sign_in("o-4", process="connect", page="/accounts/3rdparty/")
    again = another()
    again.sign_in("o-4")
    assert ">dan</a>" in again.get("/account/").text


def test_an_answer_counts_once_and_only_for_the_session_that_asked(site, provider, person, another):
    provider.knows("o-5", email="pia@acme.example", preferred_username="pia")
    callback = httpx.post(person.start_at_provider(), data={"sub": "o-5"}).headers["Location"]
    stranger = another()
    assert stranger.get(callback).status_code == 401
    assert not stranger.is_logged_in()
    assert person.get(callback).url.path == "/"
    assert person.is_logged_in()
    again = person.get(callback)
    assert (again.status_code, "SB718" in again.text) == (401, True)
    assert [row[:2] for row in site.audit("identity provider")][-1] == ("login.failed", "refused")


def test_a_token_of_another_request_or_time_logs_nobody_in(site, provider, another):
    now = int(time.time())

    @for_each(
        "claims, reason",
        [
            ({"nonce": "of another request"}, "nonce"),
            ({"nonce": None}, "nonce"),
            ({"exp": now - 3600}, "id_token"),  # the provider's clock is behind
            ({"iat": now + 3600, "exp": now + 7200}, "seconds ahead"),  # and ahead
            ({"iss": "https://another.example"}, "id_token"),
            ({"aud": "another client"}, "id_token"),
        ],
    )
    def check(claims, reason):
        provider.knows("o-7", email="ray@acme.example", preferred_username="ray", **claims)
        person = another()
        answer = person.sign_in("o-7")
        assert (answer.status_code, "compare the clocks" in answer.text) == (401, True)
        assert not person.is_logged_in()
        assert reason in site.audit("identity provider")[-1][2]

    check()
    assert site.read("select count(*) from auth_user where username = 'ray'") == [(0,)]
    provider.knows("o-7", email="ray@acme.example", preferred_username="ray")
    first, second = (httpx.URL(another().start_at_provider()).params["nonce"] for _ in range(2))
    assert len(first) >= 32
    assert first != second


def test_the_page_that_asks_who_one_is_leads_to_the_provider_and_back(site, provider, person):
    assert person.get("/accounts/confirm/?next=/machines/").url.path == "/accounts/login/"
    provider.knows("o-8", email="sam@acme.example", preferred_username="sam")
    person.sign_in("o-8")
    page = person.get("/accounts/confirm/?next=/queues/")
    assert "Log in again at your identity provider." in page.text
    form = html.unescape(re.search(r'action="([^"]*/oidc/sso/login/[^"]*)"', page.text)[1])
    onward = httpx.URL(person.submit(page, form).headers["Refresh"].partition("url=")[2])
    assert (onward.params["prompt"], onward.params["max_age"]) == ("login", "0")
    assert person.client.post(onward, data={"sub": "o-8"}).url.path == "/queues/"
    page = person.get("/accounts/confirm/?next=https://evil.example/")
    form = html.unescape(re.search(r'action="([^"]*/oidc/sso/login/[^"]*)"', page.text)[1])
    assert httpx.URL(form).params["next"] == "/"


def test_a_dangerous_action_waits_for_a_fresh_login_at_the_provider(start_site, provider, another):
    def knows(age: int) -> None:
        claims = {"email": "tom@acme.example", "preferred_username": "tom", "groups": ["bosses"]}
        provider.knows("o-9", auth_time=int(time.time()) - age, **claims)

    def make_token(person) -> int:
        page = "/account/tokens/"
        return person.post(page, name="ci", rights="view", days="3", key=secrets.token_hex(10)).status_code

    with start_site(
        SIGNALBOX_SIGN_IN="oidc", SIGNALBOX_OIDC_URL=provider.url, SIGNALBOX_OIDC_CLIENT="signalbox",
        SIGNALBOX_OIDC_SECRET="a secret of the client", SIGNALBOX_SIGN_IN_GROUPS="bosses=supervisor",
        SIGNALBOX_FRESH_SIGN_IN="token.make",
    ) as site:  # fmt: skip
        person, other = another(site), another(site)
        knows(age=3600)
        for one in (person, other):
            one.sign_in("o-9")
            assert make_token(one) == 403
        confirm = {"page": "/accounts/confirm/?next=/account/"}
        person.sign_in("o-9", **confirm)  # the provider asked for no password again
        assert make_token(person) == 403
        knows(age=5)
        person.sign_in("o-9", **confirm)
        assert [make_token(one) for one in (person, other)] == [200, 403], "one session is confirmed, not the account"
        assert [row[1] for row in site.audit("tom") if row[0] == "token.make"].count("done") == 1


def test_a_person_who_says_no_at_the_provider_is_not_logged_in(site, person):
    answer = person.client.post(person.start_at_provider(), data={"action": "deny"})
    assert (answer.status_code, "SB718" in answer.text) == (401, True)


def test_a_code_without_its_verifier_is_worth_nothing(site, provider, person):
    address = httpx.URL(person.start_at_provider())
    assert address.params["code_challenge_method"] == "S256"
    callback = httpx.URL(httpx.post(address, data={"sub": "o-5"}).headers["Location"])
    forged = callback.copy_set_param("code", "made up")
    assert person.get(str(forged)).status_code == 401
    assert not person.is_logged_in()


def test_a_provider_that_is_away_gets_a_page(start_site, another):
    with start_site(
        SIGNALBOX_SIGN_IN="oidc", SIGNALBOX_OIDC_URL="http://127.0.0.1:9", SIGNALBOX_OIDC_CLIENT="signalbox"
    ) as site:
        person = another(site)
        answer = person.post("/accounts/oidc/sso/login/?process=login", page="/accounts/login/")
        assert (answer.status_code, "SB719" in answer.text) == (503, True)
        assert person.log_in("ann").url.path == "/"


def test_a_provider_that_answers_something_else_gets_a_page(start_site, another):
    held = [b""]

    class Changing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(held[0])

        def log_message(self, *said: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Changing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        with start_site(
            SIGNALBOX_SIGN_IN="oidc", SIGNALBOX_OIDC_URL=address, SIGNALBOX_OIDC_CLIENT="signalbox"
        ) as site:
            person = another(site)
            for held[0] in (b"[]", b"7", b"null", b'"text"', b"<html><p>404</html>", b"{", b"\xff", b"{}",
                            b'{"authorization_endpoint": 7}', b'{"authorization_endpoint": ["x"]}'):  # fmt: skip
                answer = person.post("/accounts/oidc/sso/login/?process=login", page="/accounts/login/")
                assert (answer.status_code, "SB719" in answer.text) == (503, True), held[0]
            assert "Traceback" not in (site.home / "log").read_text()
            assert person.log_in("ann").url.path == "/"
        server.shutdown()


def test_an_account_of_the_provider_has_no_password_to_set(site, provider, person):
    provider.knows("o-6", email="quin@acme.example", preferred_username="quin")
    person.sign_in("o-6")
    answer = person.get("/accounts/password/change/")
    assert (answer.status_code, "identity provider" in answer.text) == (403, True)
