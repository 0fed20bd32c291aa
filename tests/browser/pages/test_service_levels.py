"""What is late shows on an open overview when its time is up, and is one click away."""

from __future__ import annotations

import time

from playwright.sync_api import expect

from tests.browser.conftest import is_live

DESK = {
    "id": "desk",
    "initial": "Open",
    "states": {"Open": {"sla": "15m", "on": {"take": "Taken"}}, "Taken": {"on": {"drop": "Open"}}},
}


def test_an_instance_whose_time_is_up_appears_without_a_step_or_a_reload(page, engine):
    engine.publish(DESK)
    engine.create("desk", "slow", now=int(time.time() * 1000) - 15 * 60_000 + 6_000)
    page.goto("/")
    is_live(page)
    page.evaluate("document.body.dataset.marked = 'yes'")
    alarm = page.locator(".alarms a")
    expect(alarm).to_have_text("1 instance of desk in Open for longer than 15 min")
    assert page.evaluate("document.body.dataset.marked") == "yes"
    alarm.click()
    expect(page.locator("table.instances .key")).to_have_text("slow")
    page.goto("/")
    is_live(page)
    engine.fire("desk", "slow", "take")
    expect(alarm).to_have_count(0)
