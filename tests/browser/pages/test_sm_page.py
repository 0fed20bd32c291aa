"""The page of a state machine under a key of its own, in a real browser: it fits, and its buttons do what they say."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from machines.engine.sm_commands import call
from tests.browser.test_every_page import DOUBLE_IDS, UNNAMED

ORDER = {
    "initial": "placed",
    "current": "paid",
    "reason": "by card",
    "map": {
        "placed": ["paid", "cancelled"],
        "paid": ["picking", "refunded", "lost"],
        "picking": ["sent", "refunded"],
        "sent": ["delivered", "returned"],
        "returned": ["refunded"],
        "delivered": [],
        "refunded": [],
        "cancelled": [],
    },
}


@pytest.fixture
def order(engine, prefix) -> str:
    """The key of a machine."""
    return put(engine, f"{prefix}shop/order:17", ORDER)


def put(engine, key, machine):
    call(engine.client, "SM.SET", key, json.dumps(machine))
    return key


def address(key):
    return f"/sm/{quote(key.replace('/', '~2F'))}/"


def test_the_pages_fit_and_nothing_complains(as_, engine, prefix, order):
    long = "x" * 300
    odd = put(
        engine, f"{prefix}{long}", {"initial": "a", "current": "", "reason": long, "map": {"a": [long], long: []}}
    )
    page = as_("supervisor")
    for where in ("/", "/sm/", address(order), address(odd), "/sm/nothing/"):
        page.goto(where)
        for width in (1400, 390):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, where
            assert page.evaluate(UNNAMED) == [], where
        assert page.evaluate(DOUBLE_IDS) == [], where
        assert page.locator("h1").count() == 1, where


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_machine_is_found_moved_and_forced(as_, engine, order, scripts):
    page = as_("supervisor", "sue", java_script_enabled=scripts)
    page.goto("/")
    page.get_by_role("link", name="State machines by key").click()
    page.get_by_label("key", exact=True).fill(order)
    page.get_by_role("button", name="Open").click()
    expect(page.locator("h1")).to_have_text(order)
    expect(page.locator(".sb-diagram .current")).to_have_attribute("data-state", "paid")
    page.get_by_label("reason for picking").fill("in stock")
    page.get_by_role("button", name="Go to picking").click()
    expect(page.get_by_text("paid → picking", exact=True)).to_be_visible()
    expect(page.locator("div.head .lit")).to_have_text("picking")
    expect(page.locator("div.head")).to_contain_text("Reason: in stock")
    page.get_by_text("Repairs").click()
    page.get_by_label("state", exact=True).select_option("placed")
    page.get_by_label("reason required").fill("a mistake")
    page.get_by_role("button", name="Force state").click()
    expect(page.get_by_text("Forced: picking → placed")).to_be_visible()
    assert json.loads(call(engine.client, "SM.GET", order)) == ORDER | {"current": "placed", "reason": "a mistake"}


def test_of_two_operators_the_second_is_told(as_, engine, order):
    page = as_("operator")
    page.goto(address(order))
    call(engine.client, "SM.MUTATE", order, "refunded", "elsewhere")
    page.get_by_role("button", name="Go to picking").click()
    expect(page.locator("#conflict")).to_contain_text("The state changed from paid to refunded.")
    expect(page.locator("div.head .lit")).to_have_text("refunded")


def test_a_state_with_line_ends_in_its_name_is_sent_as_it_is(as_, engine, prefix):
    name = "two\nlines \r\n"
    key = put(engine, f"{prefix}odd", {"initial": "a", "current": "", "reason": "", "map": {"a": [name], name: []}})
    page = as_("operator")
    page.goto(address(key))
    page.get_by_role("button", name="Go to two").click()
    expect(page.locator("div.head .lit")).to_contain_text("two")
    assert call(engine.client, "SM.STATE", key) == [name]
