"""In a real browser: the shop's own pages run their inline scripts, and Signalbox works under its prefix."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from machines.engine import Engine

from .conftest import log_in

Open = Callable[..., Page]
INSTANCE = "/ops/machines/activation/instances/ATV-123:NBCSports/"


def test_inline_scripts_and_styles_of_the_shop_run(asgi: str, open_page: Open):
    page = open_page(asgi)
    page.goto("/")
    expect(page.locator("#told")).to_have_text("inline and external")
    expect(page.locator("#styled")).to_have_css("color", "rgb(255, 0, 0)")
    page.get_by_role("button", name="Click").click()
    expect(page).to_have_title("clicked")


def test_a_machine_lives_under_the_prefix_by_a_socket(asgi: str, open_page: Open, redis_url: str, shop_prefix: str):
    page = open_page(asgi)
    page.goto("/ops/")
    log_in(page)
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "live")
    page.get_by_role("link", name="activation").first.click()
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "live")
    expect_one_more(page, redis_url, shop_prefix, "seen-at-once")


def test_an_event_is_fired_on_the_page_of_an_instance(asgi: str, open_page: Open):
    page = open_page(asgi)
    page.goto(INSTANCE)
    log_in(page)
    expect(page).to_have_url(f"{asgi}{INSTANCE}")
    page.get_by_label("token").first.fill("MTOB1J")
    page.get_by_role("button", name="activate").first.click()
    expect(page.get_by_text("Waiting").first).to_be_visible()
    expect(page).to_have_url(f"{asgi}{INSTANCE}")


def test_queues_explorer_shortcuts_and_logout(asgi: str, open_page: Open):
    page = open_page(asgi)
    page.goto("/ops/queues/")
    log_in(page)
    expect(page.get_by_role("link", name="todo").first).to_be_visible()
    page.goto("/ops/api/v1/docs#listMachines")
    expect(page.locator("#listMachines pre")).to_contain_text("/ops/api/v1/machines")
    page.goto(INSTANCE)
    page.keyboard.press("g")
    page.keyboard.press("m")
    expect(page).to_have_url(f"{asgi}/ops/machines/activation/")
    page.locator(".bar").get_by_text("More").click()
    page.get_by_role("button", name="Log out").first.click()
    expect(page.locator("#told")).to_have_text("inline and external")


def test_under_wsgi_pages_poll_and_nothing_complains(wsgi: str, open_page: Open, redis_url: str, shop_prefix: str):
    page = open_page(wsgi)
    page.goto("/ops/machines/activation/")
    log_in(page)
    expect(page.locator("[data-live]")).to_have_attribute("data-state", "polling")
    expect_one_more(page, redis_url, shop_prefix, "seen-by-polling")


def expect_one_more(page: Page, redis_url: str, prefix: str, id: str) -> None:
    """Create an instance, and wait until the page counts it."""
    new = page.get_by_role("row").filter(has=page.get_by_role("link", name="○ New")).get_by_role("cell").first
    before = int(new.inner_text())
    engine = Engine.from_url(redis_url, prefix=prefix)
    engine.create("activation", id)
    engine.client.close()
    expect(new).to_have_text(str(before + 1))
