"""What a page costs whoever opens it: script, and content that moves under the hand."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .conftest import is_live

SCRIPT = 120_000  # bytes, of all scripts of a page together
# A right-aligned number that has one digit more moves the word beside it, by less than this.
SHIFTED = """() => { window.shifts = []; new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries()) {
        const moved = sources.map(({ node }) => node?.outerHTML?.slice(0, 90) ?? node?.textContent);
        if (value > 0.0002) window.shifts.push(`${value.toFixed(4)} ${moved}`);
    }
}).observe({ type: "layout-shift", buffered: true }); }"""


@pytest.mark.parametrize("address", ["/", "/machines/activation/", "/queues/", "/machines/activation/instances/n0/"])
def test_a_page_is_light_and_nothing_on_it_moves_when_counts_change(page, engine, devices, activation, address):
    engine.create(devices, "one")
    for number in range(9):
        engine.create(activation, f"n{number}")
    weights: list[int] = []
    page.on("response", lambda answer: answer.url.endswith(".js") and weights.append(len(answer.body())))
    page.goto(address)
    page.evaluate(f"({SHIFTED})()")
    is_live(page)
    engine.create(activation, "tenth")
    engine.fire(activation, "n0", "activate", {"token": "x"})
    engine.create(devices, "two")
    expect(page.locator("body")).to_contain_text({"/queues/": "2"}.get(address, "Waiting"))
    page.wait_for_timeout(1000)  # what comes a while after is a shift, too
    assert page.evaluate("window.shifts") == []
    assert 0 < sum(weights) < SCRIPT
