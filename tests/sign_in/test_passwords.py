"""Logins by password go through the library and keep the limits and the audit that they have without it."""

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
