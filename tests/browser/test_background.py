"""A tab that nobody looks at asks for nothing; seen again, it has one snapshot and is live."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from .conftest import is_live

HIDE = """hidden => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def watched(page, waiting):
    """A live page whose clock the test moves, and what went over its socket: (said by us, kind) each."""
    frames: list[tuple[bool, str]] = []

    def listen(socket) -> None:
        socket.on("framesent", lambda text: frames.append((True, json.loads(text)["type"])))
        socket.on("framereceived", lambda text: frames.append((False, json.loads(text)["type"])))

    page.on("websocket", listen)
    page.clock.install()
    page.goto("/machines/activation/")
    is_live(page)
    expect(page.locator(".sb-diagram [data-state='Waiting'] .count")).to_have_text("1")
    return page, frames


def until(page, holds) -> None:
    """Waits until the condition holds, while the page's events come in."""
    for _ in range(300):
        if holds():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it did not come true")


def test_it_goes_quiet_after_a_while_and_comes_back_with_one_snapshot(watched, engine):
    page, frames = watched
    count = page.locator(".sb-diagram [data-state='New'] .count")
    page.evaluate(HIDE, True)
    page.clock.fast_forward(5_000)
    engine.create("activation", "seen to")
    until(page, lambda: (False, "delta") in frames)
    page.clock.fast_forward(12_000)
    del frames[:]
    for number in range(3):
        engine.create("activation", f"n{number}")
    until(page, lambda: frames.count((False, "status")) > 1)
    assert {kind for _, kind in frames} <= {"status", "unsubscribe"}
    page.evaluate(HIDE, False)
    expect(count).to_have_text("4")
    is_live(page)
    until(page, lambda: (False, "snapshot") in frames)
    assert frames.count((True, "subscribe")) == frames.count((False, "snapshot")) == 1
    assert (False, "delta") not in frames


def test_ages_stop_in_the_background_and_are_right_again_when_seen(watched):
    page, _ = watched
    age = page.locator("table.instances time").first
    page.evaluate(HIDE, True)
    before = age.inner_text()
    page.clock.fast_forward(7_200_000)
    assert age.inner_text() == before
    page.evaluate(HIDE, False)
    expect(age).to_contain_text("2 h")


def test_a_glance_away_changes_nothing(watched, engine):
    page, frames = watched
    page.evaluate(HIDE, True)
    page.clock.fast_forward(3_000)
    page.evaluate(HIDE, False)
    page.clock.fast_forward(60_000)
    engine.create("activation", "one")
    expect(page.locator(".sb-diagram [data-state='New'] .count")).to_have_text("1")
    assert (True, "unsubscribe") not in frames
