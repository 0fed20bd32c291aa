"""``python -m benchmarks.studio``: from a keystroke to findings and diagram in the Studio, on the real site.

Each keystroke adds a letter to the name of an event, so that findings, names and the whole diagram are new each time.
What is measured ends with the frame of Chromium that shows the drawing. Prints a table; ``STUDIO.md`` has one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import statistics
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, sync_playwright

from .site import Site
from .stage import Stage, name_of, server

KEYS = 60  # keystrokes of each machine
PAUSE = 180  # ms between two: somebody who types fast
WARM = 5
OBSERVER = """
  window.times = [];
  const area = document.querySelector("[data-region=drawing]");
  let pressed = [];
  addEventListener("keydown", (event) => pressed.push(event.timeStamp), true);
  new MutationObserver(() => {
    const begun = pressed;
    pressed = [];
    requestAnimationFrame(() => { for (const at of begun) window.times.push(performance.now() - at); });
  }).observe(area, { childList: true });
"""


def chain(count: int, extra: int) -> dict[str, Any]:
    """A flat machine: a chain with ``extra`` lines to and fro."""
    chance = random.Random(1)
    states: dict[str, Any] = {f"S{n}": {"on": {"next": f"S{n + 1}"}} for n in range(count - 1)}
    states[f"S{count - 1}"] = {"type": "final"}
    for number in range(extra):
        source = chance.randrange(count - 1)
        target = min(count - 1, max(0, source + chance.choice([-4, -3, -2, 2, 3, 5])))
        states[f"S{source}"]["on"][f"e{number}"] = f"S{target}"
    return {"id": "studio-chain", "initial": "S0", "states": states}


def nested(groups: int, size: int) -> dict[str, Any]:
    """States in states: each group leads to the next."""
    states = {}
    for group in range(groups):
        inner = {
            f"G{group}_{n}": {"on": {"next": f"G{group}_{n + 1}" if n < size - 1 else f"G{(group + 1) % groups}"}}
            for n in range(size)
        }
        states[f"G{group}"] = {"initial": f"G{group}_0", "states": inner, "on": {"abort": "G0"}}
    return {"id": "studio-nested", "initial": "G0", "states": states}


MACHINES = {"flat, 50 states": chain(50, 25), "nested, 56 states": nested(8, 6), "flat, 20 states": chain(20, 10)}


def main() -> None:
    given = argparse.ArgumentParser(prog="python -m benchmarks.studio", description=__doc__)
    given.add_argument("--url", help="a server to use instead of one of its own; only keys below bench: are touched")
    options = given.parse_args()
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    with server(options.url) as url:
        stage = Stage(url)
        stage.set_up()
        for definition in MACHINES.values():
            stage.engine.publish(definition)
        with Site(url) as site, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
            print(f"{name_of(stage.engine.client)}, load {os.getloadavg()[0]:.1f}\n")
            print("| machine | p50 | p95 | most | the check alone, p50 |\n|---|---:|---:|---:|---:|")
            for title, definition in MACHINES.items():
                print(measure(browser, site, title, definition["id"]), flush=True)
            print(f"\nscript and style, gzip: {weigh(browser, site):.0f} kB")
            browser.close()
        stage.clear()


def open_page(browser: Browser, site: Site, machine: str) -> Page:
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, base_url=site.address)
    name, _, value = site.cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": site.address}])
    page = context.new_page()
    page.goto(f"/machines/{machine}/edit/")
    page.wait_for_selector("form[data-checked]", state="attached")
    page.wait_for_selector(".picture .state")
    return page


def measure(browser: Browser, site: Site, title: str, machine: str) -> str:
    page = open_page(browser, site, machine)
    page.locator(".cm-line", has_text='"next"').first.click()
    page.keyboard.press("Home")
    for _ in range(len('"next')):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(500)
    page.evaluate(OBSERVER)
    checks = []
    for _ in range(KEYS):
        page.keyboard.press("x")
        page.wait_for_timeout(PAUSE)
        checks.append(int(page.locator("form[data-checked]").get_attribute("data-checked") or 0))
    page.wait_for_timeout(1000)
    times = sorted(page.evaluate("window.times")[WARM:])
    page.context.close()
    p95 = times[int(len(times) * 0.95)]
    middle = statistics.median(times)
    return f"| {title} | {middle:.0f} ms | {p95:.0f} ms | {times[-1]:.0f} ms | {statistics.median(checks):.0f} ms |"


def weigh(browser: Browser, site: Site) -> float:
    """kB of what the page loads of scripts and styles, packed."""
    page = open_page(browser, site, MACHINES["flat, 20 states"]["id"])
    names = json.loads(page.evaluate("JSON.stringify(performance.getEntriesByType('resource').map((one) => one.name))"))
    page.context.close()
    wanted = {name for name in names if Path(urlsplit(name).path).suffix in (".js", ".css")}
    return sum(len(gzip.compress(urlopen(name).read(), 9)) for name in wanted) / 1000


if __name__ == "__main__":
    main()
