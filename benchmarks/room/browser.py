"""What Chromium makes of the pages: when something shows, how much script it takes, whether anything moves, and how
soon a click or a key shows, and how smoothly a large diagram is dragged."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.report import Aim, Row, Section
from benchmarks.site import Site
from benchmarks.stage import PREFIX
from machines.engine import Engine

from .fleet import Member

ROUNDS = 5
WATCHED = 4.0  # seconds that counts change under the eyes of the page
PAINT, SCRIPT, SHIFT, INTERACTION, FRAMES = 250.0, 120.0, 0.001, 100.0, 59.0  # ms, kB, sum of shifts, ms, 1/s
KEYS = ("p", "p", "Control+k", *"order", "Escape", "Escape", "?", "Escape")  # freeze, go on, search, the list of keys
OBSERVER = """window.shifts = 0; window.moved = new Set(); new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries().filter((entry) => !entry.hadRecentInput)) {
        window.shifts += value;
        const name = (node) => (node?.parentElement?.className ?? "") + " > " + (node?.className || node?.nodeName);
        for (const { node } of sources) window.moved.add(name(node));
    } }).observe({ type: "layout-shift", buffered: true });
    window.slowest = 0; new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) window.slowest = Math.max(window.slowest, duration);
    }).observe({ type: "event", durationThreshold: 16 });"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
SCRIPTS = """performance.getEntriesByType("resource").filter((entry) => entry.name.includes(".js"))
    .reduce((all, entry) => all + entry.decodedBodySize, 0)"""
WIDE = {f"s{n}": {"on": {"next": f"s{(n + 1) % 200}", "jump": f"s{(7 * n + 3) % 200}"}} for n in range(200)}
GAPS = """window.gaps = []; requestAnimationFrame(function look(now) { if (window.last) gaps.push(now - window.last);
    window.last = now; requestAnimationFrame(look); });"""


def section(site: Site, url: str, members: list[Member]) -> Section:
    desk = members[0].name
    page = f"/machines/{desk}/"
    addresses = {"overview": "/", "machine": page, "instance": f"{page}instances/{desk}-0000019/"}
    addresses |= {name: f"/{name}/" for name in ("queues", "errors", "wall")}
    rows, aims = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for of in addresses.items():
            row, more = _look(browser, site, url, desk, of)
            rows.append(row)
            aims += more
        gaps = sorted(_drag(_open(browser, site), url))
        browser.close()
    title, rate = "frames while a diagram of 200 states is dragged", 1000 * len(gaps) / sum(gaps)
    rows.append(Row(title, rate, note=f"the longest {gaps[-1]:.0f} ms"))
    aims.append(Aim(f"{title}, a second", FRAMES, rate))
    note = f"Median of {ROUNDS} visits with an empty cache; shifts over {WATCHED:.0f} s while steps are fired."
    return Section("In a browser (first contentful paint)", rows, note, aims)


def _look(browser: Browser, site: Site, url: str, machine: str, of: tuple[str, str]) -> tuple[Row, list[Aim]]:
    """Measure a page. The slowest interaction: ms from a click or key to the frame that shows it; 0 below 16."""
    (title, address), paints = of, []
    for number in range(ROUNDS):
        page = _open(browser, site)
        page.add_init_script(OBSERVER)
        page.goto(address, wait_until="load")
        page.wait_for_function(f"({PAINTED}) > 0")
        paints.append(page.evaluate(PAINTED))
        if number == 0:
            page.wait_for_selector(".live, [data-wall-status]", timeout=10_000)
            with _firing(url, machine):
                page.wait_for_timeout(WATCHED * 1000)
            script, shift = page.evaluate(SCRIPTS) / 1000, page.evaluate("window.shifts")
            moved = ", ".join(page.evaluate("[...window.moved]"))
            slowest = _interact(page)
        page.context.close()
    paint = sorted(paints)[ROUNDS // 2]
    note = f"{script:.0f} kB of script, layout shift {shift:.4f}" + (f" ({moved})" if moved else "")
    return Row(title, paint, note=f"{note}, slowest interaction {slowest:.0f} ms", unit="ms"), [
        Aim(f"{title}, ms to the first paint", PAINT, paint, at_most=True),
        Aim(f"{title}, kB of script", SCRIPT, script, at_most=True),
        Aim(f"{title}, layout shift while counts change", SHIFT, shift, at_most=True),
        Aim(f"{title}, ms of the slowest interaction", INTERACTION, slowest, at_most=True),
    ]


def _open(browser: Browser, site: Site) -> Page:
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, base_url=site.address)
    name, _, value = site.cookies[0].partition("=")
    context.add_cookies([{"name": name, "value": value, "url": site.address}])
    return context.new_page()


def _drag(page: Page, url: str) -> list[float]:
    """Return the ms from frame to frame."""
    Engine.from_url(url, prefix=PREFIX).publish({"id": "wide", "initial": "s0", "states": WIDE})
    page.goto("/machines/wide/")
    page.locator("[data-zoom-to='1']").click()
    page.locator("[data-diagram]").hover()
    page.mouse.down()
    page.evaluate(GAPS)
    for turn in range(240):
        page.mouse.move(700 - turn, 500 - turn)
    return page.evaluate("window.gaps")


def _interact(page: Page) -> float:
    for key in KEYS:
        page.keyboard.press(key)
        page.wait_for_timeout(150)
    for summary in page.locator("main summary:visible").all()[:3]:
        summary.click()
    page.wait_for_timeout(300)
    return page.evaluate("window.slowest")


@contextmanager
def _firing(url: str, machine: str) -> Iterator[None]:
    """Creates and moves instances all the time, so that counts get longer and shorter."""
    engine, over = Engine.from_url(url, prefix=PREFIX), threading.Event()

    def run() -> None:
        while not over.wait(0.01):
            made = engine.create(machine, None, {"customer": "browser"})
            engine.fire(machine, made.id, "take")

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run)
        yield
        over.set()
