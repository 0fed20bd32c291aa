"""The one fetcher of the pages' scripts, with a network and a clock that the test plays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

LOADED = """async () => {
    const fetcher = await import("/static/signalbox/js/shared/fetcher.js");
    const answer = (status, body = "{}", headers = {}) => new Response(body, { status, headers });
    const follow = (address, take) => fetcher.throttle(async (signal) => {
        const found = await fetcher.fetchJson(address(), { signal });
        if (found) take(found);
    }, undefined, { seen: true });
    Object.assign(window, { ...fetcher, asked: [], taken: [], answer, follow });
    window.reply = () => answer(200);
    window.fetch = (url, options) => {
        asked.push(String(url));
        return new Promise((done, fail) => {
            options.signal.addEventListener("abort", () => fail(options.signal.reason));
            const made = reply(asked.length);
            if (made instanceof Error) fail(made);
            else if (made) done(made);
        });
    };
}"""


@pytest.fixture
def page(browser: Callable) -> Page:
    """An empty page of the site, with the fetcher in it."""
    page = browser(bypass_csp=True).new_page()
    page.goto("/healthz")
    page.clock.install(time=0)
    page.clock.pause_at(1_000)
    page.evaluate(LOADED)
    return page


def test_what_is_asked_for_often_is_fetched_at_once_and_then_seldom(page: Page) -> None:
    page.evaluate("window.ask = follow(() => '/a', (found) => taken.push(found))")
    page.evaluate("for (let n = 0; n < 50; n += 1) ask()")
    page.clock.run_for(50)
    assert page.evaluate("[asked.length, taken.length]") == [1, 1]
    page.evaluate("for (let n = 0; n < 50; n += 1) ask()")
    page.clock.run_for(1_900)
    assert page.evaluate("asked.length") == 1
    page.clock.run_for(200)
    assert page.evaluate("asked.length") == 2
    page.clock.run_for(60_000)
    assert page.evaluate("asked.length") == 2, "nothing moved since"


def test_what_is_asked_for_while_the_last_answer_is_under_way_is_fetched_once_more(page: Page) -> None:
    page.evaluate("""() => {
        window.runs = 0;
        window.ask = throttle(async () => { runs += 1; if (runs === 1) { ask(); ask(); throw new Error("lost"); } }, 5);
        addEventListener("unhandledrejection", (event) => event.preventDefault());
        ask();
    }""")
    page.clock.run_for(100)
    assert page.evaluate("runs") == 2


def test_another_question_ends_the_one_under_way(page: Page) -> None:
    page.evaluate("""() => {
        window.reply = (nth) => nth > 1 && answer(200, '{"nth": 2}');
        window.ask = throttle(async (signal) => taken.push(await fetchJson(`/${asked.length}`, { signal })), 150);
        ask();
    }""")
    page.clock.run_for(1_000)
    assert page.evaluate("[asked, taken]") == [["/0"], []]
    page.evaluate("ask.again()")
    page.clock.run_for(1_000)
    assert page.evaluate("[asked, taken]") == [["/0", "/1"], [None, {"nth": 2}]]
    assert page.evaluate("delay()") == 0, "nobody failed"


@pytest.mark.parametrize("reply", ["new Error('no network')", "answer(500)", "answer(429)"])
def test_a_server_that_does_not_answer_is_asked_less_and_less(page: Page, reply: str) -> None:
    page.evaluate("Math.random = () => 0.999")
    page.evaluate(f"window.reply = () => {reply}")
    page.evaluate("window.ask = follow(() => '/a', (found) => taken.push(found)); setInterval(ask, 100)")
    page.clock.run_for(600_000)
    assert 15 <= page.evaluate("asked.length") <= 40, "ten minutes, each two seconds at first"
    page.evaluate("window.reply = () => answer(200)")
    page.clock.run_for(31_000)
    before = page.evaluate("asked.length")
    page.clock.run_for(10_000)
    assert page.evaluate("asked.length") - before in (4, 5), "it is there again"
    assert page.evaluate("delay()") == 0


def test_a_server_says_for_how_long_it_is_left_alone(page: Page) -> None:
    page.evaluate("window.reply = (nth) => (nth === 1 ? answer(503, '', { 'Retry-After': '20' }) : answer(200))")
    page.evaluate("window.ask = follow(() => '/a', (found) => taken.push(found)); ask()")
    page.clock.run_for(50)
    page.evaluate("ask()")
    page.clock.run_for(19_000)
    assert page.evaluate("asked.length") == 1
    page.clock.run_for(2_000)
    assert page.evaluate("[asked.length, taken]") == [2, [{}]]


def test_an_answer_that_is_none_for_us_is_nothing(page: Page) -> None:
    page.evaluate(
        "window.reply = (nth) => [answer(404), answer(403), answer(200, 'no JSON'), new Error('lost')][nth - 1]"
    )
    assert page.evaluate("Promise.all([1, 2, 3, 4].map(() => fetchJson('/a')))") == [None] * 4


def test_nothing_is_asked_for_in_a_tab_that_nobody_sees(page: Page) -> None:
    page.evaluate("""() => {
        window.hidden = true;
        Object.defineProperty(document, "hidden", { get: () => window.hidden });
        window.ask = follow(() => "/a", (found) => taken.push(found));
        ask();
    }""")
    page.clock.run_for(60_000)
    assert page.evaluate("asked.length") == 0
    page.evaluate("window.hidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    page.clock.run_for(100)
    assert page.evaluate("asked.length") == 1
