"""Everything works with scripts switched off; they only add what is live."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"


@pytest.fixture
def plain(as_):
    """A supervisor's page in a browser without scripts."""
    return as_("supervisor", "sue", java_script_enabled=False)


def test_the_diagram_carries_its_counts_and_filters(plain, engine, waiting):
    engine.create("activation", "second")
    plain.goto("/machines/activation/")
    expect(plain.locator(".sb-diagram [data-state='Waiting'] .count")).to_have_text("1")
    plain.locator(".sb-diagram [data-state='New']").click()
    expect(plain.locator("table.instances tbody tr")).to_have_count(1)
    expect(plain.locator("table.instances a.key")).to_have_text("second")


def test_an_event_is_fired_refused_and_disputed(plain, engine, waiting):
    plain.goto(INSTANCE)
    plain.get_by_label("token").first.fill("wrong")
    plain.get_by_role("button", name="Fire entitle").click()
    expect(plain.get_by_text("entitle: stays in Waiting, revision 3")).to_be_visible()
    engine.fire("activation", waiting.id, "entitle", {"token": "MTOB1J"}, actor="bob")
    plain.get_by_label("token").first.fill("late")
    plain.get_by_role("button", name="Fire entitle").click()
    expect(plain.locator("#conflict")).to_contain_text("bob")
    plain.locator("#conflict").get_by_role("button", name="Preview").click()
    expect(plain.locator("#preview")).to_contain_text("Preview: Active → Active")
    plain.get_by_text("1 event not accepted in Active").click()
    plain.get_by_text("Try anyway").click()
    plain.get_by_role("button", name="Fire activate").click()
    expect(plain.locator("#refused")).to_contain_text("The event activate is not accepted in state Active.")


def test_ages_are_there_and_the_page_says_when_it_was_made(plain, waiting):
    plain.goto(INSTANCE)
    expect(plain.locator("div.head time").first).to_have_text("0 s")
    expect(plain.locator("[data-live]")).to_contain_text("as of ")
    expect(plain.locator("[data-scriptless]")).to_be_visible(timeout=30_000)


def test_a_long_list_is_paged_and_turned_round(plain, engine, activation):
    for number in range(60):
        engine.create(activation, f"i{number:02}", now=1_700_000_000_000 + number)
    plain.goto("/machines/activation/?state=New")
    plain.get_by_role("link", name="Next page").click()
    expect(plain.locator("table.instances tbody tr")).to_have_count(10)
    plain.get_by_role("link", name="Reverse order").click()
    expect(plain.locator("table.instances a.key").first).to_have_text("i59")


def test_an_instance_is_opened_by_its_id(plain, waiting):
    plain.goto("/machines/activation/")
    plain.get_by_label("Open an instance by id").fill("ATV-123:NBCSports")
    plain.get_by_role("button", name="Open").click()
    expect(plain.locator("h1")).to_have_text("ATV-123:NBCSports")
