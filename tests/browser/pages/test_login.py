"""Logging in and out."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import log_in


def test_whoever_logs_in_comes_to_the_machines(browser, user_of, waiting):
    page = browser().new_page()
    log_in(page, user_of("viewer").username)
    expect(page.get_by_role("heading", name="Machines", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="activation", exact=True)).to_be_visible()


def test_a_wrong_password_is_said_and_the_name_stays(browser, user_of):
    page = browser().new_page()
    log_in(page, user_of("viewer").username, "not this")
    expect(page.get_by_role("alert")).to_contain_text("correct username and password")
    expect(page.get_by_label("Username")).to_have_value("the-viewer")


def test_login_leads_back_to_where_one_wanted_to_go(browser, user_of, waiting):
    user, page = user_of("viewer"), browser().new_page()
    page.goto("/machines/activation/?state=Waiting")
    page.get_by_label("Username").fill(user.username)
    page.get_by_label("Password").fill("let me in")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    expect(page).to_have_url("/machines/activation/?state=Waiting")


def test_who_logs_out_is_out(page):
    page.goto("/")
    page.locator(".bar").get_by_text("More").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Log out").click()
    page.goto("/queues/")
    expect(page.get_by_label("Username")).to_be_visible()
