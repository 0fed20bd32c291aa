"""The page about paths in a browser: figures lead to their instances, at any width, in both themes."""

from __future__ import annotations

import re
import shutil

import pytest
from playwright.sync_api import expect

from machines.insight.store import Store
from tests.browser.accessibility import AXE, violations
from tests.browser.test_every_page import NAMES, SMALL, beside, resize
from tests.pages.insight.conftest import add_jobs, write_facts

PAGE = "/machines/activation/insight/"
QUERIES = (
    "", "?figure=p95&show=times", "?show=bottlenecks", "?show=funnel&stage1=Waiting&stage2=Active&within=1h",
    "?show=people&each=actor", "?show=people&each=worker", "?show=levels&limit=30s",
    "?show=compare&second-state=Suspended", "?show=conformance",
    "?show=instances&at=Waiting", "?version=x",
)  # fmt: skip


@pytest.fixture
def facts(log, activation):
    folder = log.parent / "insight"
    yield write_facts(Store(folder), activation)
    shutil.rmtree(folder / activation)


def test_a_state_of_the_diagram_leads_to_the_instances_behind_its_figure(as_, facts):
    page = as_("viewer")
    page.goto(PAGE)
    page.get_by_role("link", name="Count", exact=True).click()
    expect(page.locator('[data-state="Waiting"] .count')).to_have_text("10")
    page.locator('[data-state="Waiting"]').click()
    expect(page.get_by_text("10 instances: were in Waiting")).to_be_visible()
    page.get_by_role("link", name="s-1").click()
    expect(page).to_have_url(re.compile("/machines/activation/instances/s-1/$"))


def test_a_filter_stays_while_the_question_changes(as_, facts):
    page = as_("viewer")
    page.goto(PAGE)
    page.get_by_label("is or ended in").fill("Suspended")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="Bottlenecks").click()
    expect(page.get_by_text("2 instances, 8 steps")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="Active")).to_contain_text("2 min")


def test_each_answer_fits_and_is_open_to_everybody(as_, facts):
    add_jobs(facts, "activation")
    page = as_("supervisor", color_scheme="light", reduced_motion="reduce")
    page.add_init_script(path=AXE)
    wrong = {}
    for query in QUERIES:
        resize(page, 1280)
        page.goto(PAGE + query)
        found = [*beside(page, 1280), *violations(page)]
        page.emulate_media(color_scheme="dark")
        found += violations(page, "color-contrast")
        resize(page, 390)
        found += [*beside(page, 390), *violations(page, "target-size", NAMES), *page.evaluate(SMALL)]
        page.emulate_media(color_scheme="light")
        if found:
            wrong[query] = found
    assert wrong == {}
