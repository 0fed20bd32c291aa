"""The page of a machine keeps its figures up to date, and what was chosen on it."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from tests.browser.conftest import is_live

MACHINE = "/machines/activation/"
POLL = "/api/v1/live/"


class Held:
    """Answers of the page's own address that do not arrive yet."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._routes: list = []
        page.route(lambda url: url.split("?")[0].endswith(MACHINE), self._hold)

    def _hold(self, route) -> None:
        if "mode=" in route.request.url:
            route.continue_()
        else:
            self._routes.append((route, route.fetch()))

    def wait(self) -> None:
        while not self._routes:
            self._page.wait_for_timeout(20)

    def arrive(self) -> None:
        """Let the first one arrive, and wait until the page has read it: the next is what it asks for after that."""
        route, rendered = self._routes[0]
        with self._page.expect_request(lambda request: "/rows/" in request.url):
            route.fulfill(response=rendered)


@pytest.fixture
def page(as_) -> Page:
    return as_("supervisor")


def test_figures_of_the_mode_before_that_arrive_late_are_not_shown(page, engine, waiting):
    page.goto(MACHINE)
    is_live(page)
    held = Held(page)
    engine.create("activation", "another")
    held.wait()
    page.get_by_role("link", name="Oldest").click()
    count = page.locator(".sb-diagram [data-state='Waiting'] .count")
    expect(count).to_have_text(re.compile(r"^\d+ s$"))
    expect(page).to_have_url(f"{MACHINE}?mode=age")
    held.arrive()
    assert re.match(r"^\d+ s$", count.text_content())
    assert page.locator(".tabs [data-state='Waiting']").get_attribute("href").startswith(f"{MACHINE}?mode=age")


def test_figures_that_arrive_after_the_view_was_frozen_are_not_shown(page, engine, activation):
    page.goto(MACHINE)
    is_live(page)
    new = page.locator(".sb-diagram .state[data-state='New']")
    expect(new).not_to_have_class(re.compile("occupied"))
    answers = []
    page.route(lambda url: url.endswith(f"{MACHINE}?figures="), lambda route: answers.append((route, route.fetch())))
    engine.create(activation, "one")
    while not answers:
        page.wait_for_timeout(20)
    page.keyboard.press("p")
    expect(page.get_by_role("button", name="Unfreeze")).to_be_visible()
    route, rendered = answers.pop(0)
    with page.expect_event("requestfinished"):
        route.fulfill(response=rendered)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert "occupied" not in new.get_attribute("class")
    page.unroute_all()
    page.keyboard.press("p")
    expect(new).to_have_class(re.compile("occupied"))


def test_all_figures_go_on_after_a_form_that_was_refused(page, engine, waiting):
    page.goto(MACHINE)
    page.get_by_text("New instance").click()
    page.locator("#create-id").fill(waiting.id)
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page).to_have_url(f"{MACHINE}create/")
    is_live(page)
    page.locator("#create-id").fill("is being typed")
    engine.create("activation", "another")
    expect(page.locator(".sb-diagram .state[data-state='New']")).to_have_class(re.compile("occupied"))
    expect(page.locator("#create-id")).to_have_value("is being typed")


@pytest.mark.parametrize("address", [MACHINE, f"{MACHINE}instances/ATV-123:NBCSports/"])
def test_a_page_whose_session_has_ended_says_so_at_the_first_answer_and_asks_no_more(
    chromium, site, user_of, settings, engine, waiting, address
):
    client = Client()
    client.force_login(user_of("supervisor"))
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    with chromium.new_context(base_url=site) as context:  # it may complain about the codes of the answers
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": key, "url": site}])
        page = context.new_page()
        page.clock.install()
        page.goto(address)
        is_live(page)
        ended: list[str] = []

        def end_session(route) -> None:
            if not ended:
                client.session.delete()
            ended.append(route.request.url)
            route.continue_()

        page.route(lambda url: url.split("?")[0] == f"{site}{address}", end_session)
        with page.expect_response(lambda response: POLL in response.url) as answer:
            engine.fire("activation", waiting.id, "entitle", {"token": "MTOB1J"})
        assert answer.value.status == 401
        expect(page.locator("[data-live-text]")).to_have_text("Signed out: log in again")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.clock.run_for(200_000)
        page.evaluate("() => new Promise(requestAnimationFrame)")
        rest = [url for url in asked if "/rows/" not in url]  # what the page asks together with the first
        assert (len(ended), rest) == (1, [])


def test_a_page_without_a_socket_asks_for_nothing_but_values_while_nothing_changes(page, waiting):
    asked: list[str] = []
    page.route_web_socket("**/ws/live/", lambda socket: socket.close())
    page.goto(MACHINE)
    page.on("request", lambda request: asked.append(request.url))
    for _ in range(3):
        with page.expect_response(lambda response: POLL in response.url):
            pass
    assert [url for url in asked if POLL not in url and "/static/" not in url] == []


def test_an_instance_that_is_created_again_under_its_id_is_deleted_no_longer(page, engine, activation):
    engine.create(activation, "one")
    page.goto(MACHINE)
    is_live(page)
    state = page.locator("tr[data-row='one'] [data-cell='states']")
    engine.delete(activation, "one")
    expect(state).to_have_text("deleted")
    engine.create(activation, "one")
    expect(state).to_have_text(re.compile("New"))
