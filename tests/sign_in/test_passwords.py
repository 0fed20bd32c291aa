"""Logins by password go through the library and keep the limits and the audit that they have without it."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest

pytestmark = pytest.mark.faults


def test_a_password_logs_in_and_the_audit_says_so_once(site, person):
    assert "Log in" in person.get("/accounts/login/").text
    assert person.log_in("bob", "wrong").url.path == "/accounts/login/"
    assert person.log_in("bob").url.path == "/"
    assert person.is_logged_in()
    assert [row[:2] for row in site.audit("bob")] == [("login.failed", "refused"), ("login", "done")]
    person.post("/accounts/logout/", page="/account/")
    assert not person.is_logged_in()
    assert site.audit("bob")[-1][:2] == ("logout", "done")


def test_too_many_attempts_are_refused_as_without_the_library(site, person):
    answers = [person.log_in("nobody", f"guess {n}") for n in range(11)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429]
    assert "SB709" in answers[-1].text


def test_the_admin_has_no_login_of_its_own(site, person):
    assert person.get("/admin/").url.path == "/accounts/login/"
    person.log_in("ann")
    assert person.get("/admin/").url.path == "/admin/"


def test_a_password_is_changed_with_the_old_one_and_ends_other_sessions(site, person, another):
    other = another()
    other.log_in("cat")
    person.log_in("cat")
    page = "/accounts/password/change/"
    refused = person.post(page, oldpassword="wrong", password1="a better password", password2="a better password")
    assert "error" in refused.text
    assert "error" in person.post(page, oldpassword="let me in", password1="12345678", password2="12345678").text
    person.post(page, oldpassword="let me in", password1="a better password", password2="a better password")
    assert person.is_logged_in()
    assert not other.is_logged_in()
    assert another().log_in("cat").url.path == "/accounts/login/"
    assert ("user.password", "done") in [row[:2] for row in site.audit("cat")]


def test_nobody_signs_up(site, person):
    assert person.get("/accounts/signup/").status_code == 404
    assert person.get("/accounts/email/").status_code == 404
    assert person.get("/accounts/password/reset/").status_code == 404  # no mail server is set


@contextmanager
def receive_mails() -> Iterator[tuple[int, list[str]]]:
    """A mail server; yields its port and what it has received. With "full" among that it takes no more."""
    received: list[str] = []

    class Receiver(StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 here\r\n")
            while word := self.rfile.readline().strip().upper():
                if word == b"DATA" and "full" not in received:
                    self.wfile.write(b"354 go on\r\n")
                    received.append(b"".join(iter(self.rfile.readline, b".\r\n")).decode())
                answers = {b"DATA": b"452 full"} if "full" in received else {}
                self.wfile.write(answers.get(word, b"250 fine") + b"\r\n")

    with ThreadingTCPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], received
        server.shutdown()


def test_a_forgotten_password_is_replaced_by_a_link_that_counts_once(start_site, another):
    reset, words = "/accounts/password/reset/", {"password1": "a better password", "password2": "a better password"}
    with receive_mails() as (port, mails), start_site(
        SIGNALBOX_SIGN_IN="totp", EMAIL_URL=f"smtp://127.0.0.1:{port}", SIGNALBOX_ENVIRONMENT="rehearsal=green"
    ) as site:  # fmt: skip
        person, other = another(site), another(site)
        other.log_in("bob")
        asked = [person.post(reset, email=mail) for mail in ("nobody@example.com", "bob@example.com")]
        shown = {(page.url.path, page.text.partition("<main")[2].partition("</main>")[0]) for page in asked}
        assert len(shown) == 1, "the page tells who has an account"
        (mail,) = mails
        assert "To: bob@example.com" in mail
        assert "rehearsal" in mail.partition("\n\n")[0]
        link = re.search(r"http://\S+(/accounts/password/reset/key/\S+)", mail)[1]
        forged = person.get(link[:-3] + "xyz/")
        assert "password1" not in forged.text
        page = person.get(link)
        assert "error" in person.submit(page, password1="12345678", password2="12345678").text
        person.submit(page, **words)
        assert not other.is_logged_in()
        assert "password1" not in another(site).get(link).text
        assert another(site).log_in("bob").url.path == "/accounts/login/"
        assert another(site).log_in("bob", words["password1"]).url.path == "/"
        mails.append("full")
        assert person.post(reset, email="cat@example.com").url.path == f"{reset}done/"
        assert "Traceback" not in (site.home / "log").read_text()


def test_other_sessions_are_ended_at_once_and_the_own_one_stays(site, person, another):
    others = [another(), another()]
    for one in (person, *others):
        one.log_in("kim")
    stranger = another()
    stranger.log_in("lea")
    page = person.get("/accounts/sessions/")
    assert page.text.count("python-httpx") == 3
    person.submit(page)
    assert person.is_logged_in()
    assert [one.is_logged_in() for one in (*others, stranger)] == [False, False, True]
    assert person.get("/accounts/sessions/").text.count("python-httpx") == 1
