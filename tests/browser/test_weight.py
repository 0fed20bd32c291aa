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

# The height of a row without rates, which a reading or two make known, and with them.
HEIGHTS = """(row) => ["", "0 /s"].map((text) => {
    for (const rate of row.querySelectorAll("[data-rate]")) rate.textContent = text;
    return row.offsetHeight;
})"""


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


def test_a_row_of_queues_is_as_high_before_its_rates_are_known(page, engine, devices):
    engine.create(devices, "one")
    page.goto("/queues/")
    before, after = page.locator("tr[data-queue='new_device/start']").evaluate(HEIGHTS)
    assert before == after


def test_the_box_that_selects_all_has_its_place_before_it_is_shown(as_, engine, activation):
    engine.create(activation, "one")
    page = as_("supervisor")
    page.goto("/machines/activation/")
    box = page.locator("[data-pick-all]")
    expect(box).to_be_visible()
    shown = page.locator("table.instances thead").bounding_box()
    box.evaluate("(label) => { label.hidden = true; }")
    expect(box).to_be_hidden()
    assert page.locator("table.instances thead").bounding_box() == shown
