"""Workers in a browser: an order is given on one page, and what comes of it is seen on another one that stands open."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from machines.engine import WorkerInfo
from tests.browser.conftest import is_live, log_in


class Beating:
    """Workers that live: their rows are renewed all the time, as long as nobody says that they left."""

    def __init__(self, engine) -> None:
        self.engine = engine
        self.orders: list[str] = []
        self._rows: dict[str, dict] = {}
        self._changing = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Beating:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def shows(self, id: str, **given: Any) -> None:
        with self._changing:
            self._rows[id] = given
        self.beat()

    def leaves(self, id: str) -> None:
        with self._changing:
            del self._rows[id]
            self.engine.leave(id)

    def beat(self) -> None:
        now = int(time.time() * 1000)
        with self._changing:
            for id, given in self._rows.items():
                order = self.engine.beat(
                    WorkerInfo(
                        id, "box", 17, ["activation/q"], started=now - 60_000, seen=now, **({"in_hand": 0} | given)
                    )
                )
                if order is not None:
                    self.orders.append(order["order"])

    def _run(self) -> None:
        while not self._ended.wait(2):
            self.beat()


@pytest.fixture
def workers(engine) -> Iterator[Beating]:
    with Beating(engine) as beating:
        yield beating


def card(page, id: str = "box:17"):
    return page.get_by_label(f"Worker {id}", exact=True)


def order(page, button: str, reason: str) -> None:
    card(page).get_by_text("Manage").click()
    card(page).get_by_label("reason").fill(reason)
    card(page).get_by_role("button", name=button).click()


def test_a_worker_told_to_be_quiet_is_seen_so_everywhere_and_half_written_orders_stay(as_, workers):
    workers.shows("box:17")
    sue, ann = as_("supervisor", "sue"), as_("supervisor", "ann")
    for page in (sue, ann):
        page.goto("/workers/")
        is_live(page)
    card(ann).get_by_text("Manage").click()
    card(ann).get_by_label("reason").fill("half a reason")
    ann.get_by_role("heading", name="Workers").click()

    order(sue, "Quiet", "a new release")
    expect(sue.get_by_text("Takes effect with its next heartbeat.")).to_be_visible()
    workers.beat()
    assert workers.orders[-1] == "quiet"
    workers.shows("box:17", status="quiet")
    for page in (sue, ann):
        expect(card(page).get_by_text("quiet", exact=True)).to_be_visible(timeout=10_000)
    expect(card(ann).get_by_role("button", name="Resume")).to_be_visible()
    expect(card(ann).get_by_role("button", name="Quiet")).to_be_hidden()
    expect(card(ann).get_by_label("reason")).to_have_value("half a reason")

    workers.shows("box:18")
    expect(card(ann, "box:18")).to_be_visible(timeout=10_000)
    workers.leaves("box:17")
    expect(card(sue)).to_have_count(0)


def test_more_jobs_in_flight_than_run_at_a_time_are_not_a_share_of_them(as_, workers):
    workers.shows("box:17", in_hand=7, concurrency=6)
    page = as_("viewer")
    page.goto("/workers/")
    is_live(page)
    expect(card(page)).to_contain_text("in flight 7, 6 at a time")
    page.goto("/")
    expect(page.locator("[data-region=workers]")).to_contain_text("7 in flight")
    expect(page.get_by_role("main").get_by_text(re.compile(r"running\s+7|7\s+of\s+6|7\s+running"))).to_have_count(0)


def test_without_script_orders_are_given_all_the_same(browser, user_of, workers):
    workers.shows("box:17")
    page = browser(java_script_enabled=False).new_page()
    log_in(page, user_of("supervisor").username)
    page.goto("/workers/")
    order(page, "Stop", "it is over")
    expect(page.get_by_text("will stop")).to_be_visible()
    workers.beat()
    assert workers.orders[-1] == "stop"
