"""What Chromium makes of the pages: when something shows, how much script it takes, whether anything moves, and how
soon a click or a key shows."""

from __future__ import annotations

import shutil
import threading
from dataclasses import dataclass

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.report import Aim, Row, Section
from benchmarks.site import Site
from benchmarks.stage import PREFIX
from machines.engine import Engine

from .fleet import Member

ROUNDS = 5
WATCHED = 4.0  # seconds that counts change under the eyes of the page
PAINT, SCRIPT, SHIFT, INTERACTION = 250.0, 120.0, 0.001, 100.0  # ms, kB, the sum of layout shifts, ms
KEYS = ("p", "p", "Control+k", *"order", "Escape", "Escape", "?", "Escape")  # freeze, go on, search, the list of keys
OBSERVER = """window.shifts = 0; window.moved = new Set(); new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
        if (entry.hadRecentInput) continue;
        window.shifts += entry.value;
        for (const { node } of entry.sources) {
            window.moved.add((node?.parentElement?.className ?? "") + " > " + (node?.className || node?.nodeName));
        }
    } }).observe({ type: "layout-shift", buffered: true });
    window.slowest = 0; new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) window.slowest = Math.max(window.slowest, duration);
    }).observe({ type: "event", durationThreshold: 16 });"""
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
SCRIPTS = """performance.getEntriesByType("resource").filter((entry) => entry.name.includes(".js"))
    .reduce((all, entry) => all + entry.decodedBodySize, 0)"""


@dataclass(frozen=True, slots=True)
class Seen:
    """ms, bytes before they are packed, the sum of all layout shifts, what moved, and ms from the slowest click or key
    to the frame that shows it; 0 below 16."""

    paint: float
    script: int
    shift: float
    moved: list[str]
    slowest: float


def section(site: Site, url: str, members: list[Member]) -> Section:
    desk = members[0]
    addresses = {
        "overview": "/",
        "machine": f"/machines/{desk.name}/",
        "instance": f"/machines/{desk.name}/instances/{desk.name}-0000019/",
        "queues": "/queues/",
        "errors": "/errors/",
        "wall": "/wall/",
    }
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        return Section("In a browser", [], "No Chromium here.")
    rows, aims = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for title, address in addresses.items():
            found = _looked(browser, site, url, desk.name, address)
            note = f"{found.script / 1000:.0f} kB of script, layout shift {found.shift:.4f}"
            note += f" ({', '.join(found.moved)})" if found.moved else ""
            note += f", slowest interaction {found.slowest:.0f} ms"
            rows.append(Row(title, found.paint, note=note, unit="ms"))
            aims += [
                Aim(f"{title}, ms to the first paint", PAINT, found.paint, at_most=True),
                Aim(f"{title}, kB of script", SCRIPT, found.script / 1000, at_most=True),
                Aim(f"{title}, layout shift while counts change", SHIFT, found.shift, at_most=True),
                Aim(f"{title}, ms of the slowest interaction", INTERACTION, found.slowest, at_most=True),
            ]
        browser.close()
    note = f"Median of {ROUNDS} visits with an empty cache; shifts over {WATCHED:.0f} s while steps are fired."
    return Section("In a browser (first contentful paint)", rows, note, aims)


def _looked(browser: Browser, site: Site, url: str, machine: str, address: str) -> Seen:
    paints: list[float] = []
    script, shift, moved, slowest = 0, 0.0, [], 0.0
    for round in range(ROUNDS):
        context = browser.new_context(viewport={"width": 1400, "height": 1000}, base_url=site.address)
        name, _, value = site.cookies[0].partition("=")
        context.add_cookies([{"name": name, "value": value, "url": site.address}])
        page = context.new_page()
        page.add_init_script(OBSERVER)
        page.goto(address, wait_until="load")
        page.wait_for_function(f"({PAINTED}) > 0")
        paints.append(page.evaluate(PAINTED))
        if round == 0:
            page.wait_for_selector(".live, [data-wall-status]", timeout=10_000)
            with _firing(url, machine):
                page.wait_for_timeout(WATCHED * 1000)
            script, shift = page.evaluate(SCRIPTS), page.evaluate("window.shifts")
            moved = page.evaluate("[...window.moved]")
            slowest = _interact(page)
        context.close()
    return Seen(sorted(paints)[ROUNDS // 2], script, shift, moved, slowest)


def _interact(page: Page) -> float:
    for key in KEYS:
        page.keyboard.press(key)
        page.wait_for_timeout(150)
    for summary in page.locator("main summary:visible").all()[:3]:
        summary.click()
    page.wait_for_timeout(300)
    return page.evaluate("window.slowest")


class _firing:
    """Creates and moves instances all the time, so that counts get longer and shorter."""

    def __init__(self, url: str, machine: str) -> None:
        self._engine = Engine.from_url(url, prefix=PREFIX)
        self._machine = machine
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.01):
            made = self._engine.create(self._machine, None, {"customer": "browser"})
            self._engine.fire(self._machine, made.id, "take")
