"""``python -m benchmarks.dragging``: frames a second while a diagram of 200 states is dragged in Chromium, with
the layer that the stylesheet gives it and without, in turn."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

from machines import diagrams
from machines.engine.definitions import outline

STATES, ROUNDS, WATCHED = 200, 3, 4.0
ADMIN = Path(__file__).parents[1] / "machines/static/signalbox/admin"
STYLES = {"without a layer": ".held-fast svg { will-change: auto !important; }", "with a layer": ""}
PAGE = """<!doctype html><link rel="stylesheet" href="admin/diagram.css"><link rel="stylesheet" href="admin/admin.css">
<style>.sb-frame { overflow: auto; width: 1300px; height: 800px; max-height: 800px }</style><style id="tried"></style>
<section class="panel"><div class="sb-frame" data-diagram>%s</div></section><script type="module">
import { enableZoom } from "./admin/zoom.js"; enableZoom(document.querySelector("[data-diagram]")).zoom(0.65);
window.ready = 1;
</script>"""
DRAG = """async (ms) => {
  const frame = document.querySelector("[data-diagram]");
  const at = frame.getBoundingClientRect(), gaps = [], began = performance.now();
  frame.scrollLeft = frame.scrollTop = 400;
  frame.setPointerCapture = () => {};
  const send = (kind, turn) => {
    const [clientX, clientY] = [at.left + 500 + 350 * Math.sin(turn / 20), at.top + 400 + 300 * Math.cos(turn / 20)];
    const facts = { bubbles: true, pointerType: "mouse", button: 0, buttons: 1, clientX, clientY };
    frame.dispatchEvent(new PointerEvent(kind, facts));
  };
  send("pointerdown", 0);
  for (let turn = 1, last = began; last - began < ms; turn += 1) {
    send("pointermove", turn);
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  send("pointerup", 0);
  return gaps.slice(2);
}"""


def main() -> None:
    following = {
        f"s{n}": {"on": {"next": f"s{(n + 1) % STATES}", "jump": f"s{(7 * n + 3) % STATES}"}} for n in range(STATES)
    }
    svg = diagrams.draw(outline({"id": "large", "initial": "s0", "states": following})).svg
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        shutil.copytree(ADMIN, Path(folder) / "admin")
        (Path(folder) / "index.html").write_text(PAGE % svg, encoding="utf-8")
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = playwright.chromium.launch(executable_path=shutil.which("chromium")).new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/index.html")
        page.wait_for_function("window.ready")
        for _ in range(ROUNDS):
            for title, style in STYLES.items():
                _measure(page, title, style)


def _measure(page: Page, title: str, style: str) -> None:
    page.evaluate("(style) => { document.querySelector('#tried').textContent = style; }", style)
    gaps = sorted(page.evaluate(DRAG, 1000 * WATCHED))
    rate, median = 1000 * len(gaps) / sum(gaps), gaps[len(gaps) // 2]
    load = os.getloadavg()[0]
    print(f"{title}: {rate:.1f} frames/s, median {median:.1f} ms, longest {gaps[-1]:.0f} ms, load {load:.1f}")


if __name__ == "__main__":
    main()
