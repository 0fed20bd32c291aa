"""A bulk in the browser: from a list to its last outcome, while the page stands open."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from machines.worker.registry import discover
from tests.browser.conftest import is_live
from tests.instances.bulks.builders import parcels
from tests.worker.builders import Running


def test_a_bulk_is_made_looked_at_and_run_without_a_reload(as_, engine):
    parcels(engine, 40)
    engine.create("parcel", "heavy", {"weight": 50})
    page = as_("supervisor")
    page.goto("/machines/parcel/?state=open")
    page.get_by_role("link", name="Bulk action on all results (41)").click()
    page.get_by_role("link", name="fire send").click()
    page.get_by_label("reason").fill("the van is late")
    page.get_by_role("button", name="Preview").click()
    expect(page).to_have_url(re.compile("/bulk/[0-9a-f]{16}/$"))
    is_live(page)
    page.evaluate("window.stayed = true")
    with Running(engine, discover()):
        expect(page.locator("[data-verdict=taken] dd")).to_have_text("40")
        run = page.get_by_role("button", name="Run on 41")
        expect(run).to_be_visible()
        assert page.evaluate("window.stayed")
        run.click()
        expect(page.locator("[data-outcome=done] dd")).to_have_text("40")
        expect(page.get_by_role("button", name="Retry failed instances")).to_be_visible()
    assert engine.counts("parcel")["sent"] == 40
